// SPDX-License-Identifier: Apache-2.0
// What a worker reads of a runner: a whole conversation, a message in each line, as JSON or, where
// it is none, as the bytes that it is.
#include <sys/mman.h>
#include <unistd.h>

#include <sstream>

#include "harness/kernel/registry.h"
#include "harness/worker/protocol.h"
#include "harness/worker/serve.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

using nlohmann::json;

/// A pipe that never blocks: a file in memory.
class Memory {
 public:
  Memory() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no file in memory can be made");
  }
  ~Memory() { close(fd_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int fd() const { return fd_; }
  void rewind() const { lseek(fd_, 0, SEEK_SET); }
  void write_message(const std::vector<uint8_t>& bytes) const {
    const auto size = static_cast<uint32_t>(bytes.size());
    const bool ok = write(fd_, &size, sizeof size) == sizeof size &&
                    write(fd_, bytes.data(), size) == static_cast<ssize_t>(size);
    if (!ok) throw std::runtime_error("a file in memory cannot be written");
  }

 private:
  int fd_;
};

/// One operator, which looks at cases but runs none: what it would compute is not the worker's.
Registry one_operator() {
  Registry registry;
  registry.ops.push_back(find_op("topk_sort"));
  registry.ops[0].make = [](Device&, const Case& c) -> std::unique_ptr<Problem> {
    usage_error("{}: is not run", c.where());
  };
  for (const Variant& v : all_variants()) {
    if (v.op == "topk_sort") registry.variants.push_back(v);
  }
  return registry;
}

bool is_answer(const json& message) {
  const std::string kind = kind_of(message);
  return kind == Hello::kKind || kind == Answers::kKind || kind == Throttled::kKind ||
         kind == Measured::kKind;
}

}  // namespace

void request(std::string_view bytes) {
  static const Registry registry = one_operator();
  const Memory in, out;
  std::istringstream lines{std::string(bytes)};
  for (std::string line; std::getline(lines, line);) {
    const json message = json::parse(line, nullptr, /*allow_exceptions=*/false);
    in.write_message(message.is_discarded() ? std::vector<uint8_t>(line.begin(), line.end())
                                            : json::to_cbor(message));
  }
  in.rewind();
  const bool well = serve(in.fd(), out.fd(), &registry);
  out.rewind();
  json answer;
  bool fault = false;
  while (receive(out.fd(), 1, answer) == Arrival::message) {
    require(!fault, "an answer after the last word");
    fault = kind_of(answer) == Fault::kKind;
    require(fault || is_answer(answer), "an answer that no runner knows");
  }
  require(fault != well, "an end without its reason");
}

}  // namespace moegate::fuzz
