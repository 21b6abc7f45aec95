// SPDX-License-Identifier: Apache-2.0
// moegate nightly: the perf gate. What a night is stands in night/night.cc; here its files and
// its lines are written.
#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/doctor_probes.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/night/night.h"
#include "harness/site/site.h"
#include "harness/site/site_files.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr int kPagesDays = 90;
constexpr size_t kKeptPrograms = 30;  // a baseline's own is built again when it is needed and gone

struct NightlyCommand {
  NightOptions night;
  PublishOptions publish;
  std::string waivers;  // the file; empty: there is none
};

std::optional<NightlyCommand> read_nightly(const Args& args) {
  NightlyCommand command;
  NightOptions& night = command.night;
  std::optional<std::string> out, baselines, waivers;
  std::optional<int> rounds;
  LimitOptions limits;
  const auto budget = [&](const std::string& text) {
    night.budget_s = parse_seconds("--budget", text);
    at_least("--budget", night.budget_s, 1);
  };
  night.device = "auto";
  // 20261122: every night draws something else, and who reads its report knows what.
  night.sample_seed = *parse_number<uint64_t>(fmt::format("{:%Y%m%d}", today()));
  Flags flags;
  flags.add(flag("suite", night.suites));
  flags.add(sample_seed_flag(night.sample_seed, "date"));
  flags.add(device_flag(night.device)).add(module_flag(night.kernels));
  flags.add(flag("out", out, "folder of the results (default: out/ of the project, or here)"));
  flags.add(flag("rounds", rounds, "worker processes (default: 5 on a GPU, 3 on a host)"));
  flags.add(flag("budget", budget, nullptr,
                 "wall time of all phases, such as 15min; the report names the rows that had no "
                 "time (default: 10min on a host, 20min on a GPU)"));
  flags.add(flag("baselines", baselines,
                 "folder of baselines (default: baselines/ of the project, or here; for the tool's "
                 "own kernels the tool's)"));
  flags.add(flag("waivers", waivers));
  flags.add(flag("require-baseline", night.rules.require_baseline));
  flags.add(fail_on_flag(night.rules.fail_on, kDefaultFailOn));
  flags.add(flag("github", command.publish.github));
  flags.add(why_flag(night.rules.why)).add(limit_flags(limits));
  if (!parse("nightly", flags, args)) return std::nullopt;
  if (rounds) at_least("--rounds", *rounds, 1);
  night.rounds = rounds.value_or(0);
  night.out = out.value_or(find_project().out().string());
  night.backend = backend_of(night.device);
  if (night.device == "auto") night.device = night.backend == Backend::host ? "host" : "cuda:0";
  night.rules.fail_on.undecided = true;
  night.rules.kernels = night.kernels;
  command.waivers = use_records(night.rules, baselines, waivers);
  night.rules.baselines.candidates = night.out + "/candidate";
  night.rules.limits = [limits](Backend backend) { return limits.of(backend); };
  command.publish.outputs = {{".md", night.out + "/report.md"},
                             {".xml", night.out + "/junit.xml"},
                             {".json", night.out + "/verdict.json"}};
  return command;
}

std::string build_commit(const std::string& commit, double seconds) {
  const fs::path script = home() / "ci" / "build-commit";
  if (access(script.c_str(), X_OK) != 0 || seconds < 1) return "";
  const Finished build = run_program(
      {"timeout", "--kill-after=10", fmt::format("{:.0f}", seconds), script.string(), commit},
      Output::capture_stdout);
  return build.exit == 0 ? trimmed(build.out) : "";
}

NightCalls calls_of(const NightOptions& night) {
  NightCalls calls;
  calls.verified = [](const Tally& tally) { say("{}", summary_of_check(tally, Task::verify)); };
  calls.spoilt = [](const Tally& tally) { say("{}", summary_of_check(tally, Task::controls)); };
  calls.measured = [db = night.db()](const Tally& tally) {
    say("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
  };
  calls.flown = [](const Canaries& canaries) {
    fmt::print("{}", canaries.text());
    std::fflush(stdout);
  };
  calls.failed = [](const Error& error) { say("moegate: {}\n", error.what()); };
  calls.build = build_commit;
  return calls;
}

void print_night(const NightlyCommand& command, const Night& night) {
  const std::string db = command.night.db();
  Store store = open_for_verdict(db);
  fmt::print("{}\n", render(run_report(store, find_report("speedup"), {night.run}), Format::text));
  if (night.verdict) publish(store, report_of(store, db, *night.verdict), command.publish);
}

/// For people to look at: whatever is wrong with them, the verdict stands.
void write_pages(const NightlyCommand& command) {
  try {
    const std::string db = command.night.db();
    Store store = Store::open(db, Store::Mode::read);
    write_site(
        command.night.out + "/pages",
        site_pages(store, {.db = db, .since = days_ago(kPagesDays), .waivers = command.waivers}),
        repository_address(find_project()));
  } catch (const std::exception& e) {
    say("moegate: no pages: {}\n", e.what());
  }
}

}  // namespace

int cmd_nightly(const Args& args) {
  auto command = read_nightly(args);
  if (!command) return 0;
  const std::string verdict = command->publish.outputs.at(".json");
  make_results_folder(command->night.out);
  check_output(verdict);
  const FileLock lock(command->night.out + "/.lock");
  if (!lock.held()) {
    give_up(Exit::environment,
            "--out {}: another night or A/B is running there, and each would measure the other; "
            "wait until it ends",
            command->night.out);
  }
  // An earlier night's verdict must not be taken for this one's.
  std::error_code error;
  fs::remove(verdict, error);
  if (error) usage_error("{}: {}", verdict, error.message());
  const Deadline end(command->night.budget());
  const Finished doctor = run_doctor(command->night.device, command->night.db());
  write_output(command->night.out + "/doctor.md", doctor.out);
  if (doctor.exit != 0) return doctor.exit;
  constexpr double kLeast = 1;  // the doctor's time is the night's, too
  command->night.budget_s = std::max(kLeast, end.left());
  const Night result = night(command->night, calls_of(command->night), worker_processes());
  if (result.exits.gate) print_night(*command, result);
  write_pages(*command);
  prune_programs(command->night.artifacts(), kKeptPrograms);
  return static_cast<int>(result.exit());
}

}  // namespace moegate
