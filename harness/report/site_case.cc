// SPDX-License-Identifier: Apache-2.0
// The page of a row: its history, and what the newest run saw of it.
#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "harness/base/change_points.h"
#include "harness/base/text.h"
#include "harness/judge/verdict.h"
#include "harness/report/site_parts.h"

namespace moegate {
namespace {

/// Adds the time that it lives to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

double student_975(int df) {
  return boost::math::quantile(boost::math::students_t(df), 0.975);
}

/// Points of a series that a page shows, the newest, as many as `moegate history` without --last.
constexpr size_t kShown = 100;
/// Points of a series that are searched for steps, the newest: the search is quadratic and more.
constexpr size_t kSearched = 60;
constexpr double kSearchSeconds = 10;  // for all rows of a site
/// No split of a series has means further apart than this many standard errors: it has no step. Of
/// a hundred series without one, about three are searched for nothing.
constexpr double kClearSplit = 3;

using Points = std::vector<const SitePoint*>;

/// The points of each series of runs whose levels compare, by conditions.
std::map<int, Points> series_of(const Site& site, const SiteRow& row) {
  std::map<int, Points> series;
  for (const SitePoint& p : row.points) {
    if (p.level) series[site.data.runs[p.run].conditions].push_back(&p);
  }
  return series;
}

/// Whether some split parts the values clearly; what costs little is asked before what costs much.
bool may_have_step(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double all = std::accumulate(values.begin(), values.end(), 0.0);
  double squares = 0, left = 0;
  for (const double x : values) squares += (x - all / n) * (x - all / n);
  for (size_t i = 1; i < values.size(); ++i) {
    left += values[i - 1];
    const auto k = static_cast<double>(i);
    const double gap = left / k - (all - left) / (n - k);
    const double between = gap * gap * k * (n - k) / n;  // of the sum of squares
    const double within = (squares - between) / std::max(1.0, n - 2);
    if (between > kClearSplit * kClearSplit * within) return true;
  }
  return false;
}

/// The step at each of the newest points; an index below the searched ones has none. Takes its time
/// from the site's.
std::map<size_t, ChangePoint> steps_of(Site& site, const Points& points) {
  const size_t first = points.size() - std::min(points.size(), kSearched);
  std::vector<double> logs;
  for (size_t i = first; i < points.size(); ++i) logs.push_back(points[i]->mean_log);
  std::map<size_t, ChangePoint> steps;
  if (site.search_s > kSearchSeconds || !may_have_step(logs)) return steps;
  const Stopwatch watch(site.search_s);
  for (const ChangePoint& change : change_points(logs)) steps[first + change.at] = change;
  return steps;
}

std::string level_digits(double log) {
  return fmt::format("{:.5g}", std::exp(log));
}

Table history_table_of(Site& site, const Points& points) {
  const SiteRun& any = site.data.runs[points[0]->run];
  const std::string unit = any.host() ? "ratio" : "us";
  Table table{{"run", "started", "commit", unit, "from", "to", "processes", "code", "step (%)"},
              {}};
  const auto steps = steps_of(site, points);
  for (size_t i = 0; i < points.size(); ++i) {
    const SitePoint& p = *points[i];
    const SiteRun& run = site.data.runs[p.run];
    const double reach =
        p.processes > 1 ? p.sd_log / std::sqrt(p.processes) * student_975(p.processes - 1) : 0;
    const bool known = i > 0 && p.code != 0 && points[i - 1]->code != 0;
    const auto step = steps.find(i);
    const auto bound = [&](double log) {
      return Table::Cell{p.processes > 1 ? level_digits(log) : "", true};
    };
    table.rows.push_back(
        {{.text = std::to_string(run.info.id), .number = true, .link = night_page(run.info.id)},
         {minute_of(run.info.started)},
         {commit_of(run.info)},
         {level_digits(p.mean_log), true},
         bound(p.mean_log - reach),
         bound(p.mean_log + reach),
         {std::to_string(p.processes), true},
         {known ? (p.code == points[i - 1]->code ? "same" : "changed") : ""},
         {step == steps.end()
              ? ""
              : fmt::format("{:.2f}", 100 * std::expm1(step->second.after - step->second.before)),
          true}});
  }
  return table;
}

/// The base that the newest verdict compared with; nothing where there is none.
std::optional<double> base_of(Site& site, const SiteRow& row, int conditions) {
  Statement q(site.store.database(),
              "SELECT base FROM verdict WHERE run_id = ?1 AND key = ?2 AND variant = ?3 "
              "AND base > 0");
  for (auto p = row.points.rbegin(); p != row.points.rend(); ++p) {
    const SiteRun& run = site.data.runs[p->run];
    if (run.conditions != conditions || !run.judged()) continue;
    q.bind(run.info.id, row.key, row.variant);
    if (q.step()) return q.real(0);
    return std::nullopt;
  }
  return std::nullopt;
}

void add_history(Page& page, Site& site, const SiteRow& row) {
  for (auto& [conditions, points] : series_of(site, row)) {
    const size_t all = points.size();
    if (all > kShown) points.erase(points.begin(), points.end() - kShown);
    const SiteRun& run = site.data.runs[points.back()->run];
    const Limits limits = run.host() ? Limits::host() : Limits::cuda();
    const std::string where = run.host() ? run.info.device.klass : run.info.device.name;
    const auto base = base_of(site, row, conditions);
    Chart chart{page_chart("history"),
                fmt::format("History: {} on {}; lower is better",
                            run.host() ? "ratio to the yardstick" : "span in us", where),
                history_table_of(site, points),
                {{"unit", run.host() ? "ratio" : "us"},
                 {"baseline", base ? fmt::format("{:.6g}", *base) : "0"},
                 {"margin", fmt::format("{:g}", limits.fail_at)}}};
    page.sections.push_back({0, {std::move(chart)}});
    if (all == points.size()) continue;
    page.sections.push_back(
        {0,
         {Paragraph{{{plain(fmt::format("The newest {} of {} runs; the command below with ",
                                        points.size(), all)),
                      code("--last 0"), plain(" shows all.")}}}}});
  }
}

int64_t newest_result(Site& site, const SiteRow& row, int64_t run) {
  Statement q(site.store.database(),
              "SELECT min(result_id) FROM process JOIN result r USING (process_id) JOIN bench_case "
              "USING (case_id) WHERE run_id = ?1 AND key = ?2 AND r.variant = ?3");
  q.bind(run, row.key, row.variant);
  q.step();
  return q.integer(0);
}

}  // namespace

Page row_page(Site& site, const SiteRow& row) {
  const SiteRun& run = site.data.runs[row.points.back().run];
  const int64_t id = run.info.id;
  Page page;
  page.sections.push_back(
      {0,
       {Paragraph{{{code(row.variant), plain(" of "), code(row.key)},
                   {plain(fmt::format("Newest run: ")), linked(name_of(run), night_page(id)),
                    plain(fmt::format(" on {}", run.info.device.name))}}}}});
  add_history(page, site, row);
  if (site.search_s > kSearchSeconds) {
    page.sections.push_back(
        {0,
         {Paragraph{{{plain("Steps were not looked for here, for want of time; the command "
                            "below finds them.")}}}}});
  }
  for (const std::string& report : reports_of("case"))
    add_report(page, site, report, {.run = id, .key = row.key, .variant = row.variant});
  const std::string db = shell_word(site.options.db);
  const int64_t result = newest_result(site, row, id);
  page.sections.push_back(
      {0,
       {Heading{"Commands"},
        Commands{{{"To repeat", fmt::format("moegate repro {} --run --db {}", result, db)},
                  {"History", fmt::format("moegate history --case {} --variant {} --db {}",
                                          shell_word("^" + row.key + "$"),
                                          shell_word("^" + row.variant + "$"), db)}}}}});
  return page;
}

}  // namespace moegate
