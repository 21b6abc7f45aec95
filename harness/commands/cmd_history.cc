// SPDX-License-Identifier: Apache-2.0
// moegate history: how a case's level developed over the runs of a store.
#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/print_page.h"
#include "harness/report/history.h"
#include "harness/store/store.h"

namespace moegate {

namespace po = boost::program_options;

namespace {

struct HistoryCommand {
  std::string db;
  HistoryQuery query;
  Format format = Format::md;
};

std::optional<HistoryCommand> read_history_flags(const Args& args) {
  HistoryCommand command;
  HistoryQuery& query = command.query;
  po::options_description flags("Options");
  flags.add_options()  //
      ("case", po::value(&query.case_pattern)->value_name("REGEX"),
       "cases by key, for example 'tokens=8(,|$)'")  //
      ("variant", po::value(&query.variant_pattern)->default_value("")->value_name("REGEX"),
       "variants by name")  //
      ("class", po::value(&query.klass)->default_value("")->value_name("C"),
       "one device class, for example nvidia-h200")  //
      ("last", po::value(&query.last)->default_value(100)->value_name("N"),
       "newest runs of each series; 0: all");
  flags.add(db_flag(command.db));
  flags.add(format_flag(command.format));
  if (!parse("moegate history --case REGEX [options]", flags, args)) return std::nullopt;
  if (query.case_pattern.empty()) {
    usage_error("moegate history: which case? give --case REGEX ('moegate list cases' shows them)");
  }
  if (query.last < 0) usage_error("--last {} is negative; give a number of runs, or 0", query.last);
  return command;
}

}  // namespace

int cmd_history(const Args& args) {
  const auto command = read_history_flags(args);
  if (!command) return 0;
  Store store = Store::open(command->db, Store::Mode::read);
  const auto all = read_history(store, command->query);
  if (is_for_people(command->format)) {
    print_page(history_page(all), command->format);
  } else {
    fmt::print("{}", render(history_table(all), command->format));
  }
  return 0;
}

}  // namespace moegate
