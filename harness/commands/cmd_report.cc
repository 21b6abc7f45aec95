// SPDX-License-Identifier: Apache-2.0
// moegate report: print a table of a run.
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/store/query_report.h"

namespace moegate {

namespace po = boost::program_options;

int cmd_report(const std::vector<std::string>& args) {
  po::options_description flags("Options");
  flags.add_options()  //
      ("name", po::value<std::string>()->default_value("")->value_name("NAME"),
       "a report ('moegate list reports' shows them) or the path of a .sql file (positional)")  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store")  //
      ("run", po::value<std::string>()->default_value("latest")->value_name("R"),
       "latest, a number or a label")  //
      ("format", po::value<std::string>()->default_value("md")->value_name("F"), "md, csv or json");
  const auto values = parse("moegate report NAME [options]", flags, args, {"name"});
  if (!values) return 0;
  const Format format = parse_format((*values)["format"].as<std::string>());
  const auto sql = find_report((*values)["name"].as<std::string>());
  Store store = Store::open((*values)["db"].as<std::string>(), Store::Mode::read);
  const int64_t run = store.find_run((*values)["run"].as<std::string>());
  fmt::print("{}", render(run_report(store, sql, run), format));
  return 0;
}

}  // namespace moegate
