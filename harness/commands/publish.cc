// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/publish.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/table.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/commands/flags.h"
#include "harness/report/forges.h"
#include "harness/report/page.h"
#include "harness/site/site_files.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

/// How often each control was rejected, and why where it was not.
Table controls_table(const Tally& tally) {
  const auto outcomes = {ControlOutcome::rejected, ControlOutcome::accepted,
                         ControlOutcome::unchanged, ControlOutcome::not_applicable};
  Table table{{"control"}};
  for (const ControlOutcome o : outcomes) table.columns.push_back(name_of(o));
  for (const auto& [name, counts] : tally.controls) {
    table.add(name);
    for (const ControlOutcome o : outcomes) {
      const int* count = find_or_null(counts, o);
      table.rows.back().push_back(Table::cell(count ? *count : 0));
    }
  }
  return table;
}

std::string verdict_text(const GateReport& report, const Page& page, const std::string& json,
                         Format format) {
  if (format == Format::text) return to_text(page, screen_of(STDOUT_FILENO));
  if (format == Format::md) return to_markdown(page, kCommentBytes);  // people paste it
  return format == Format::json ? json : render(verdict_table(report.result), format);
}

constexpr size_t kMostRows = 40;

/// "moegate report NAME --run 3": of this run, also when there are newer ones.
std::string report_command(const char* name, const std::string& db, int64_t run) {
  const std::string store = db == nearest_store().path ? "" : " --db " + shell_word(db);
  return fmt::format("moegate report {} --run {}{}", name, run, store);
}

/// On the screen that has the notes of the run, too, a failure is explained once.
void drop_what_was_noted(Table& table, const Tally& tally) {
  if (!is_terminal(STDOUT_FILENO) || !is_terminal(STDERR_FILENO)) return;
  const auto key = find_column(table, "case"), variant = find_column(table, "variant"),
             why = find_column(table, "why");
  if (!key || !variant || !why) return;
  std::set<std::pair<std::string, std::string>> noted;
  for (const Failure& failure : tally.failures) noted.insert({failure.key, failure.variant});
  for (auto& row : table.rows) {
    if (noted.contains({row[*key].text, row[*variant].text})) row[*why].text.clear();
  }
}

std::string run_table(const std::string& db, const Tally& tally) {
  const int64_t run = tally.run;
  Store store = Store::open(db, Store::Mode::read);
  Table all = run_report(store, find_report("summary"), {run});
  if (all.rows.empty()) return "";
  drop_what_was_noted(all, tally);
  const size_t status = *find_column(all, "status");
  const Table shown = most_important(
      all, kMostRows, [status](const auto& row) { return row.at(status).text != "ok"; });
  const size_t left_out = all.rows.size() - shown.rows.size();
  const std::string more =
      left_out > 0 ? fmt::format("{} more rows: {}", left_out, report_command("summary", db, run))
                   : fmt::format("more: {}", report_command("latency", db, run));
  return fmt::format("{}\n{}\n", render(without_empty_columns(shown), Format::text), more);
}

}  // namespace

std::string summary_of_check(const Tally& tally, Task task) {
  if (task != Task::controls) return summary(tally, "verified") + "\n";
  return render(controls_table(tally), Format::text) + summary(tally, "negative controls") + "\n";
}

Table precision_table(const Tally& tally) {
  Table table{{"operator", "variant", "output", "misrounded", "of a row", "column", "excess",
               "rows, rms", "largest", "columns, rms", "largest "}};
  using Statistic = double BeyondRounding::*;
  constexpr Statistic kShown[] = {
      &BeyondRounding::misrounded,        &BeyondRounding::row_misrounded,
      &BeyondRounding::column_misrounded, &BeyondRounding::excess,
      &BeyondRounding::row_scale,         &BeyondRounding::row_scale_most,
      &BeyondRounding::column_scale,      &BeyondRounding::column_scale_most};
  for (const auto& [name, graded] : tally.graded) {
    const auto& [op, variant, output] = name;
    table.add(op, variant, output);
    for (const Statistic field : kShown) {
      std::string shown = fmt::format("{:.2g}", graded.measured.*field);
      if (graded.stated) shown += fmt::format(" of {:.2g}", graded.allowed.*field);
      table.rows.back().push_back({shown});
    }
  }
  return table;
}

Table invariance_table(const Tally& tally) {
  Table table{{"operator", "variant", "batch-invariant", "differs at", "place", "elements"}};
  for (const auto& [name, broken] : tally.invariance) {
    const auto& [op, variant] = name;
    if (broken.tokens == 0) {
      table.add(op, variant, "yes", "", "", "");
    } else {
      table.add(op, variant, "no", fmt::format("{:g} tokens", broken.tokens),
                fmt::format("{:g}", broken.place), fmt::format("{:.2g} %", 100 * broken.share));
    }
  }
  return table;
}

Store open_for_verdict(const std::string& path) {
  const bool exists = access(path.c_str(), F_OK) == 0;
  if (!exists || access(path.c_str(), W_OK) == 0) return Store::open(path, Store::Mode::update);
  say("{} is read-only: the verdict is printed, not stored\n", path);
  return Store::open(path, Store::Mode::read);
}

GateReport report_of(Store& store, const std::string& db, Verdict verdict) {
  GateReport report;
  report.result = std::move(verdict.result);
  report.exit = verdict.exit;
  report.run = verdict.run;
  report.run.command = repeat_command(verdict.run, db);
  report.db = db;
  report.limits = verdict.limits;
  report.throttle = throttle_summary(store, verdict.run.id);
  if (verdict.can_be_blessed) {
    report.next = fmt::format("moegate bless --db {} --run {}{} --reason '...'", shell_word(db),
                              verdict.run.id, verdict.run.dirty ? " --accept dirty" : "");
  }
  return report;
}

void publish(Store& store, const GateReport& report, const PublishOptions& options) {
  const Page page = gate_page(report);
  const bool wants_json = options.outputs.contains(".json") || options.format == Format::json;
  const std::string json = wants_json ? verdict_json(report) : "";
  std::exception_ptr first;
  // An output that cannot be written must not take the others along.
  const auto try_to = [&first](const auto& write) {
    try {
      write();
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  };
  if (sqlite3_db_readonly(store.database().handle(), "main") == 0) {
    try_to([&] { store_verdicts(store, report.run.id, report.result); });
  }
  try_to([&] {
    fmt::print("{}", verdict_text(report, page, json, options.format));
    std::fflush(stdout);
  });
  const auto write = [&](const char* ending, const auto& text) {
    const auto path = options.outputs.find(ending);
    if (path != options.outputs.end()) try_to([&] { write_output(path->second, text()); });
  };
  write(".md", [&] { return to_markdown(page, kAnyBytes); });
  write(".html", [&] { return verdict_html(report); });
  write(".xml", [&] { return junit_xml(report); });
  if (options.github) try_to([&] { publish_to_github(report); });
  write(".json", [&] { return json; });
  if (first) std::rethrow_exception(first);
}

void print_page(const Page& page, Format format) {
  fmt::print("{}", format == Format::text ? to_text(page, screen_of(STDOUT_FILENO))
                                          : to_markdown(page, kAnyBytes));
}

void print_run(const std::string& db, const Tally& tally) {
  try {
    fmt::print("{}", run_table(db, tally));
  } catch (const Error& e) {
    say("no table of the run: {}\n", e.what());
  }
  fmt::print("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
}

}  // namespace moegate
