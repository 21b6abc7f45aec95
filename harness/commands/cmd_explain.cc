// SPDX-License-Identifier: Apache-2.0
// moegate explain: why the rows of one stored run differ from those of another.
#include <unistd.h>

#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/report/explain.h"
#include "harness/report/page_markdown.h"
#include "harness/report/page_text.h"

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

}  // namespace

int cmd_explain(const Args& args) {
  auto command = read_explain(args);
  if (!command) return 0;
  Store store = Store::open(command->db, Store::Mode::read);
  command->query.base = store.find_run(command->base);
  command->query.head = store.find_run(command->head);
  if (command->query.base == command->query.head) {
    usage_error("explain: BASE and HEAD are both {}",
                describe(store.run_info(command->query.base)));
  }
  const Explained explained = explain_runs(store, command->query);
  if (command->format == Format::text) {
    fmt::print("{}", to_text(explain_page(explained), screen_of(STDOUT_FILENO)));
  } else if (command->format == Format::md) {
    fmt::print("{}", to_markdown(explain_page(explained), kAnyBytes));
  } else {
    fmt::print("{}", render(cause_table(explained.rows), command->format));
  }
  return 0;
}

}  // namespace moegate
