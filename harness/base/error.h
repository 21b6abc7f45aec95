// SPDX-License-Identifier: Apache-2.0
// The one exception type and the exit codes. Expected outcomes (a wrong kernel, a slower night) are
// values, never exceptions; an Error means the command cannot go on. It is caught once, in main.cc.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace moegate {

/// Exit codes of the program, documented in README.md. Scripts depend on them: never renumber.
enum class Exit : int {
  ok = 0,
  internal = 1,
  usage = 2,          // bad flag, suite, operator, parameter, device, selection
  latency = 10,       // confirmed latency regression
  accuracy = 11,      // wrong output or accuracy regression
  both = 12,          // 10 and 11
  coverage = 13,      // missing case, crash, time-out, nothing matched; exit.h: who says it
  inconclusive = 20,  // only when asked for by --fail-on
  environment = 21,   // this machine cannot measure (profiler in the way, device gone)
  no_baseline = 22,   // with --require-baseline
  waiver = 24,        // waiver that expired or covers too much; an unused one is only noted
  store = 30,         // database unusable, foreign, or of another version
  interrupted = 130,  // what was measured is kept
};

/// A failure that ends the command. The message names the thing, the value and the remedy.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

/// Throws an Error.
template <class... Args>
[[noreturn]] void give_up(Exit code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}
/// The same with exit code 2: something the user typed or wrote in a file is wrong.
template <class... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  give_up(Exit::usage, format, std::forward<Args>(args)...);
}

}  // namespace moegate
