// SPDX-License-Identifier: Apache-2.0
// moegate report: print a table of a run.
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/store/query_report.h"

namespace moegate {

namespace po = boost::program_options;

int cmd_report(const Args& args) {
  std::string name, db = kDefaultStore, run;
  Format format = Format::md;
  po::options_description flags("Options");
  flags.add_options()(
      "name", po::value(&name)->default_value("")->value_name("NAME"),
      "a report ('moegate list reports' shows them) or the path of a .sql file (positional)");
  flags.add(db_flag(db));
  flags.add(run_flag(run));
  flags.add(format_flag(format));
  if (!parse("moegate report NAME [options]", flags, args, {"name"})) return 0;
  const auto sql = find_report(name);
  Store store = Store::open(db, Store::Mode::read);
  fmt::print("{}", render(run_report(store, sql, store.find_run(run)), format));
  return 0;
}

}  // namespace moegate
