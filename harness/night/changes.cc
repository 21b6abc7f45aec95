// SPDX-License-Identifier: Apache-2.0
#include "harness/night/changes.h"

#include <algorithm>
#include <set>

#include "harness/base/files.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  return is_file(path) ? read_file(path) : "";
}

/// The files below a folder of either home, relative to it.
std::set<fs::path> files_below(const fs::path& home, const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(home / folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error)) files.insert(at->path().lexically_relative(home));
  }
  return files;
}

void tell_variants(const Hello& base, const Hello& head, std::vector<std::string>& told) {
  for (const VariantDescription& v : base.variants) {
    const bool kept = std::ranges::any_of(head.variants, [&](const VariantDescription& h) {
      return h.op == v.op && h.name == v.name && h.backend == v.backend;
    });
    if (!kept) told.push_back(fmt::format("variant {} of {} was removed or renamed", v.name, v.op));
  }
}

void tell_yardsticks(const Hello& base, const Hello& head, std::vector<std::string>& told) {
  if (head.device.backend != Backend::host) return;
  for (const OpDescription& b : base.operators) {
    const auto h = std::ranges::find(head.operators, b.name, &OpDescription::name);
    if (h == head.operators.end() || h->yardstick == b.yardstick) continue;
    told.push_back(
        fmt::format("the yardstick of {} is '{}', it was '{}'", b.name, h->yardstick, b.yardstick));
  }
}

void tell_files(const ChangedSide& base, const ChangedSide& head, const fs::path& folder,
                const char* what, std::vector<std::string>& told) {
  std::set<fs::path> files = files_below(base.home, folder);
  files.merge(files_below(head.home, folder));
  for (const fs::path& file : files) {
    if (file.extension() == ".md" || file.stem().string().ends_with("_test")) continue;
    const fs::path before = base.home / file, now = head.home / file;
    if (text_of(before) == text_of(now) && is_file(before) == is_file(now)) continue;
    const char* how = !is_file(before) ? "added" : is_file(now) ? "edited" : "removed";
    told.push_back(fmt::format("{} {} was {}", what, file.string(), how));
  }
}

/// Those that the base states, place by place.
void tell_own_suites(const ChangedSide& base, const ChangedSide& head,
                     std::vector<std::string>& told) {
  for (size_t i = 0; i < base.suites.size(); ++i) {
    const fs::path before = base.suites[i], now = head.suites[i];
    if (before == now || text_of(before) == text_of(now)) continue;
    told.push_back(fmt::format("suite file {} was edited", now.filename().string()));
  }
}

/// The suites as the base has them: those that it states; else one that is named, or a file of the
/// head's folder, is the file of that name in the base's.
RunOptions options_of_base(RunOptions options, const ChangedSide& base, const ChangedSide& head) {
  if (!base.suites.empty()) {
    options.suites = base.suites;
    return options;
  }
  for (std::string& suite : options.suites) {
    const fs::path path = suite;
    const bool of_head = path.parent_path() == head.home / "suites";
    const fs::path own =
        base.home / "suites" / (of_head ? path.filename() : fs::path(suite + ".suite"));
    if (is_file(own)) suite = own.string();
  }
  return options;
}

void find_lacking(const ChangedSide& base, const ChangedSide& head, const RunOptions& options,
                  const std::vector<RowName>& planned, Changes& changes) {
  try {
    const RunOptions own = options_of_base(options, base, head);
    const Plan plan = select_rows(own, load_cases(own, base.hello), base.hello);
    const std::set<RowName> known(planned.begin(), planned.end());
    for (const PlannedCase& c : plan.cases) {
      for (const std::string& variant : c.variants) {
        if (known.count({c.spec.key(), variant}) > 0) continue;
        changes.lacking.push_back({c.spec.suite, c.spec.key(), variant});
      }
    }
  } catch (const Error& e) {
    changes.told.push_back(fmt::format("the base's suites cannot be read: {}", e.what()));
  }
}

}  // namespace

Changes changes_between(const ChangedSide& base, const ChangedSide& head, const RunOptions& options,
                        const std::vector<RowName>& planned) {
  Changes changes;
  std::vector<std::string>& told = changes.told;
  tell_variants(base.hello, head.hello, told);
  tell_yardsticks(base.hello, head.hello, told);
  const bool homes = !base.home.empty() && !head.home.empty() && base.home != head.home;
  if (!homes && base.suites.empty()) return changes;
  find_lacking(base, head, options, planned, changes);
  if (!changes.lacking.empty()) {
    told.insert(told.begin(), fmt::format("{} rows of the base's suites are missing in the head's",
                                          changes.lacking.size()));
  }
  tell_own_suites(base, head, told);
  if (!homes) return changes;
  tell_files(base, head, "suites", "suite file", told);
  tell_files(base, head, "baselines", "baseline file", told);
  if (text_of(base.home / "ci/waivers.ini") != text_of(head.home / "ci/waivers.ini")) {
    told.push_back("ci/waivers.ini was edited");
  }
  for (const char* room : {"harness/judge", "harness/cause", "harness/baseline"}) {
    tell_files(base, head, room, "rule of judging", told);
  }
  return changes;
}

}  // namespace moegate
