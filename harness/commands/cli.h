// SPDX-License-Identifier: Apache-2.0
// What every command does with its arguments: Boost.Program_options parses them, help is printed
// from the tables of verbs and flags, and a bad flag becomes one clear line.
#pragma once

#include <boost/make_shared.hpp>
#include <boost/program_options.hpp>

#include <concepts>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/run_options.h"
#include "harness/commands/verbs.h"

namespace moegate {

using Args = std::vector<std::string>;
struct Project;

/// A flag of a command: its text is the table's, its value is bound to a field.
struct Flag {
  FlagText text;
  boost::shared_ptr<boost::program_options::option_description> option;

  /// What its value is when nobody types one; empty: nothing is shown.
  std::string if_unset() const;
};

/// Flags of a command in the groups that help shows.
class Flags {
 public:
  explicit Flags(const char* title = "Options") : groups_{{title, {}}} {}

  Flags& add(Flag flag);
  Flags& add(const Flags& more);
  /// Takes the place of the flag of the same name.
  Flags& replace(const Flag& flag);

  struct Group {
    std::string title;
    std::vector<Flag> flags;
  };
  const std::vector<Group>& groups() const { return groups_; }
  std::vector<std::reference_wrapper<const Flag>> all() const;
  /// Null where there is none of this name, which has no dashes.
  const Flag* find(std::string_view name) const;

 private:
  std::vector<Group> groups_;
};

namespace po = boost::program_options;

/// A flag of the table. `about` replaces the table's sentence where a command must say more.
template <class T>
Flag flag(const char* name, po::typed_value<T>* value, const char* about = nullptr) {
  FlagText text = flag_text(name);
  if (about != nullptr) text.about = about;
  value->value_name(text.value);
  return {text, boost::make_shared<po::option_description>(name, value, text.about)};
}
/// Bound to a field, whose value before is the default.
template <class T>
requires std::integral<T> || std::floating_point<T> || std::same_as<T, std::string> Flag
flag(const char* name, T& field, const char* about = nullptr) {
  if constexpr (std::same_as<T, bool>) {
    return flag(name, po::bool_switch(&field), about);
  } else if constexpr (std::same_as<T, std::string>) {
    // An empty default is not shown.
    if (field.empty()) return flag(name, po::value(&field), about);
    return flag(name, po::value(&field)->default_value(field), about);
  } else {
    return flag(name, po::value(&field)->default_value(field), about);
  }
}
/// The field stays empty where the flag is left out.
template <class T>
Flag flag(const char* name, std::optional<T>& field, const char* about = nullptr) {
  return flag(name, po::value<T>()->notifier([&field](const T& value) { field = value; }), about);
}
/// May be repeated.
template <class T>
Flag flag(const char* name, std::vector<T>& field, const char* about = nullptr) {
  return flag(name, po::value(&field), about);
}
/// Read by `read`, which throws Error(usage). `if_unset` is read, too; null: nothing is.
inline Flag flag(const char* name, std::function<void(const std::string&)> read,
                 const char* if_unset = nullptr, const char* about = nullptr) {
  auto* value = po::value<std::string>()->notifier(std::move(read));
  if (if_unset != nullptr) value->default_value(if_unset);
  return flag(name, value, about);
}

/// One of the table's choices; throws Error(usage) for another word.
inline Flag choice_flag(const char* name, std::string& field, const char* if_unset = nullptr) {
  return flag(
      name, [name, &field](const std::string& text) { option::read(flag_text(name), text, field); },
      if_unset);
}

/// An argument without a flag. The last one of a command takes the rest where it holds a vector.
struct Argument {
  const char* name;  // in capitals, as the verb's usage has it
  po::value_semantic* value;
};

/// Parses the arguments of a verb into the fields that `flags` and `places` are bound to. Returns
/// false after printing help for -h and --help. Throws Error(usage) naming the command and the
/// flag. `given` gets the names of the flags that the user typed. What nobody typed is the
/// project's, where that says it.
bool parse(const std::string& name, const Flags& flags, const Args& args,
           const std::vector<Argument>& places = {}, std::set<std::string>* given = nullptr,
           const Project* project = nullptr);

Flags flags_of(const Verb& verb);

/// Throws Error(usage) where a flag was typed that is not one of `allowed`.
void refuse_other_flags(const std::set<std::string>& given, const std::set<std::string>& allowed,
                        const std::string& why);

/// The same beside --resume: a resumed run has the options that it was begun with.
void refuse_beside_resume(const std::set<std::string>& given, std::set<std::string> allowed);

/// Throws Error(usage) where one of `flags` was typed without what it goes with.
void refuse_flags(const std::set<std::string>& given, const std::vector<std::string>& flags,
                  const std::string& why);

/// "1%" -> 0.01. Throws Error(usage) naming the flag.
double parse_share(const std::string& flag, const std::string& text);

/// The text of a name that a user gives. Throws Error(usage) naming the flag for control
/// characters, line ends and bytes that are no UTF-8.
const std::string& plain_name(const std::string& flag, const std::string& text);

/// What the user typed, quoted for a shell: "moegate run --suite tiny".
std::string command_line(const std::string& command, const Args& args);

}  // namespace moegate
