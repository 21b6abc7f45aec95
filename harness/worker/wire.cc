// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/wire.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/deadline.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace moegate {
namespace {

constexpr double kRestSeconds = 60;  // for what follows the first byte of a message
constexpr int kDeepest = 100;        // lists within lists; the parser recurses, and stacks end

/// Accepts any value but one that is nested too deeply.
class DepthCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(size_t) override { return ++depth_ <= kDeepest; }
  bool start_array(size_t) override { return ++depth_ <= kDeepest; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
};

/// A kernel's last words may be any bytes; who stores and prints texts wants UTF-8.
void make_valid(nlohmann::json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!is_ascii(text)) text = valid_utf8(text);
  } else if (value.is_array()) {
    for (nlohmann::json& element : value) make_valid(element);
  } else if (value.is_object()) {
    auto& fields = value.get_ref<nlohmann::json::object_t&>();
    for (auto& [name, field] : fields) make_valid(field);
    if (std::ranges::all_of(fields, [](const auto& field) { return is_ascii(field.first); }))
      return;
    nlohmann::json::object_t renamed;
    for (auto& [name, field] : fields) renamed[valid_utf8(name)] = std::move(field);
    value = std::move(renamed);
  }
}

/// Asks ten times a second whether to go on: a signal that comes just before poll() would not
/// end it.
Arrival read_all(int fd, void* data, size_t bytes, Deadline deadline) {
  constexpr double kAskEveryMs = 100, kGraceSeconds = 2;
  bool interrupted = false;
  char* p = static_cast<char*>(data);
  while (bytes > 0) {
    if (!interrupted && InterruptGuard::interrupted()) {
      interrupted = true;
      deadline = deadline.within(kGraceSeconds);
    }
    const int wait_ms =
        static_cast<int>(std::ceil(std::clamp(1e3 * deadline.left(), 0.0, kAskEveryMs)));
    pollfd ready{fd, POLLIN, 0};
    const int n = ::poll(&ready, 1, wait_ms);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 && wait_ms > 0) continue;
    if (n == 0) return interrupted ? Arrival::interrupted : Arrival::timeout;
    const ssize_t got = n < 0 ? -1 : ::read(fd, p, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Arrival::closed;
    p += got;
    bytes -= static_cast<size_t>(got);
  }
  return Arrival::message;
}

}  // namespace

bool send(int fd, const nlohmann::json& message) {
  const auto bytes = nlohmann::json::to_cbor(message);
  const auto size = static_cast<uint32_t>(bytes.size());
  return write_all(fd, &size, sizeof size) && write_all(fd, bytes.data(), bytes.size());
}

Arrival receive(int fd, double timeout_s, nlohmann::json& message) {
  Deadline deadline = timeout_s < 0 ? Deadline() : Deadline(timeout_s);
  uint32_t size = 0;
  char* prefix = reinterpret_cast<char*>(&size);
  Arrival arrival = read_all(fd, prefix, 1, deadline);
  if (arrival != Arrival::message) return arrival;
  if (!deadline.is_set()) deadline = Deadline(kRestSeconds);
  arrival = read_all(fd, prefix + 1, sizeof size - 1, deadline);
  if (arrival != Arrival::message) return arrival;
  if (size > kLongestMessage) throw Nonsense("a message of " + std::to_string(size) + " bytes");
  std::vector<uint8_t> bytes(size);
  arrival = read_all(fd, bytes.data(), bytes.size(), deadline);
  if (arrival == Arrival::message) message = parse_message(bytes);
  return arrival;
}

nlohmann::json parse_message(std::span<const uint8_t> bytes) {
  using nlohmann::json;
  DepthCheck check;
  try {
    if (json::sax_parse(bytes.begin(), bytes.end(), &check, json::input_format_t::cbor)) {
      json message = json::from_cbor(bytes.begin(), bytes.end());
      make_valid(message);
      return message;
    }
  } catch (const json::exception&) {
    // Said below.
  }
  throw Nonsense(std::to_string(bytes.size()) + " bytes that are no CBOR value");
}

}  // namespace moegate
