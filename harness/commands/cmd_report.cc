// SPDX-License-Identifier: Apache-2.0
// moegate report: print a table of a run.
#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/pattern.h"
#include "harness/base/table_view.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/report/chart_file.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

struct ReportCommand {
  std::string name, db, run;
  std::string filter, kernel;  // regular expressions; empty: everything
  std::string columns, sort;
  Format format = Format::md;
  std::optional<std::string> chart;
};

std::optional<ReportCommand> read_report(const Args& args) {
  ReportCommand command;
  po::options_description flags("Options");
  flags.add_options()(
      "name", po::value(&command.name)->default_value("")->value_name("NAME"),
      "a report ('moegate list reports' shows them) or the path of a .sql file (positional)");
  flags.add(db_flag(command.db));
  flags.add(run_flag(command.run));
  flags.add_options()  //
      ("filter", po::value(&command.filter)->value_name("RE"),
       "only rows whose case matches; of a report without a column 'case': whose columns do, "
       "written as NAME=VALUE,NAME=VALUE")  //
      ("kernel", po::value(&command.kernel)->value_name("RE"),
       "only rows whose variant matches")  //
      ("columns", po::value(&command.columns)->value_name("C,C"),
       "only these columns, in this order")  //
      ("sort", po::value(&command.sort)->value_name("C"),
       "by this column, shown or not; C:desc for the highest first")  //
      ("chart", output(command.chart)->value_name("FILE"),
       "also draw the chart that lies beside the report (NAME.vg.json), as SVG; needs Debian's "
       "nodejs and libjs-vega");
  flags.add(format_flag(command.format));
  if (!parse("moegate report NAME [options]", flags, args, {"name"})) return std::nullopt;
  return command;
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
  if (command.filter.empty() && command.kernel.empty()) return;
  const Pattern filter = compile_pattern("--filter", command.filter);
  const Pattern kernel = compile_pattern("--kernel", command.kernel);
  const size_t variant = command.kernel.empty() ? 0 : column_of(table, "--kernel", "variant");
  const size_t all = table.rows.size();
  std::erase_if(table.rows, [&](const auto& row) {
    const bool other = !command.kernel.empty() && !kernel.found_in(row[variant].text);
    return other || !filter.found_in(case_of(table, row));
  });
  if (!table.rows.empty() || all == 0) return;
  throw Error(Exit::coverage, fmt::format("report {}: none of its {} rows matches (--filter '{}', "
                                          "--kernel '{}')",
                                          command.name, all, command.filter, command.kernel));
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
  return with_columns(table, columns);
}

}  // namespace

int cmd_report(const Args& args) {
  const auto command = read_report(args);
  if (!command) return 0;
  const auto sql = find_report(command->name);
  if (command->chart && !has_chart(sql)) {
    usage_error(
        "--chart {}: {} has no chart; it would be a Vega specification {} (reports/README.md)",
        *command->chart, sql.string(), chart_of(sql).string());
  }
  Store store = Store::open(command->db, Store::Mode::read);
  const int64_t run = store.find_run(command->run, task_of_report(sql));
  store.check_results(run);
  Table table = run_report(store, sql, {run});
  keep_matching(table, *command);
  if (command->chart) {
    write_output(*command->chart, chart_svg(chart_of(sql), title_of_report(sql), table));
  }
  if (!command->sort.empty()) sort_by(table, command->sort);
  if (!command->columns.empty()) table = only_columns(table, command->columns);
  fmt::print("{}", render(table, command->format));
  return 0;
}

}  // namespace moegate
