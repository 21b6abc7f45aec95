// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "harness/baseline/waivers.h"
#include "harness/site/site_parts.h"
#include "harness/site/site_steps.h"

namespace moegate {
namespace {

/// Of each class, nights whose page has the rows that passed.
constexpr size_t kWholeNights = 7;

std::set<std::string> operators_of(Store& store, int64_t run) {
  Statement q(store.database(),
              "SELECT DISTINCT op FROM run_case JOIN bench_case USING (case_id) WHERE run_id = ?1");
  q.bind(run);
  std::set<std::string> operators;
  while (q.step()) operators.insert(q.text(0));
  return operators;
}

Page operator_page_of(Site& site, const std::string& op, const SiteRun& run) {
  Page page;
  page.sections.push_back({0,
                           {Paragraph{{{plain("Operator "), code(op), plain(" in run "),
                                        linked(name_of(run), night_page(run.info.id)),
                                        plain(" on " + run.info.device.name + ".")}}}}});
  for (const std::string& report : reports_of("operator"))
    add_report(page, site, report, {.run = run.info.id, .op = op});
  return page;
}

Page report_page_of(Site& site, const std::string& report, int64_t run) {
  Page page;
  add_report(page, site, report, {run});
  if (page.sections.empty()) page.sections.push_back({0, {Paragraph{{{plain("No rows.")}}}}});
  return page;
}

/// The newest run of a suite that is called like a report; 0: there is none.
int64_t run_of_suite(Store& store, const std::string& suite) {
  Statement q(store.database(),
              "SELECT coalesce(max(run_id), 0) FROM run JOIN run_case USING (run_id) "
              "WHERE suite = ?1 AND run.status = 'complete' AND task = 'measure'");
  q.bind(suite);
  q.step();
  return q.integer(0);
}

Page pull_requests_page(Site& site) {
  Page page;
  for (const std::string& suite : reports_of("pull-requests")) {
    const int64_t run = run_of_suite(site.store, suite);
    if (run == 0) continue;
    page.sections.push_back({0, {Heading{suite}}});
    add_report(page, site, has_report(suite) ? suite : "speedup", {run});
  }
  if (page.sections.empty()) {
    page.sections.push_back(
        {0,
         {Paragraph{{{plain("This store has no run of a pull request's suite. One is measured by "),
                      code("moegate run --suite pr-aiter-3526"), plain(".")}}}}});
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

/// The rows that share a file one after the other.
void sort_by_file(std::vector<SiteRow>& rows) {
  std::vector<std::pair<uint32_t, SiteRow*>> order;
  for (SiteRow& row : rows) order.emplace_back(file_hash(case_page(row.key, row.variant)), &row);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->key, a.second->variant) <
           std::tie(b.first, b.second->key, b.second->variant);
  });
  std::vector<SiteRow> sorted;
  for (const auto& [hash, row] : order) sorted.push_back(std::move(*row));
  rows = std::move(sorted);
}

std::vector<LevelChart::Run> names_of(const std::vector<SiteRun>& runs) {
  std::vector<LevelChart::Run> names;
  for (const SiteRun& run : runs)
    names.push_back(
        {std::to_string(run.info.id), minute_of(run.info.started), commit_of(run.info)});
  return names;
}

}  // namespace

std::string days_ago(int days) {
  return day_text(today() - std::chrono::days(days));
}

std::vector<SitePage> site_pages(Store& store, const SiteOptions& options) {
  const auto site = std::make_shared<Site>(Site{store, options, read_site(store, options.since)});
  if (site->data.runs.empty()) {
    throw Error(Exit::coverage,
                fmt::format("{}: no complete run{}; there is nothing to make pages of", options.db,
                            options.since.empty() ? "" : " since " + options.since));
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
  pages.push_back({"pull-requests", "Pull requests", [site] { return pull_requests_page(*site); }});
  for (size_t i = 0; i < site->data.rows.size(); ++i) {
    const SiteRow& row = site->data.rows[i];
    pages.push_back({case_page(row.key, row.variant), row.variant + " " + row.key,
                     [site, i] { return row_page(*site, i); }});
  }
  return pages;
}

}  // namespace moegate
