// SPDX-License-Identifier: Apache-2.0
// moegate complete: what could stand at the cursor of a command line. The scripts of the shells ask
// for it.
#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "harness/campaign/suite.h"
#include "harness/commands/commands.h"
#include "harness/commands/completion.h"
#include "harness/commands/flags.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/registry.h"
#include "harness/store/query_report.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

WordList verb_names() {
  WordList names = {"--help", "--version", "help"};
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

/// Each once.
WordList variant_names() {
  std::set<std::string> names;
  for (const Variant& variant : own_registry().variants) {
    if (!is_configuration(variant.name)) names.insert(variant.name);
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

using Values = std::set<std::string, NaturalLess>;

/// What the cases have that a line is about: those of its suites, else those of its store.
struct CaseWords {
  Values operators;
  std::map<std::string, Values> parameters;
};

void add_suites(CaseWords& found, const WordList& suites, bool in_key) {
  std::vector<OpDescription> operators;
  for (const Backend backend : {Backend::host, Backend::cuda}) {
    for (const OpDescription& op : describe_operators(own_registry(), backend))
      operators.push_back(op);
  }
  for (const std::string& suite : suites) {
    for (const Case& c : load_suite(suite, {}, operators)) {
      found.operators.insert(c.op);
      for (const auto& [name, value] : c.params) {
        const std::string* usual = c.defaults.find(name);
        const bool left_out = usual != nullptr && *usual == value;
        if (!(in_key && left_out)) found.parameters[name].insert(value);
      }
    }
  }
}

void add_store(CaseWords& found, const std::string& db, bool in_key) {
  Store store = Store::open(db, Store::Mode::read);
  // A default is in a case's parameters and not in its key.
  Statement rows(store.database(),
                 "SELECT DISTINCT op, j.key, j.value FROM bench_case b, json_each(params) j "
                 "WHERE NOT ?1 OR instr(b.key || ',', j.key || '=' || j.value || ',') > 0");
  rows.bind(static_cast<int64_t>(in_key));
  while (rows.step()) {
    found.operators.insert(rows.text(0));
    found.parameters[rows.text(1)].insert(rows.text(2));
  }
}

/// None where nothing can be read, as with runs. A report and a history are about a store.
WordList case_words(const Asked& asked, const WordList& words) {
  const bool in_key = asked.wanted == ValueKind::filter;
  CaseWords found;
  try {
    const WordList suites = values_of("--suite", words);
    if (suites.empty()) {
      add_store(found, value_of("--db", words).value_or(nearest_store().path), in_key);
    } else {
      add_suites(found, suites, in_key);
    }
  } catch (const Error&) {
    return {};
  }
  const auto& named = found.parameters[asked.of];
  WordList names(named.begin(), named.end());
  if (!asked.of.empty()) return names;
  for (const auto& [name, values] : found.parameters) {
    if (!name.empty()) names.push_back(name + "=");
  }
  if (!in_key) return names;
  for (const std::string& op : found.operators) names.push_back(op + "/");
  return names;
}

WordList candidates(const Asked& asked, const WordList& words) {
  WordList names;
  switch (asked.wanted) {
    case ValueKind::choice:
      return asked.words;
    case ValueKind::suite:
      return mapped(list_suites(), [](const auto& suite) { return suite.first; });
    case ValueKind::op:
      return mapped(own_registry().ops, &OpEntry::name);
    case ValueKind::variant:
      return variant_names();
    case ValueKind::run:
      return run_names(value_of("--db", words).value_or(nearest_store().path));
    case ValueKind::report:
      names = report_names();
      names.insert(names.end(), asked.words.begin(), asked.words.end());  // why, history
      return names;
    case ValueKind::axis:
    case ValueKind::filter:
      return case_words(asked, words);
    default:
      return {};
  }
}

/// `cut`: how many bytes of a candidate the shell has in a word before its last.
void print_matching(const WordList& names, const Asked& asked, size_t cut = 0) {
  for (const std::string& name : names) {
    if (name.starts_with(asked.typed)) fmt::print("{}\n", (asked.before + name).substr(cut));
  }
}

}  // namespace

int cmd_complete(const WordList& words) {
  if (words.size() <= 1) {
    const std::string typed = words.empty() ? "" : words[0];
    print_matching(verb_names(), {.typed = typed});
    return 0;
  }
  if (words[0] == "help") {
    if (words.size() == 2) print_matching(verb_names(), {.typed = words[1]});
    return 0;
  }
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr) return 0;
  const auto [rest, cut] = joined_words({words.begin() + 1, words.end()});
  const Asked asked = asked_for(*verb, flags_of(*verb), rest);
  if (asked.wanted == ValueKind::file) {
    fmt::print(":files\n");
  } else {
    print_matching(candidates(asked, rest), asked, cut);
  }
  return 0;
}

}  // namespace moegate
