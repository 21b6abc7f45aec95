// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "harness/base/text.h"
#include "harness/baseline/waivers.h"
#include "harness/judge/steps.h"
#include "harness/judge/verdict.h"
#include "harness/report/gate_report.h"
#include "harness/site/site_data.h"
#include "harness/site/site_parts.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

// The start of a site: what changed, how things are, how it came about.

constexpr size_t kShownRuns = 30;

Line title_of(const SiteRun& run) {
  Line line = health_of(run);
  line.push_back(plain(" in run "));
  line.push_back(linked(name_of(run), night_page(run.info.id)));
  line.push_back(plain(fmt::format(" of {}, commit {}, on {}", minute_of(run.info.started),
                                   short_measured_commit(run.info), run.info.device.name)));
  return line;
}

/// The level of an operator in a run: how its rows compare with their own means over all runs.
struct Index {
  double sum = 0;
  int rows = 0;
};

/// Adds what a row of one series of runs says to its operator's index.
void add_row(const SiteData& data, const SiteRow& row, int conditions,
             std::map<std::pair<std::string, uint32_t>, Index>& indices) {
  const Points points = histories_of(data, row)[conditions];
  double sum = 0;
  for (const SitePoint* p : points) sum += p->mean_log;
  for (const SitePoint* p : points) {
    Index& index = indices[{row.op, p->run}];
    index.sum += p->mean_log - sum / static_cast<double>(points.size());
    ++index.rows;
  }
}

Table sparklines(const SiteData& data, const SiteRun& newest) {
  std::map<std::pair<std::string, uint32_t>, Index> indices;
  for (const SiteRow& row : data.rows) add_row(data, row, newest.conditions, indices);
  Table table{{"operator", "run", "started", "commit", "level (%)", "rows"}};
  for (const auto& [at, index] : indices) {
    const auto& [op, i] = at;
    const SiteRun& run = data.runs[i];
    table.add(op, run.info.id, minute_of(run.info.started), short_measured_commit(run.info),
              Table::number("{:.2f}", 100 * std::exp(index.sum / index.rows)), index.rows);
  }
  add_links(table);
  return table;
}

Table runs_table(const SiteData& data, bool ab) {
  const std::vector<const char*> shown = {"regressed",    "wrong",    "missing",
                                          "inconclusive", "improved", "pass"};
  Table table{{"run", "label", "started", "device", "commit"}};
  table.columns.insert(table.columns.end(), shown.begin(), shown.end());
  table.columns.emplace_back("blind");
  for (auto run = data.runs.rbegin(); run != data.runs.rend(); ++run) {
    if (run->ab != ab || (ab && !run->judged()) || table.rows.size() == kShownRuns) continue;
    const RunInfo& info = run->info;
    table.add(info.id, info.label, minute_of(info.started), info.device.name,
              short_measured_commit(info));
    const auto count = [&](int n) {
      table.rows.back().push_back({run->judged() ? std::to_string(n) : "", true});
    };
    for (const char* outcome : shown) {
      const int* n = find_or_null(run->outcomes, outcome);
      count(n ? *n : 0);
    }
    count(run->blind);
  }
  return table;
}

void add_list(Page& page, const char* title, Table table) {
  if (table.rows.empty()) return;
  add_links(table);
  page.add(0, Heading{title}, Rows{std::move(table)});
}

void add_newest(Page& page, Site& site, const SiteRun& run) {
  page.add(0, Heading{run.info.device.name}, Paragraph{{title_of(run)}});
  Table lines = sparklines(site.data, run);
  if (lines.rows.empty()) return;
  List operators;
  const std::string id = std::to_string(run.info.id);
  for (const auto& row : lines.rows) {
    if (row[1].text != id) continue;
    operators.items.push_back({linked(row[0].text, operator_page(row[0].text, run.info.id))});
  }
  page.add(0, Heading{"Operators on " + run.info.device.name}, std::move(operators),
           Chart{page_chart("operators"),
                 "Level of each operator, 100 % is its mean; lower is better", std::move(lines)});
}

// The page of a run, or of an A/B by its head: verdicts, waivers, machine, coverage.

Table waivers_table(const std::string& file, const std::string& klass) {
  Table table{{"waiver", "expires", "owner", "reason", "issue"}};
  if (file.empty()) return table;
  for (const Waiver& waiver : read_waivers(file)) {
    if (waiver.klass != klass) continue;
    table.add(waiver.id, fmt::format("{:%F}", waiver.expires), waiver.owner, waiver.reason,
              waiver.issue);
  }
  return table;
}

Table machine_table(Site& site, const SiteRun& run) {
  const RunInfo& info = run.info;
  const DeviceFacts& device = info.device;
  Table table{{"what", "value"}};
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) table.add(what, value);
  };
  add("device", device.name);
  add("class", device.klass);
  add("uuid", device.uuid);
  add("driver", device.driver);
  add("host", info.host);
  const auto repository = info.tags.find(kRepositoryTag);
  if (repository != info.tags.end())
    add("kernels", fmt::format("{} at {}", repository->second, measured_commit(info)));
  add("commit of moegate",
      info.git_sha.empty() ? "unknown" : info.git_sha + (info.dirty ? " DIRTY" : ""));
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

/// A night's reports. Nearly all nights passed: their verdicts are not read to find nothing.
const char* list_of(const SiteRun& run, bool whole) {
  if (!run.judged()) return "run";
  if (whole) return "night";
  const bool all_passed = std::ranges::all_of(run.outcomes, [](const auto& outcome) {
    return outcome.first == "pass" || outcome.first == "identical" || outcome.first == "improved";
  });
  return all_passed ? "older-passed-night" : "older-night";
}

// The page of a row: its history, and what the newest run saw of it.

std::vector<LevelChart::Point> points_of(const Points& points) {
  std::vector<LevelChart::Point> shown;
  shown.reserve(points.size());
  uint32_t before = 0;  // code; 0: unknown
  for (const SitePoint* p : points) {
    const bool known = p->code != 0 && before != 0;
    shown.push_back({p->run, p->mean_log, static_cast<float>(half_interval(*p)), p->processes,
                     !known              ? LevelChart::Code::unknown
                     : p->code == before ? LevelChart::Code::same
                                         : LevelChart::Code::changed});
    before = p->code;
  }
  return shown;
}

LevelChart level_chart_of(const Site& site, const SiteRow& row, int conditions,
                          const Points& points) {
  const SiteRun& run = site.data.runs[points.back()->run];
  const Limits limits = Limits::of(run.info.device.backend);
  const auto base = row.bases.find(conditions);
  return {
      .file = page_chart("history"),
      .title = fmt::format("History: {} on {}; lower is better",
                           run.host() ? "ratio to the yardstick" : "span in us",
                           run.host() ? run.info.device.klass : run.info.device.name),
      .unit = run.host() ? "ratio" : "us",
      .signals = {{"baseline", base == row.bases.end() ? "0" : fmt::format("{:.6g}", base->second)},
                  {"margin", fmt::format("{:g}", limits.fail_at)}},
      .runs = site.run_names,
      .points = points_of(points),
      .steps = {}};
}

/// What the steps of a history do not say.
std::string note_on_steps(size_t runs, bool left_out, bool found) {
  if (left_out) {
    return "Steps of unchanged code were not looked for here: many histories may have some, and "
           "others more clearly; the command below finds them.";
  }
  if (runs > kSearched) {
    return fmt::format(
        "Steps are looked for in the newest {} runs; the command below finds others.", kSearched);
  }
  return found ? "" : no_step_in(runs);
}

void add_history(Page& page, Site& site, size_t place) {
  const SiteRow& row = site.data.rows[place];
  for (const auto& [conditions, points] : histories_of(site.data, row)) {
    LevelChart chart = level_chart_of(site, row, conditions, points);
    chart.steps = steps_of(points, site.steps.searched.contains({place, conditions}));
    chart.of_environment =
        steps_of_environment(site.store, site.data, points, chart.steps, site.pairs);
    const std::string note = note_on_steps(
        points.size(), site.steps.left_out.contains({place, conditions}), !chart.steps.empty());
    page.add(0, std::move(chart));
    if (!note.empty()) page.add(0, Paragraph{{{plain(note)}}, /*small=*/true});
  }
}

/// Of each class, nights whose page has the rows that passed.
constexpr size_t kWholeNights = 7;

std::vector<std::string> operators_of(Store& store, int64_t run) {
  return values_of<std::string>(store.database(),
                                "SELECT DISTINCT op FROM run_case JOIN bench_case USING (case_id) "
                                "WHERE run_id = ?1 ORDER BY op",
                                run);
}

Page operator_page_of(Site& site, const std::string& op, const SiteRun& run) {
  Page page;
  page.add(0, Paragraph{{{plain("Operator "), code(op), plain(" in run "),
                          linked(name_of(run), night_page(run.info.id)),
                          plain(" on " + run.info.device.name + ".")}}});
  for (const std::string& report : reports_of("operator"))
    add_report(page, site, report, {.run = run.info.id, .op = op});
  return page;
}

Page report_page_of(Site& site, const std::string& report, int64_t run) {
  Page page;
  add_report(page, site, report, {run});
  if (page.sections.empty()) page.add(0, paragraph("No rows."));
  return page;
}

/// The newest run of a suite that is called like a report; 0: there is none.
int64_t run_of_suite(Store& store, const std::string& suite) {
  return store.database().integer(
      "SELECT max(run_id) FROM run JOIN run_case USING (run_id) "
      "WHERE suite = ?1 AND run.status = 'complete' AND task = 'measure'",
      suite);
}

Page pull_requests_page(Site& site) {
  Page page;
  for (const std::string& suite : reports_of("pull-requests")) {
    const int64_t run = run_of_suite(site.store, suite);
    if (run == 0) continue;
    page.add(0, Heading{suite});
    const bool has_report = std::ranges::count(report_names(), suite) > 0;
    add_report(page, site, has_report ? suite : "speedup", {run});
  }
  return page;
}

/// Adds the pages of what is shown as today: operators and reports.
void add_newest(const std::shared_ptr<Site>& site, const SiteRun& run,
                std::vector<SitePage>& pages) {
  const int64_t id = run.info.id;
  for (const std::string& op : operators_of(site->store, id)) {
    pages.push_back(
        {operator_page(op, id), op, [site, op, &run] { return operator_page_of(*site, op, run); }});
  }
  std::vector<std::string> reports = reports_of("reports");
  reports.insert(reports.end(), site->options.reports.begin(), site->options.reports.end());
  for (const std::string& report : reports) {
    const std::string name = std::filesystem::path(report).stem().string();
    pages.push_back({report_page(name, id), fmt::format("{} of run {}", name, id),
                     [site, report, id] { return report_page_of(*site, report, id); }});
  }
}

void sort_by_file(std::vector<SiteRow>& rows) {
  std::vector<std::pair<uint32_t, SiteRow*>> order;
  for (SiteRow& row : rows) order.emplace_back(file_hash(case_page(row.key, row.variant)), &row);
  std::ranges::sort(order, {}, [](const auto& row) {
    return std::tie(row.first, row.second->key, row.second->variant);
  });
  rows = mapped(order, [](const auto& row) { return std::move(*row.second); });
}

std::vector<LevelChart::Run> names_of(const std::vector<SiteRun>& runs) {
  return mapped(runs, [](const SiteRun& run) {
    return LevelChart::Run{std::to_string(run.info.id), minute_of(run.info.started),
                           short_measured_commit(run.info)};
  });
}

Page start_page(Site& site) {
  Page page;
  add_changes(page, site);
  for (const size_t i : newest_runs(site.data)) add_newest(page, site, site.data.runs[i]);
  add_list(page, "Runs", runs_table(site.data, false));
  add_list(page, "A/B", runs_table(site.data, true));
  return page;
}

/// `whole`: with the rows that passed, which older nights leave out.
Page night_page_of(Site& site, const SiteRun& run, bool whole) {
  Page page;
  Line line = health_of(run);
  line.push_back(plain(fmt::format(", on {}, commit {}, {}; ", run.info.device.name,
                                   short_measured_commit(run.info), minute_of(run.info.started))));
  const std::string before = compare_page(site.data, run);
  if (!before.empty()) line.push_back(linked("compare with the run before", before));
  // An older night shows what was not well: the rest is the store's.
  const bool open = run.judged() && !whole;
  Paragraph health{{line}};
  if (open) health.lines.push_back({plain("Rows that passed are left out of an older night.")});
  page.add(0, std::move(health));
  for (const std::string& report : reports_of(list_of(run, whole)))
    add_report(page, site, report, {.run = run.info.id, .open = open});
  if (run.judged()) add_words(page, 0, limit(Limits::of(run.info.device.backend).blind_at));
  Table waivers = waivers_table(site.options.waivers, run.info.device.klass);
  if (!waivers.rows.empty())
    page.add(0, Heading{"Waivers as they are now"}, Rows{std::move(waivers)});
  page.add(0, Heading{"Machine and program"}, Rows{machine_table(site, run)});
  const std::string repeat = site.options.repeat ? site.options.repeat(run.info) : "";
  if (!repeat.empty()) page.sections.back().blocks.push_back(Commands{{{"To repeat", repeat}}});
  return page;
}

/// Asks the reports of rows' pages about all rows of the site, in their order; row_page() needs it.
void ask_about_rows(Site& site) {
  std::vector<AskedRow> rows;
  for (const SiteRow& row : site.data.rows) {
    rows.push_back({site.data.runs[row.points.back().run].info.id, row.case_id, row.variant});
  }
  ask_about(site.store, rows);
  site.first_results = first_results(site.store, rows.size());
  for (const std::string& name : reports_of("case")) {
    const ShownReport shown = shown_report(name);
    site.row_reports.emplace_back(shown, RowReport(site.store, shown.sql));
  }
}

/// `place`: index of the row. Rows in their order are read in one pass.
Page row_page(Site& site, size_t place) {
  const SiteRow& row = site.data.rows[place];
  const SiteRun& run = site.data.runs[row.points.back().run];
  const int64_t id = run.info.id;
  Page page;
  page.add(0, Paragraph{{{code(row.variant), plain(" of "), code(row.key)},
                         {plain("Newest run: "), linked(name_of(run), night_page(id)),
                          plain(" on " + run.info.device.name)}}});
  add_history(page, site, place);
  for (auto& [shown, report] : site.row_reports)
    add_table(page, shown, report.of(static_cast<int64_t>(place)));
  const std::string db = shell_word(site.options.db);
  const int64_t result = site.first_results[place];
  const std::string history =
      fmt::format("moegate report history --filter {} --variant {} --last 0 --db {}",
                  shell_word("^" + row.key + "$"), shell_word("^" + row.variant + "$"), db);
  page.add(0, Heading{"Commands"},
           Commands{{{"To repeat", fmt::format("moegate run --like {} --db {}", result, db)},
                     {"History", history}}});
  return page;
}

}  // namespace

std::string days_ago(int days) {
  return fmt::format("{:%F}", today() - std::chrono::days(days));
}

std::vector<SitePage> site_pages(Store& store, const SiteOptions& options) {
  const auto site = std::make_shared<Site>(Site{store, options, read_site(store, options.since)});
  if (site->data.runs.empty()) {
    give_up(Exit::coverage, "{}: no complete run{}; there is nothing to make pages of", options.db,
            options.since.empty() ? "" : " since " + options.since);
  }
  sort_by_file(site->data.rows);
  site->steps = plan_search(site->data);
  site->run_names = std::make_shared<const std::vector<LevelChart::Run>>(names_of(site->data.runs));
  ask_about_rows(*site);
  std::vector<SitePage> pages;
  pages.push_back({"start", "Start", [site] { return start_page(*site); }});
  std::map<std::string, size_t> nights;  // of a class
  for (auto run = site->data.runs.rbegin(); run != site->data.runs.rend(); ++run) {
    const bool whole = run->ab || nights[run->info.device.klass]++ < kWholeNights;
    pages.push_back({night_page(run->info.id), "Run " + name_of(*run),
                     [site, &run = *run, whole] { return night_page_of(*site, run, whole); }});
  }
  for (const size_t i : newest_runs(site->data)) add_newest(site, site->data.runs[i], pages);
  const auto has_run = [&](const std::string& suite) { return run_of_suite(store, suite) > 0; };
  if (std::ranges::any_of(reports_of("pull-requests"), has_run)) {
    pages.push_back(
        {"pull-requests", "Pull requests", [site] { return pull_requests_page(*site); }});
  }
  add_lookups(site, pages);
  for (size_t i = 0; i < site->data.rows.size(); ++i) {
    const SiteRow& row = site->data.rows[i];
    pages.push_back({case_page(row.key, row.variant), row.variant + " " + row.key,
                     [site, i] { return row_page(*site, i); }});
  }
  return pages;
}

}  // namespace moegate
