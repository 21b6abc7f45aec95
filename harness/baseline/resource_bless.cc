// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/resource_bless.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/baseline/baseline.h"
#include "harness/baseline/blessing.h"
#include "harness/baseline/find_baseline.h"
#include "harness/baseline/waivers.h"
#include "harness/values/kernel_name.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

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

ResourceFile blessed_resources(const fs::path& baselines, const std::string& klass) {
  const fs::path path = baseline_path(baselines, klass, kResources);
  finish_blessings(baselines / "blessings.tsv");
  if (!is_file(path)) {
    throw Error(Exit::no_baseline,
                fmt::format("{}: is not there; `moegate bless --resources --reason '...'` makes it",
                            path.string()));
  }
  check_recorded(path, klass, kResources, baselines / "blessings.tsv");
  ResourceFile file = read_resources(path);
  if (file.klass == klass) return file;
  usage_error("{}: is of class '{}', not '{}'", path.string(), file.klass, klass);
}

std::string bless_resources(const ResourceFile& now, const std::vector<ResourceChange>& changes,
                            const fs::path& baselines, const ResourceBlessing& blessing) {
  if (trimmed(blessing.reason).empty()) {
    usage_error("resources: the file moves only with a --reason; say why this one should");
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

  const std::string id = next_blessing(ledger);
  const std::string kind = resource_kind(before, compiler, now, changes);
  record_blessing(ledger, path, text,
                  {.id = id,
                   .date = fmt::format("{:%F}", today()),
                   .kind = kind,
                   .author = blessing.author,
                   .klass = now.klass,
                   .suite = kResources,
                   .run = blessing.run,
                   .git_sha = blessing.git_sha,
                   .reason = blessing.reason,
                   .program = blessing.program,
                   .sha256 = ""});
  std::string said = fmt::format("{}: {} lines, {} kernels changed by {} ({})\n", path.string(),
                                 now.rows.size(), changes.size(), id, kind);
  for (const ResourceChange& c : changes) {
    if (before.empty()) break;
    said += fmt::format("  {}: {} {}: {}\n", name_of(c.kind), c.file, kernel_name(c.kernel).whole(),
                        c.what);
  }
  return said;
}

}  // namespace moegate
