// SPDX-License-Identifier: Apache-2.0
// The page of a row: its history, and what the newest run saw of it.
#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "harness/base/text.h"
#include "harness/judge/verdict.h"
#include "harness/site/site_parts.h"
#include "harness/site/site_steps.h"

namespace moegate {
namespace {

/// Half of a 95 % interval of a mean, in standard errors. Few numbers of processes are asked for, often.
double student_975(int df) {
  static std::map<int, double> known;
  const auto [at, fresh] = known.try_emplace(df, 0);
  if (fresh) at->second = boost::math::quantile(boost::math::students_t(df), 0.975);
  return at->second;
}

LevelChart::Code code_of(const SitePoint& p, const SitePoint* before) {
  if (!before || p.code == 0 || before->code == 0) return LevelChart::Code::unknown;
  return p.code == before->code ? LevelChart::Code::same : LevelChart::Code::changed;
}

std::vector<LevelChart::Point> points_of(const Points& points) {
  std::vector<LevelChart::Point> shown;
  shown.reserve(points.size());
  for (const SitePoint* p : points) {
    const double reach = p->processes > 1
                             ? p->sd_log / std::sqrt(p->processes) * student_975(p->processes - 1)
                             : NAN;
    shown.push_back({p->run, p->mean_log, static_cast<float>(reach), p->processes,
                     code_of(*p, shown.empty() ? nullptr : points[shown.size() - 1])});
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

void add_history(Page& page, const Site& site, size_t place) {
  const SiteRow& row = site.data.rows[place];
  bool left_out = false, older = false;
  for (const auto& [conditions, points] : histories_of(site.data, row)) {
    LevelChart chart = level_chart_of(site, row, conditions, points);
    if (site.steps.searched.contains({place, conditions})) chart.steps = steps_of(points);
    left_out = left_out || site.steps.left_out.contains({place, conditions});
    older = older || points.size() > kSearched;
    page.sections.push_back({0, {std::move(chart)}});
  }
  const auto note = [&](const std::string& text) {
    page.sections.push_back({0, {Paragraph{{{plain(text)}}, /*small=*/true}}});
  };
  if (left_out) {
    note(
        "Steps were not looked for here: many histories may have some, and others more clearly; "
        "the command below finds them.");
  } else if (older) {
    note(fmt::format("Steps are looked for in the newest {} runs; the command below finds others.",
                     kSearched));
  }
}

void add_reports(Page& page, Site& site, size_t place) {
  for (auto& [shown, report] : site.row_reports)
    add_table(page, shown, report.of(static_cast<int64_t>(place)));
}

}  // namespace

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

Page row_page(Site& site, size_t place) {
  const SiteRow& row = site.data.rows[place];
  const SiteRun& run = site.data.runs[row.points.back().run];
  const int64_t id = run.info.id;
  Page page;
  page.sections.push_back(
      {0,
       {Paragraph{{{code(row.variant), plain(" of "), code(row.key)},
                   {plain(fmt::format("Newest run: ")), linked(name_of(run), night_page(id)),
                    plain(fmt::format(" on {}", run.info.device.name))}}}}});
  add_history(page, site, place);
  add_reports(page, site, place);
  const std::string db = shell_word(site.options.db);
  const int64_t result = site.first_results[place];
  page.sections.push_back(
      {0,
       {Heading{"Commands"},
        Commands{{{"To repeat", fmt::format("moegate run --like {} --db {}", result, db)},
                  {"History",
                   fmt::format("moegate report history --filter {} --variant {} --last 0 --db {}",
                               shell_word("^" + row.key + "$"), shell_word("^" + row.variant + "$"),
                               db)}}}}});
  return page;
}

}  // namespace moegate
