// SPDX-License-Identifier: Apache-2.0
// A session behind the C interface: measures a caller's function and stores what it found.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/inprocess/callers_problem.h"
#include "harness/inprocess/moegate.h"
#include "harness/store/store.h"
#include "harness/timing/cupti_loan.h"
#include "harness/timing/timer.h"
#include "harness/values/result.h"

namespace moegate {

/// Tag of a run whose rows were measured in somebody else's process, by a caller.
constexpr const char* kInProcessTag = "inprocess";

/// Metric: 1 where the outputs were compared with a truth.
constexpr const char* kVerifiedMetric = "verified";

/// CUPTI was asked for by name, and another tool holds it.
class TimerBusy : public Error {
 public:
  explicit TimerBusy(const std::string& why) : Error(Exit::environment, why) {}
};

class InProcess {
 public:
  /// The options of moegate_open() (README.md). Throws for such as are none.
  explicit InProcess(nlohmann::json options);
  ~InProcess();
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  /// Of the process: from now on code is known, and CUPTI nobody else's (keep_cupti()). Throws
  /// TimerBusy.
  static void watch();
  /// Verifies, and unless {"timed": false} measures. Throws Error for what cannot be measured here.
  nlohmann::json bench(const nlohmann::json& question, moegate_launch launch, void* user);
  /// Of the inputs as they are now: {"hashes": […]}, 0 where there is nothing to look at.
  nlohmann::json hash(const nlohmann::json& question);

 private:
  /// What times a measurement; the loan outlives the timer.
  struct Timing {
    std::unique_ptr<CuptiLoan> loan;
    std::unique_ptr<Timer> timer;
    std::string note;  // why it is not the one asked for
  };
  void open_device(void* stream);
  Timing open_timer(const std::string& asked) const;
  /// Throws Error(usage) where this process has stored the row already.
  void expect_new(const Case& c, const std::string& variant);
  void store(const Case& c, const Cost& cost, const Result& result);
  RunInfo describe(const Case& c, const Result& result) const;

  const nlohmann::json options_;
  const int ordinal_;  // of the GPU; -1: the host
  std::unique_ptr<Device> device_;
  void* stream_ = nullptr;
  std::optional<Store> store_;
  int64_t run_ = 0, process_ = 0;
  std::set<std::pair<std::string, std::string>> stored_;  // keys and variants
};

}  // namespace moegate
