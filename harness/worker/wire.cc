// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/wire.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

bool write_all(int fd, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

Arrival read_all(int fd, void* data, size_t bytes, Clock::time_point deadline, bool forever) {
  char* p = static_cast<char*>(data);
  while (bytes > 0) {
    int wait_ms = -1;
    if (!forever) {
      const double left =
          std::chrono::duration<double, std::milli>(deadline - Clock::now()).count();
      wait_ms = static_cast<int>(std::ceil(std::max(left, 0.0)));
    }
    pollfd ready{fd, POLLIN, 0};
    const int n = ::poll(&ready, 1, wait_ms);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return Arrival::timeout;
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
  const bool forever = timeout_s < 0;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(forever ? 0 : timeout_s));
  uint32_t size = 0;
  Arrival arrival = read_all(fd, &size, sizeof size, deadline, forever);
  if (arrival != Arrival::message) return arrival;
  std::vector<uint8_t> bytes(size);
  arrival = read_all(fd, bytes.data(), bytes.size(), deadline, forever);
  if (arrival == Arrival::message) message = nlohmann::json::from_cbor(bytes);
  return arrival;
}

}  // namespace moegate
