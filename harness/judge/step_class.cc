// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/step_class.h"

#include <fmt/ranges.h>

#include <cmath>

#include "harness/base/stats.h"
#include "harness/base/text.h"
#include "harness/judge/verdict.h"

namespace moegate {
namespace {

bool both_known(const std::string& before, const std::string& after) {
  return !before.empty() && !after.empty();
}

/// "suite a -> b" where both are known and differ.
std::string other(const char* what, const std::string& before, const std::string& after) {
  if (!both_known(before, after) || before == after) return "";
  return fmt::format("{} {} -> {}", what, before, after);
}

std::string other_benchmark(const StepPoint& before, const StepPoint& after) {
  if (before.sets != after.sets) {
    const auto shown = [](const std::string& sets) { return sets.empty() ? "all" : sets; };
    return fmt::format("problem sets {} -> {}", shown(before.sets), shown(after.sets));
  }
  std::string why = other("suite", before.suite, after.suite);
  if (why.empty()) why = other("yardstick", before.yardstick, after.yardstick);
  if (why.empty()) why = other("data", before.facts, after.facts);
  return why;
}

std::string moved_alike(const StepQuestion& q) {
  constexpr size_t kFewest = 3;
  constexpr double kHalf = 0.5;
  if (q.alike.size() < kFewest) return "";
  const double moved = median(q.alike);
  if (moved * q.step <= 0 || std::abs(moved) < kHalf * std::abs(q.step)) return "";
  return fmt::format("{} other rows, whose code did not change, moved by {}", q.alike.size(),
                     percent(std::expm1(moved)));
}

/// Whether both are of one checkout without uncommitted changes.
bool same_commit(const StepPoint& before, const StepPoint& after) {
  return both_known(before.commit, after.commit) && before.commit == after.commit &&
         before.commit.find('+') == std::string::npos;
}

std::optional<ClassifiedStep> other_code(const StepQuestion& q) {
  const StepPoint &before = q.before, &after = q.after;
  if (!both_known(before.code, after.code)) {
    if (other("commit", before.commit, after.commit).empty()) return std::nullopt;
    return ClassifiedStep{StepClass::code, "the commit changed; what was launched is not known"};
  }
  if (before.code == after.code) return std::nullopt;
  const std::string changed = "what is launched changed";
  if (!same_commit(before, after)) return ClassifiedStep{StepClass::code, changed};
  const std::string but = changed + ", the commit did not; ";
  if (!q.environment) return ClassifiedStep{StepClass::environment, but + "environment not stored"};
  if (q.environment->empty())
    return ClassifiedStep{StepClass::code, but + "nor did the environment"};
  const auto texts = mapped(*q.environment, [](const auto& change) { return change.text(); });
  return ClassifiedStep{StepClass::environment, but + fmt::format("{}", fmt::join(texts, ", "))};
}

std::string other_machine(const StepPoint& before, const StepPoint& after) {
  std::string why = other("driver", before.driver, after.driver);
  if (why.empty()) why = other("device", before.device, after.device);
  constexpr double kClock = 0.01;
  const bool clocked = before.sm_mhz > 0 && after.sm_mhz > 0;
  if (why.empty() && clocked && std::abs(after.sm_mhz / before.sm_mhz - 1) >= kClock) {
    why = fmt::format("clock {:.0f} -> {:.0f} MHz", before.sm_mhz, after.sm_mhz);
  }
  return why;
}

}  // namespace

ClassifiedStep classify_step(const StepQuestion& q) {
  std::string why = other_benchmark(q.before, q.after);
  if (!why.empty()) return {StepClass::benchmark, why};
  why = moved_alike(q);
  if (!why.empty()) return {StepClass::machine, why};
  if (const auto step = other_code(q)) return *step;
  why = other_machine(q.before, q.after);
  if (!why.empty()) return {StepClass::machine, why};
  return {StepClass::noise, "nothing that is recorded changed"};
}

}  // namespace moegate
