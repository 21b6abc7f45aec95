// SPDX-License-Identifier: Apache-2.0
// moegate history: how a case's level developed over the runs of a store.
#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/report/history.h"
#include "harness/report/page_markdown.h"
#include "harness/store/store.h"

namespace moegate {

namespace po = boost::program_options;

int cmd_history(const std::vector<std::string>& args) {
  po::options_description flags("Options");
  flags.add_options()  //
      ("case", po::value<std::string>()->value_name("REGEX"),
       "cases by key, for example 'tokens=8(,|$)'")  //
      ("variant", po::value<std::string>()->default_value("")->value_name("REGEX"),
       "variants by name")  //
      ("class", po::value<std::string>()->default_value("")->value_name("C"),
       "one device class, for example nvidia-h200")  //
      ("last", po::value<int>()->default_value(100)->value_name("N"),
       "newest runs of each series; 0: all")  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store")  //
      ("format", po::value<std::string>()->default_value("md")->value_name("F"), "md, csv or json");
  const auto values = parse("moegate history --case REGEX [options]", flags, args);
  if (!values) return 0;
  if (values->count("case") == 0) {
    usage_error("moegate history: which case? give --case REGEX ('moegate list cases' shows them)");
  }
  const Format format = parse_format((*values)["format"].as<std::string>());
  const HistoryQuery query{(*values)["case"].as<std::string>(),
                           (*values)["variant"].as<std::string>(),
                           (*values)["class"].as<std::string>(), (*values)["last"].as<int>()};
  if (query.last < 0) usage_error("--last {} is negative; give a number of runs, or 0", query.last);
  Store store = Store::open((*values)["db"].as<std::string>(), Store::Mode::read);
  const auto all = read_history(store, query);
  fmt::print("{}", format == Format::md ? to_markdown(history_page(all), kAnyBytes)
                                        : render(history_table(all), format));
  return 0;
}

}  // namespace moegate
