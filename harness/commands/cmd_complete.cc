// SPDX-License-Identifier: Apache-2.0
// moegate complete: what could stand at the cursor of a command line. moegate.bash asks for it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/campaign/suite.h"
#include "harness/commands/commands.h"
#include "harness/commands/completion.h"
#include "harness/commands/which_store.h"
#include "harness/kernel/registry.h"
#include "harness/kernel/tile_file.h"
#include "harness/store/query_report.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

WordList command_names(std::span<const Command> commands) {
  WordList names = {"--help", "--version"};
  for (const Command& command : commands) {
    if (command.help != nullptr) names.emplace_back(command.name);
  }
  return names;
}

WordList suite_names() {
  WordList names;
  for (const auto& [name, about] : list_suites()) names.push_back(name);
  return names;
}

WordList operator_names() {
  WordList names;
  for (const OpEntry& op : own_registry().ops) names.push_back(op.name);
  return names;
}

WordList variant_names() {
  std::set<std::string> names;
  for (const Variant& variant : own_registry().variants) {
    if (!is_tile_variant(variant.name)) names.insert(variant.name);
  }
  return {names.begin(), names.end()};
}

/// Labels and numbers; none where no store can be read: who only presses a key is told nothing.
WordList run_names(const std::string& db) {
  WordList names = {"latest"};
  try {
    Store store = Store::open(db, Store::Mode::read);
    Statement rows(store.database(), "SELECT run_id, label FROM run ORDER BY run_id");
    while (rows.step()) {
      names.push_back(rows.text(0));
      if (!rows.text(1).empty()) names.push_back(one_line(rows.text(1)));
    }
  } catch (const Error&) {
    return {};
  }
  return names;
}

WordList candidates(const Asked& asked, const WordList& words) {
  switch (asked.wanted) {
    case Wanted::nothing:
      return {};
    case Wanted::words:
      return asked.words;
    case Wanted::suites:
      return suite_names();
    case Wanted::operators:
      return operator_names();
    case Wanted::variants:
      return variant_names();
    case Wanted::runs:
      return run_names(value_of("--db", words).value_or(nearest_store().path));
    case Wanted::reports:
      return report_names();
    case Wanted::files:
      return {};
  }
  return {};
}

void print_matching(const WordList& names, const Asked& asked) {
  for (const std::string& name : names) {
    if (name.starts_with(asked.typed)) fmt::print("{}{}\n", asked.before, name);
  }
}

}  // namespace

int cmd_complete(const WordList& words, std::span<const Command> commands) {
  if (words.size() <= 1) {
    const std::string typed = words.empty() ? "" : words[0];
    print_matching(command_names(commands), {.typed = typed});
    return 0;
  }
  const auto command = std::ranges::find_if(
      commands, [&](const Command& c) { return c.help != nullptr && words[0] == c.name; });
  if (command == commands.end()) return 0;
  const WordList rest = joined_words({words.begin() + 1, words.end()});
  const Asked asked = asked_for(help_of(*command), rest);
  if (asked.wanted == Wanted::files) {
    fmt::print(":files\n");
  } else {
    print_matching(candidates(asked, rest), asked);
  }
  return 0;
}

}  // namespace moegate
