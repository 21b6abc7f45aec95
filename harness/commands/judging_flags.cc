// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/judging_flags.h"

#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/commands/flags.h"

namespace moegate {
namespace {

/// The kind of a file follows from its name. Throws Error(usage) for another ending.
void add_output(PublishOptions& publish, const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto set = [&](std::optional<std::string>& field) {
    if (field) {
      usage_error("--out {} and --out {}: both are {} files; keep one", *field, path, ending);
    }
    output(field)(path);
  };
  if (ending == ".md") return set(publish.report);
  if (ending == ".html") return set(publish.page);
  if (ending == ".xml") return set(publish.junit);
  if (ending == ".json") return set(publish.verdict);
  usage_error(
      "--out {}: the ending says what is written; use .md (report), .html (report with charts), "
      ".xml (JUnit) or .json (verdict)",
      path);
}

}  // namespace

Limits LimitOptions::of(Backend backend) const {
  Limits limits = Limits::of(backend);
  limits.margin = margin.value_or(limits.margin);
  limits.fail_at = fail_at.value_or(limits.fail_at);
  if (limits.fail_at < limits.margin) {
    usage_error("--fail-at {:g}% is below --margin {:g}%; a row cannot fail inside the margin",
                100 * limits.fail_at, 100 * limits.margin);
  }
  return limits;
}

Flags limit_flags(LimitOptions& limits) {
  const auto share = [](const char* name, std::optional<double>& field) {
    return flag(name, [name, &field](const std::string& text) {
      field = parse_share("--" + std::string(name), text);
    });
  };
  Flags flags("What counts as slower");
  flags.add(share("margin", limits.margin)).add(share("fail-at", limits.fail_at));
  return flags;
}

Flags judging_flags(JudgingOptions& judging, const char* fail_on) {
  PublishOptions& publish = judging.publish;
  Flags flags("How to judge");
  flags.add(flag(
      "fail-on", [&](const std::string& list) { judging.fail_on = parse_fail_on(list); }, fail_on));
  flags.add(format_flag(publish.format));
  const auto add_outputs = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) add_output(publish, path);
  };
  flags.add(flag("out", po::value<std::vector<std::string>>()->notifier(add_outputs),
                 "also write the report (.md), as one HTML file with charts (.html), as JUnit XML "
                 "(.xml) or the verdict (.json, as the last act: a gate without one has failed); "
                 "may be repeated"));
  flags.add(flag("github", publish.github));
  flags.add(limit_flags(judging.limits));
  return flags;
}

}  // namespace moegate
