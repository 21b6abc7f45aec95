// SPDX-License-Identifier: Apache-2.0
// How messages travel between the runner and its worker processes: length-prefixed CBOR (which,
// unlike JSON, carries NaN) over a pipe. What they say is in protocol.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

namespace moegate {

/// The child's ends of the pipes. It reads nothing from 0, and both 1 and 2 are the runner's
/// stderr, so that a kernel may print.
constexpr int kRequests = 3, kReplies = 4;
/// Exit code of a worker whose kernel closed one of them.
constexpr int kLostPipe = 126;

/// Longest message, in bytes. A longer one is a garbage prefix rather than a message.
constexpr uint32_t kLongestMessage = 64u << 20;

/// The other end sent something that is no message, or not the one that was due.
class Nonsense : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Writes one message; false when the other end is gone.
bool send(int fd, const nlohmann::json& message);

enum class Arrival { message, closed, timeout, interrupted };
/// Waits up to `timeout_s` for a whole message; negative: for ever for its first byte, and a minute
/// for the rest. Once InterruptGuard has noted a signal, two seconds at most: then the message is
/// given up. Throws Nonsense for bytes that are none.
Arrival receive(int fd, double timeout_s, nlohmann::json& message);

/// The message in these bytes of CBOR; bytes of its texts that are not UTF-8 become U+FFFD. Throws
/// Nonsense for other bytes, whatever they are.
nlohmann::json parse_message(std::span<const uint8_t> bytes);

}  // namespace moegate
