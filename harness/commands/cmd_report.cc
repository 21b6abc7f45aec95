// SPDX-License-Identifier: Apache-2.0
// moegate report: print a table of a run; its causes against another run, or its history.
#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/table.h"
#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/commands/publish.h"
#include "harness/report/explain.h"
#include "harness/report/history.h"
#include "harness/report/what_changed.h"
#include "harness/site/site.h"
#include "harness/site/site_files.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

struct ReportCommand {
  std::string name, db, run;
  std::string filter, variant;  // regular expressions; empty: everything
  std::string columns, sort;
  Format format = Format::text;
  std::optional<std::string> chart;
  std::string against, klass;  // of the reports why, changes and history
  std::string since;           // UTC day; empty: a week ago
  int last = 100;
};

void refuse_flags_of_others(const std::string& name, const std::set<std::string>& given) {
  if (name != "changes")
    refuse_flags(given, {"since"}, "belongs to `moegate report changes`; leave it out");
  if (name != "history")
    refuse_flags(given, {"last", "class"}, "belongs to `moegate report history`; leave it out");
  if (name != "why" && name != "history" && name != "changes") return;
  if (name == "changes")
    refuse_flags(given, {"filter", "variant"},
                 "does not fit `moegate report changes`; leave it out");
  refuse_flags(given, {"columns", "sort", "chart"},
               "belongs to reports that are tables; leave it out");
}

std::optional<ReportCommand> read_report(const Args& args) {
  ReportCommand command{.name = "summary"};
  Flags flags;
  flags.add(db_flag(command.db)).add(run_flag(command.run));
  flags.add(flag("filter", command.filter,
                 "only rows whose case matches; without a column 'case', only rows whose columns, "
                 "written as NAME=VALUE,NAME=VALUE, match"));
  flags.add(flag("variant", command.variant, "only rows whose variant matches"));
  flags.add(flag("columns", command.columns)).add(flag("sort", command.sort));
  flags.add(flag("chart", output(command.chart))).add(format_flag(command.format));
  flags.add(flag("against", command.against, "why, changes, environment: the run before"));
  flags.add(flag("since", since_days(command.since), nullptr,
                 "changes: from the last run before these days on, such as 7d (default: 7d)"));
  flags.add(flag("last", command.last)).add(flag("class", command.klass));
  std::set<std::string> given;
  if (!parse("report", flags, args, {{"NAME", po::value(&command.name)}}, &given)) {
    return std::nullopt;
  }
  refuse_flags_of_others(command.name, given);
  return command;
}

int print_history(const ReportCommand& command) {
  if (command.filter.empty()) {
    usage_error(
        "report history: which case? give --filter RE; `moegate report latency` shows the cases of "
        "a run");
  }
  if (command.last < 0)
    usage_error("--last {} is negative; give a number of runs, or 0", command.last);
  Store store = Store::open(command.db, Store::Mode::read);
  const auto all = read_history(store, {.case_pattern = command.filter,
                                        .variant_pattern = command.variant,
                                        .klass = command.klass,
                                        .last = command.last});
  if (is_for_people(command.format)) {
    print_page(history_page(all), command.format);
  } else {
    fmt::print("{}", render(history_table(all), command.format));
  }
  return 0;
}

int print_causes(const ReportCommand& command) {
  if (command.against.empty()) {
    usage_error(
        "report why: against which run? give --against RUN (`moegate list runs` shows "
        "them)");
  }
  Store store = Store::open(command.db, Store::Mode::read);
  const ExplainQuery query{.base = store.find_run(command.against),
                           .head = store.find_run(command.run),
                           .case_pattern = command.filter,
                           .variant_pattern = command.variant};
  const RunInfo base = store.run_info(query.base), head = store.run_info(query.head);
  if (base.id == head.id) usage_error("--against and --run are both {}", describe(base));
  const bool for_people = is_for_people(command.format);
  if (are_of_stalls(base, head)) {
    if (!for_people) {
      usage_error(
          "report why: stalls are written as text or md only; `moegate report stalls --run R` "
          "writes csv, tsv and json of one run");
    }
    print_page(stall_page(store, query), command.format);
    return 0;
  }
  const Explained explained = explain_runs(store, query);
  if (for_people) {
    print_page(explain_page(explained), command.format);
  } else {
    fmt::print("{}", render(cause_table(explained.rows), command.format));
  }
  return 0;
}

/// What changed since a run, or in some days.
int print_changes(const ReportCommand& command) {
  constexpr int kWeek = 7;
  Store store = Store::open(command.db, Store::Mode::read);
  const bool any = command.run == "latest" && command.against.empty();
  const int64_t head = any ? last_comparable_run(store) : store.find_run(command.run);
  int64_t base = head;
  if (!command.against.empty()) {
    base = store.find_run(command.against);
  } else {
    const auto runs =
        comparable_runs(store, head, command.since.empty() ? days_ago(kWeek) : command.since);
    if (!runs.empty()) base = runs.front();
  }
  if (base == head && !command.against.empty())
    usage_error("--against and --run are both {}", describe(store.run_info(head)));
  if (base == head) {
    give_up(Exit::coverage,
            "report changes: {} has no run that compares with {}; give --since DAYS or --against "
            "RUN",
            command.db, describe(store.run_info(head)));
  }
  const Limits limits = Limits::of(store.run_info(head).device.backend);
  const WhatChanged changed = what_changed(store, base, head, limits);
  if (is_for_people(command.format)) {
    print_page(what_changed_page(changed, repository_address(find_project())), command.format);
  } else {
    fmt::print("{}", render(what_changed_table(changed), command.format));
  }
  return 0;
}

/// What --filter searches of a row.
std::string case_of(const Table& table, const std::vector<Table::Cell>& row) {
  if (const auto column = find_column(table, "case")) return row[*column].text;
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    text += fmt::format("{}{}={}", i > 0 ? "," : "", table.columns[i], row[i].text);
  }
  return text;
}

void keep_matching(Table& table, const ReportCommand& command) {
  if (command.filter.empty() && command.variant.empty()) return;
  const Pattern filter = compile_pattern("--filter", command.filter);
  const Pattern kernel = compile_pattern("--variant", command.variant);
  const size_t variant = command.variant.empty() ? 0 : column_of(table, "--variant", "variant");
  const size_t all = table.rows.size();
  std::erase_if(table.rows, [&](const auto& row) {
    const bool other = !command.variant.empty() && !kernel.found_in(row[variant].text);
    return other || !filter.found_in(case_of(table, row));
  });
  if (!table.rows.empty() || all == 0) return;
  give_up(Exit::coverage, "report {}: none of its {} rows matches {}", command.name, all,
          flags_text({{"filter", command.filter}, {"variant", command.variant}}));
}

void sort_by(Table& table, const std::string& order) {
  constexpr std::string_view kDescending = ":desc";
  const bool descending = order.ends_with(kDescending);
  const std::string name = order.substr(0, order.size() - (descending ? kDescending.size() : 0));
  sort_rows(table, column_of(table, "--sort", name), descending);
}

Table only_columns(const Table& table, const std::string& list) {
  std::vector<size_t> columns;
  for (const std::string& name : parse_list("--columns", list)) {
    columns.push_back(column_of(table, "--columns", name));
    if (std::ranges::count(columns, columns.back()) == 1) continue;
    usage_error("--columns {}: has '{}' twice; keep one", list, name);
  }
  Table chosen = with_columns(table, columns);
  chosen.only.clear();  // who names a column gets it
  return chosen;
}

}  // namespace

int cmd_report(const Args& args) {
  const auto command = read_report(args);
  if (!command) return 0;
  if (command->name == "why") return print_causes(*command);
  if (command->name == "history") return print_history(*command);
  if (command->name == "changes") return print_changes(*command);
  const auto sql = find_report(command->name);
  if (command->chart && !has_chart(sql)) {
    usage_error(
        "--chart {}: report {} has no chart; add the Vega specification {} (reports/README.md)",
        *command->chart, sql.string(), chart_of(sql).string());
  }
  Store store = Store::open(command->db, Store::Mode::read);
  const int64_t run = store.find_run(command->run, task_of_report(sql));
  store.check_results(run);
  ReportArgs about{run};
  if (!command->against.empty()) about.against = store.find_run(command->against);
  Table table = run_report(store, sql, about);
  keep_matching(table, *command);
  if (command->chart) {
    write_output(*command->chart, chart_svg(chart_of(sql), title_of_report(sql),
                                            for_readers(table, Readers::people)));
  }
  if (!command->sort.empty()) sort_by(table, command->sort);
  if (!command->columns.empty()) table = only_columns(table, command->columns);
  fmt::print("{}", render(table, command->format));
  return 0;
}

}  // namespace moegate
