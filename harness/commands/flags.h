// SPDX-License-Identifier: Apache-2.0
// The flags that several commands have, each spelled once. A flag is bound to the field that it
// sets; the field's value before is the flag's default.
#pragma once

#include <boost/program_options.hpp>

#include <optional>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/campaign/plan.h"
#include "harness/campaign/why.h"
#include "harness/commands/which_store.h"

namespace moegate {

using Flag = boost::shared_ptr<boost::program_options::option_description>;

/// The path of an output file. Throws Error(usage) when it could not be written now.
boost::program_options::typed_value<std::string>* output(std::optional<std::string>& path);
constexpr double kMostRounds = 1e6;

/// A store that is there. Default: the nearest one, named on standard error.
Flag db_flag(std::string& db, const char* about = "the store");
/// A store that is made when it is missing.
Flag new_db_flag(std::string& db);
/// One of another purpose, which is called as `db` says unless --db says otherwise.
Flag own_db_flag(std::string& db, const char* about);
/// Which stored run; default: latest.
Flag run_flag(std::string& run);
/// A run's name; default: none. Throws Error(usage) for what plain_name() refuses.
Flag label_flag(std::string& label);
Flag resume_flag(std::optional<std::string>& run, const char* about);
/// The default is text where standard output is a terminal, else md.
Flag format_flag(
    Format& format,
    const char* about = "text, md, csv or json (default: text on a terminal, else md)");
Flag suite_flag(std::vector<std::string>& suites);
/// `shown`: what help calls the default.
Flag sample_seed_flag(uint64_t& seed, const std::string& shown);
/// One device, or several GPUs of this host: "all" and "cuda:all" become those that are visible, a list
/// its shortest spelling. Throws Error(usage) as devices_of() does, Error(environment) for all of none.
Flag device_flag(std::string& device);
/// The value of such a flag.
boost::program_options::typed_value<std::string>* device_of(std::string& device);
/// One device. Throws Error(usage) for several.
Flag one_device_flag(std::string& device);
/// Files of kernels, by absolute paths where they are there.
boost::program_options::typed_value<std::vector<std::string>>* kernels_of(
    std::vector<std::string>& files);
Flag kernels_flag(std::vector<std::string>& files);
/// Of the devices that a --device names, without opening it: that pins this process, and with it the
/// workers.
Backend backend_of(const std::string& device);
Flag rounds_flag(int& rounds, const char* about);
/// Of which rows to ask why they differ; the default is MOEGATE_WHY's, else what the field is.
Flag why_flag(WhyMode& mode);

/// Which cases, which variants, where: --suite --filter --kernel --axis --seed --sample-seed --device --kernels
/// --tiles --case-timeout --shard. Throws Error(usage) for values that cannot be.
boost::program_options::options_description selection_flags(RunOptions& run);
/// Throws Error(usage) when no suite was named.
void require_suite(const RunOptions& run);

/// How to measure: --cache --launch --flush --flush-factor --sets --timer --min-samples --max-samples
/// --precision --budget. Throws Error(usage) for values that cannot be.
boost::program_options::options_description measuring_flags(RunOptions& run);
/// Throws Error(usage) for limits that contradict each other.
void check_measuring(const RunOptions& run);
/// Gives a parameter its values. Throws Error(usage) naming the flag when it has some already.
void set_axis(RunOptions& run, const char* flag, const std::string& name,
              std::vector<std::string> values);

}  // namespace moegate
