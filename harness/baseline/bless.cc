// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/bless.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/baseline/creep.h"
#include "harness/baseline/find_baseline.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestProcesses = 3;  // with fewer a row rarely decides anything

void refuse_unfit_run(const RunInfo& run, const BlessOptions& options) {
  if (trimmed(options.reason).empty())
    usage_error("bless: --reason is missing; say why the baseline changes");
  std::string why;
  if (run.dirty && !options.allow_dirty) {
    why = fmt::format(
        "was built from uncommitted changes on {}; commit them and run again, or give --accept "
        "dirty",
        run.git_sha.empty() ? "no commit" : run.git_sha);
  } else if (run.status != "complete") {
    why = fmt::format("is {}; finish it with `moegate run --resume {}`", run.status, run.id);
  } else if (is_partial(run)) {
    why = "ran only a part of its suites (--filter, --variant, --axis or --shard); run all of them";
  }
  if (!why.empty()) usage_error("bless: {} {}", describe(run), why);
}

/// Rows that speak against a blessing, one a line; the first ten and how many more.
std::string list_of(const std::vector<std::string>& rows) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) text += "\n  " + rows[i];
  if (rows.size() > kShown) text += fmt::format("\n  and {} more", rows.size() - kShown);
  return text;
}

void refuse_bad_results(const RunInfo& run, const Sides& sides) {
  std::vector<std::string> bad;
  size_t usable = 0;
  for (const auto& [id, side] : sides) {
    usable += side.measured();
    if (side.measured() || side.status == Status::unsupported) continue;
    bad.push_back(fmt::format("{} {} {}: {}", name_of(side.status), id.key, id.variant, side.why));
  }
  if (!bad.empty()) {
    usage_error(
        "bless: {} has {} results that a baseline must not hold; repair them and run again:{}",
        describe(run), bad.size(), list_of(bad));
  }
  if (usable == 0) usage_error("bless: {} has no measured result; run it again", describe(run));
}

std::string why_unfit(const Side& side) {
  if (!side.why.empty() && side.disturbed) return side.why;
  return fmt::format(
      "{} processes spread by {:.2g} %; a baseline needs {} processes that spread by at most {}",
      side.level.n, 100 * side.level.sd_log, kFewestProcesses, limit(kWidestSpread));
}

/// A row that a blessing left out would be new on every later night and never judged.
void refuse_noisy_rows(const RunInfo& run, const Sides& sides) {
  std::vector<std::string> noisy;
  size_t measured = 0;
  for (const auto& [id, side] : sides) {
    if (!side.measured()) continue;
    ++measured;
    if (!side.fit() || side.level.n < kFewestProcesses) {
      noisy.push_back(fmt::format("{} {}: {}", id.key, id.variant, why_unfit(side)));
    }
  }
  if (noisy.empty()) return;
  usage_error(
      "bless: {}: {} of {} measured rows are too noisy for a baseline; run again on a quiet "
      "machine, or with more --rounds:{}",
      describe(run), noisy.size(), measured, list_of(noisy));
}

struct Plan {
  fs::path path;
  bool exists = false;  // the file, before
  Baseline now;
  std::vector<BaselineChange> changes;
  std::vector<EnvironmentChange> environment;
  std::string kind;

  bool empty() const { return exists && changes.empty() && environment.empty(); }
};

/// Nothing says what the anchors of other conditions are worth now.
void forget_anchors(Plan& p, const BlessOptions& options) {
  if (!options.accept_creep) {
    usage_error(
        "bless: {}: too few rows launch the same machine code as in the baseline, so its anchors "
        "cannot be kept; first bless a run of the baseline's program under the new conditions, or "
        "drop the anchors with --accept creep",
        p.path.string());
  }
  reset_anchors(p.now);
}

/// By which its new rows are until the ledger says which id comes next.
constexpr const char* kNoIdYet = "B0000";

Plan plan(const RunInfo& run, const std::string& suite, const Sides& sides,
          const BlessOptions& options) {
  Plan p;
  p.path = baseline_path(options.baselines, run.device.klass, suite);
  std::error_code ignored;
  p.exists = fs::exists(p.path, ignored);
  const Baseline before = p.exists ? read_baseline(p.path) : Baseline{};
  const BaselineHeader& header = before.header;
  if (p.exists) {
    check_recorded(p.path, header.klass, header.suite, options.baselines / "blessings.tsv");
  }
  p.now = settle(before, to_baseline(run, suite, sides, kNoIdYet, options.environment), p.changes);
  p.environment = changes_between(before.header.environment, p.now.header.environment);
  const Limits limits = Limits::of(run.device.backend);
  p.kind = blessing_kind(before, p.now, kNoIdYet, limits.fail_at);
  if (p.kind == "epoch") {
    if (!options.new_conditions) {
      usage_error(
          "bless: {}: {}; run under the baseline's conditions, or replace the file with --accept "
          "conditions",
          p.path.string(), other_conditions(before.header, p.now.header));
    }
    if (!carry_anchors(before, p.now)) forget_anchors(p, options);
  }
  const std::string creep = beyond_anchor(p.now, CreepLimits::of(run.device.backend, limits));
  if (creep.empty() || p.empty()) return p;
  if (!options.accept_creep)
    usage_error("bless: {}; make it faster, or accept the loss with --accept creep", creep);
  reset_anchors(p.now);
  p.kind = "accept_regression";
  return p;
}

std::string bless_suite(const RunInfo& run, const std::string& suite, Plan p,
                        const BlessOptions& options) {
  const fs::path ledger = options.baselines / "blessings.tsv";
  if (p.empty()) return fmt::format("{}: nothing moved, unchanged\n", p.path.string());
  const std::string id = next_blessing(ledger);
  for (auto& [key, row] : p.now.rows) {
    if (row.by == kNoIdYet) row.by = id;
  }
  record_blessing(ledger, p.path, format_baseline(p.now),
                  {.id = id,
                   .kind = p.kind,
                   .author = options.author,
                   .klass = run.device.klass,
                   .suite = suite,
                   .run = describe(run),
                   .git_sha = run.git_sha,
                   .reason = options.reason,
                   .program = run.program});
  std::string text = fmt::format("{}: {} rows, {} changed by {} ({})\n", p.path.string(),
                                 p.now.rows.size(), p.changes.size(), id, p.kind);
  for (const EnvironmentChange& c : p.environment) text += fmt::format("  {}\n", c.text());
  for (const BaselineChange& c : p.changes) {
    if (p.exists) text += fmt::format("  {} {}: {}\n", c.key, c.variant, c.what);
  }
  return text;
}

void refuse_unfit(const RunInfo& run, const Sides& sides, const BlessOptions& options) {
  refuse_unfit_run(run, options);
  refuse_bad_results(run, sides);
  refuse_noisy_rows(run, sides);
}

/// As the ledger's kinds are: see blessing_kind().
std::string resource_kind(const std::string& before, const std::string& compiler,
                          const ResourceFile& now, const std::vector<ResourceChange>& changes) {
  using Kind = ResourceChange::Kind;
  const auto all = [&](Kind kind) {
    return !changes.empty() &&
           std::ranges::all_of(changes, [&](const auto& c) { return c.kind == kind; });
  };
  if (before.empty() || all(Kind::added)) return "record";
  if (compiler != now.compiler) return "epoch";
  if (std::ranges::any_of(changes, [](const auto& c) { return c.kind == Kind::worse; })) {
    return "accept_regression";
  }
  return all(Kind::removed) ? "retire" : "ratchet";
}

}  // namespace

std::string why_unfit(const RunInfo& run, const Sides& sides) {
  BlessOptions any;
  any.reason = "any";
  any.allow_dirty = true;
  try {
    refuse_unfit(run, sides, any);
  } catch (const Error& refusal) {
    return refusal.what();
  }
  return "";
}

std::string bless(const RunInfo& run, const Sides& sides, const BlessOptions& options) {
  refuse_unfit(run, sides, options);

  std::set<std::string> suites;
  for (const auto& [id, side] : sides) suites.insert(id.suite);
  const BlessingLock lock(options.baselines / "blessings.tsv");
  // A refusal of the last suite must not leave the first one blessed.
  std::map<std::string, Plan> plans;
  for (const std::string& suite : suites) plans[suite] = plan(run, suite, sides, options);
  std::string text;
  for (auto& [suite, p] : plans) text += bless_suite(run, suite, std::move(p), options);
  return text;
}

ResourceFile blessed_resources(const fs::path& baselines, const std::string& klass) {
  const fs::path path = baseline_path(baselines, klass, kResources);
  finish_blessings(baselines / "blessings.tsv");
  if (!is_file(path)) {
    give_up(Exit::no_baseline,
            "{}: there is no such file; `moegate bless --resources --reason '...'` writes it",
            path.string());
  }
  check_recorded(path, klass, kResources, baselines / "blessings.tsv");
  ResourceFile file = read_resources(path);
  if (file.klass == klass) return file;
  usage_error("{}: this file has class '{}' instead of '{}'; restore it", path.string(), file.klass,
              klass);
}

std::string bless_resources(const ResourceFile& now, const std::vector<ResourceChange>& changes,
                            const fs::path& baselines, Blessing blessing) {
  if (trimmed(blessing.reason).empty()) {
    usage_error("resources: --reason is missing; say why the file changes");
  }
  const fs::path path = baseline_path(baselines, now.klass, kResources);
  const fs::path ledger = baselines / "blessings.tsv";
  const BlessingLock lock(ledger);
  std::string before, compiler;
  if (is_file(path)) {
    compiler = blessed_resources(baselines, now.klass).compiler;
    before = read_file(path);
  }
  const std::string text = format_resources(now);
  if (text == before) return fmt::format("{}: nothing moved, unchanged\n", path.string());

  blessing.id = next_blessing(ledger);
  blessing.kind = resource_kind(before, compiler, now, changes);
  blessing.klass = now.klass;
  blessing.suite = kResources;
  record_blessing(ledger, path, text, blessing);
  std::string said =
      fmt::format("{}: {} lines, {} changed by {} ({})\n", path.string(),
                  now.rows.size() + now.modules.size(), changes.size(), blessing.id, blessing.kind);
  for (const ResourceChange& change : changes) {
    if (!before.empty()) said += line_of(change);
  }
  return said;
}

}  // namespace moegate
