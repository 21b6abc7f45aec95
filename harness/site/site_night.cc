// SPDX-License-Identifier: Apache-2.0
// The page of a run, or of an A/B by its head: verdicts, waivers, machine, coverage.
#include <fmt/format.h>

#include <algorithm>

#include "harness/baseline/waivers.h"
#include "harness/report/gate_report.h"
#include "harness/site/site_parts.h"

namespace moegate {
namespace {

Table waivers_table(const std::string& klass) {
  Table table{{"waiver", "expires", "owner", "reason", "issue"}, {}};
  for (const Waiver& waiver : waivers_of_home()) {
    if (waiver.klass != klass) continue;
    table.rows.push_back(
        {{waiver.id}, {day_text(waiver.expires)}, {waiver.owner}, {waiver.reason}, {waiver.issue}});
  }
  return table;
}

Table machine_table(Site& site, const SiteRun& run) {
  const RunInfo& info = run.info;
  const DeviceFacts& device = info.device;
  Table table{{"what", "value"}, {}};
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) table.rows.push_back({{what}, {value}});
  };
  add("device", device.name);
  add("class", device.klass);
  add("uuid", device.uuid);
  add("driver", device.driver);
  add("host", info.host);
  add("commit", info.git_sha.empty() ? "unknown" : info.git_sha + (info.dirty ? " DIRTY" : ""));
  add("build", info.build);
  add("protocol", std::to_string(info.protocol));
  add("timer", info.timer);
  add("flush", info.flush);
  add("rounds", std::to_string(info.rounds));
  const std::string throttle = throttle_summary(site.store, info.id);
  add("clocks throttled", throttle.empty() ? "not seen" : throttle);
  add("started", info.started);
  add("finished", info.finished);
  return table;
}

bool all_passed(const SiteRun& run) {
  return std::ranges::all_of(run.outcomes, [](const auto& outcome) {
    return outcome.first == "pass" || outcome.first == "identical" || outcome.first == "improved";
  });
}

/// Which reports a night shows. Of a year's nights nearly all passed: their verdicts, most of what a
/// store has, are not read to find none.
const char* list_of(const SiteRun& run, bool whole) {
  if (!run.judged()) return "run";
  if (whole) return "night";
  return all_passed(run) ? "older-passed-night" : "older-night";
}

}  // namespace

Page night_page_of(Site& site, const SiteRun& run, bool whole) {
  Page page;
  Line line = health_of(run);
  line.push_back(plain(fmt::format(", on {}, commit {}, {}", run.info.device.name,
                                   commit_of(run.info), minute_of(run.info.started))));
  // An older night shows what was not well: the rest is the store's.
  const bool open = run.judged() && !whole;
  Paragraph health{{line}};
  if (open) health.lines.push_back({plain("Rows that passed are left out of an older night.")});
  page.sections.push_back({0, {std::move(health)}});
  for (const std::string& report : reports_of(list_of(run, whole)))
    add_report(page, site, report, {.run = run.info.id, .open = open});
  Table waivers = waivers_table(run.info.device.klass);
  if (!waivers.rows.empty())
    page.sections.push_back({0, {Heading{"Waivers as they are now"}, Rows{std::move(waivers)}}});
  Section machine{0, {Heading{"Machine and program"}, Rows{machine_table(site, run)}}};
  const std::string repeat = site.options.repeat ? site.options.repeat(run.info) : "";
  if (!repeat.empty()) machine.blocks.push_back(Commands{{{"To repeat", repeat}}});
  page.sections.push_back(std::move(machine));
  return page;
}

}  // namespace moegate
