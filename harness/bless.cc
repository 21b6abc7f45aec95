// SPDX-License-Identifier: Apache-2.0
#include "harness/bless.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "harness/evidence.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr int kEnoughProcesses = 3;  // with fewer a row rarely decides anything

void refuse_unfit_run(const RunInfo& run, const BlessOptions& options) {
  const bool blank = std::all_of(options.reason.begin(), options.reason.end(),
                                 [](unsigned char c) { return c <= ' '; });
  if (blank) usage_error("bless: a baseline moves only with a --reason; say why this one should");
  if (run.dirty && !options.allow_dirty) {
    usage_error(
        "bless: {} was built from uncommitted changes on {}; commit and run again, or "
        "--allow-dirty",
        describe(run), run.git_sha.empty() ? "no commit" : run.git_sha);
  }
  if (run.status != "complete") {
    usage_error("bless: {} is {}; finish it with `moegate run --resume {}`", describe(run),
                run.status, run.id);
  }
  if (is_partial(run)) {
    usage_error(
        "bless: {} ran only a part of its suites (--filter, --kernel, --axis or --shard); run all "
        "of them",
        describe(run));
  }
}

void refuse_bad_results(const RunInfo& run, const Sides& sides) {
  constexpr size_t kShown = 10;
  std::string list;
  size_t bad = 0, usable = 0;
  for (const auto& [id, side] : sides) {
    usable += side.measured();
    if (side.measured() || side.status == Status::unsupported) continue;
    if (++bad <= kShown)
      list += fmt::format("\n  {} {} {}: {}", name_of(side.status), id.key, id.variant, side.why);
  }
  if (bad > kShown) list += fmt::format("\n  and {} more", bad - kShown);
  if (bad > 0)
    usage_error("bless: {} has {} results that no baseline may hold:{}", describe(run), bad, list);
  if (usable == 0) usage_error("bless: {} has no measured result", describe(run));
}

std::string today_utc() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

std::string bless_suite(const RunInfo& run, const std::string& suite, const Sides& sides,
                        const BlessOptions& options) {
  const fs::path path = options.baselines / run.device.klass / (suite + ".tsv");
  const fs::path ledger = options.baselines / "blessings.tsv";
  const std::string id = next_blessing(ledger);
  Baseline now = to_baseline(run, suite, sides, id);
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  std::vector<BaselineChange> changes;
  now = settle(exists ? read_baseline(path) : Baseline{}, std::move(now), changes);
  if (exists && changes.empty())
    return fmt::format("{}: nothing moved, unchanged\n", path.string());

  append_blessing(ledger, {id, today_utc(), options.author, run.device.klass, suite, describe(run),
                           run.git_sha, options.reason});
  write_baseline(path, now);
  std::string text = fmt::format("{}: {} rows, {} changed by {}\n", path.string(), now.rows.size(),
                                 changes.size(), id);
  for (const BaselineChange& c : changes) {
    if (exists) text += fmt::format("  {} {}: {}\n", c.key, c.variant, c.what);
  }
  return text;
}

}  // namespace

std::string bless(Store& store, const BlessOptions& options) {
  const RunInfo run = store.run_info(store.find_run(options.run));
  refuse_unfit_run(run, options);
  const Sides sides = collect(store.levels(run.id), run.device.backend);
  refuse_bad_results(run, sides);

  std::set<std::string> suites;
  int fewest = kEnoughProcesses;
  for (const auto& [id, side] : sides) {
    suites.insert(id.suite);
    if (side.measured()) fewest = std::min(fewest, side.level.n);
  }
  std::string text;
  for (const std::string& suite : suites) text += bless_suite(run, suite, sides, options);
  if (fewest < kEnoughProcesses) {
    text += fmt::format(
        "note: some cases have {} process(es); use --rounds {} or more for a baseline that can "
        "decide\n",
        fewest, kEnoughProcesses);
  }
  return text;
}

}  // namespace moegate
