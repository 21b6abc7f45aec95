// SPDX-License-Identifier: Apache-2.0
// moegate explain: why the rows of one stored run differ from those of another; of two runs of
// `profile --stalls` where their warps wait.
#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/print_page.h"
#include "harness/report/explain.h"
#include "harness/report/stall_report.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

struct ExplainCommand {
  std::string db = kDefaultStore, base, head;
  ExplainQuery query;
  Format format = Format::md;
};

std::optional<ExplainCommand> read_explain(const Args& args) {
  ExplainCommand command;
  po::options_description flags("Options");
  flags.add_options()  //
      ("base", po::value(&command.base)->value_name("RUN"),
       "the run before: latest, a number or a label (positional)")  //
      ("head", po::value(&command.head)->value_name("RUN"),
       "the run after (positional)")  //
      ("case", po::value(&command.query.case_pattern)->default_value("")->value_name("REGEX"),
       "cases by key")  //
      ("variant", po::value(&command.query.variant_pattern)->default_value("")->value_name("REGEX"),
       "variants by name");
  flags.add(db_flag(command.db));
  flags.add(
      format_flag(command.format, "text, md; csv or json, a line for each number of each row"));
  if (!parse("moegate explain BASE HEAD [options]", flags, args, {"base", "head"})) {
    return std::nullopt;
  }
  if (command.base.empty() || command.head.empty()) {
    usage_error(
        "explain needs two runs: moegate explain BASE HEAD ('moegate list runs' shows them)");
  }
  return command;
}

void print_causes(const Explained& explained, Format format) {
  if (is_for_people(format)) return print_page(explain_page(explained), format);
  fmt::print("{}", render(cause_table(explained.rows), format));
}

void print_stalls(const Page& page, Format format) {
  if (is_for_people(format)) return print_page(page, format);
  usage_error(
      "explain: where warps wait is text or md; `moegate report stalls --run R` has the "
      "csv and json of a run");
}

}  // namespace

int cmd_explain(const Args& args) {
  auto command = read_explain(args);
  if (!command) return 0;
  Store store = Store::open(command->db, Store::Mode::read);
  ExplainQuery& query = command->query;
  query.base = store.find_run(command->base);
  query.head = store.find_run(command->head);
  const RunInfo base = store.run_info(query.base), head = store.run_info(query.head);
  if (base.id == head.id) usage_error("explain: BASE and HEAD are both {}", describe(base));
  if (are_of_stalls(base, head)) {
    print_stalls(stall_page(store, query), command->format);
  } else {
    print_causes(explain_runs(store, query), command->format);
  }
  return 0;
}

}  // namespace moegate
