// SPDX-License-Identifier: Apache-2.0
// The flags that several commands have and that need more than a field to be bound to, and those of
// what judges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/commands/cli.h"
#include "harness/commands/project.h"
#include "harness/commands/publish.h"
#include "harness/judge/gate.h"
#include "harness/night/night_gate.h"

namespace moegate {

/// The path of an output file. Throws Error(usage) when it could not be written now.
std::function<void(const std::string&)> output(std::optional<std::string>& path);

/// A store that is there. Default: the nearest one, named on standard error.
Flag db_flag(std::string& db, const char* about = nullptr);
/// A store that is made when it is missing; `file`: what a project calls it.
Flag new_db_flag(std::string& db, const char* file = kDefaultStore);
/// Which stored run; default: latest.
Flag run_flag(std::string& run);
/// A run's name; default: none. Throws Error(usage) for what plain_name() refuses.
Flag label_flag(std::string& label);
/// The default is text.
Flag format_flag(Format& format, const char* about = nullptr);
/// `shown`: what help calls the default.
Flag sample_seed_flag(uint64_t& seed, const std::string& shown);
/// A device or several GPUs of this host: "all" and "cuda:all" become those visible, a list its
/// shortest spelling. Throws Error(usage) as devices_of() does, Error(environment) for all of none.
Flag device_flag(std::string& device);
/// Of a device that may be left out.
std::function<void(const std::string&)> device_of(std::string& device);
/// One device. Throws Error(usage) for several.
Flag one_device_flag(std::string& device);
/// Files of kernels, by absolute paths where they are there.
Flag module_flag(std::vector<std::string>& files, const char* about = nullptr);
/// The absolute path of a file that is there; else as typed: it may be of another repository.
std::string module_path(const std::string& file);
/// Of what a --device names, without opening it: that pins this process and its workers.
Backend backend_of(const std::string& device);
/// "90d": the UTC day that long ago.
std::function<void(const std::string&)> since_days(std::string& day);
/// Of which rows to ask why they differ; the default is MOEGATE_WHY's, else what the field is.
Flag why_flag(WhyMode& mode, const char* about = nullptr);

/// Which cases, which variants, where. Throws Error(usage) for values that cannot be.
Flags selection_flags(RunOptions& run);
/// How to measure: the options of this group. Throws Error(usage) for values that cannot be.
Flags measuring_flags(RunOptions& run);
/// Throws Error(usage) when no suite was named.
void require_suite(const RunOptions& run);
/// Throws Error(usage) for limits that contradict each other.
void check_measuring(const RunOptions& run);

// The flags of what judges: what counts as slower, what fails, and where the verdict goes.

/// --margin --fail-at: shares; empty for the backend's own.
struct LimitOptions {
  std::optional<double> margin, fail_at;

  /// Throws Error(usage) for a case that would fail inside the margin.
  Limits of(Backend backend) const;
};
Flags limit_flags(LimitOptions& limits);

/// The baselines and waivers that rules.kernels are judged by, where no flag names them: the
/// project's, and for the tool's own kernels else the tool's.
/// Returns the file of waivers; empty: there is none.
std::string use_records(GateRules& rules, const std::optional<std::string>& baselines,
                        const std::optional<std::string>& waivers);

struct JudgingOptions {
  LimitOptions limits;
  FailOn fail_on;
  PublishOptions publish;
};
constexpr const char* kDefaultFailOn = "latency,accuracy,coverage,environment";
Flag fail_on_flag(FailOn& fail_on, const char* if_unset);
/// --fail-on (default: `fail_on`) --format --out --github, then --margin --fail-at.
Flags judging_flags(JudgingOptions& judging, const char* fail_on = kDefaultFailOn);

}  // namespace moegate
