// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/cli.h"

#include <algorithm>
#include <cstring>
#include <iostream>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "harness/commands/project.h"

namespace moegate {
namespace {

/// Whether Boost's text about an argument would never end: it replaces %value% and its like in its
/// messages by what was typed as long as there are any, and what was typed may be one.
bool holds_placeholder(const std::string& arg) {
  static const Pattern placeholder = compile_pattern("", "%[a-z_]+%");
  return placeholder.found_in(arg);
}

/// What is called otherwise now, or what is wrong and "(did you mean '--filter'?)".
std::string meant_option(const po::error& error, const std::string& verb, const Flags& flags) {
  const auto* unknown = dynamic_cast<const po::unknown_option*>(&error);
  if (unknown == nullptr) return error.what();
  const std::string typed = unknown->get_option_name();
  const std::string moved =
      moved_flag(verb, typed.substr(std::min(typed.size(), typed.find_first_not_of('-'))));
  if (!moved.empty()) return moved;
  const auto shown = [](const Flag& flag) { return fmt::format("--{}", flag.text.name); };
  return error.what() + did_you_mean(typed, mapped(flags.all(), shown));
}

/// Whether a flag has two values of which one at least came without the flag: an argument too many.
bool one_too_many(const po::error& error, const Args& args) {
  const auto* twice = dynamic_cast<const po::multiple_occurrences*>(&error);
  if (twice == nullptr) return false;
  const std::string flag = twice->get_option_name();
  return std::ranges::count_if(args, [&](const std::string& arg) {
           return arg == flag || arg.starts_with(flag + "=");
         }) < 2;
}

std::string why(const po::error& error, const std::string& verb, const Args& args,
                const Flags& flags, const std::vector<Argument>& places) {
  if (one_too_many(error, args)) {
    return fmt::format("only {} may stand without a flag",
                       fmt::join(mapped(places, &Argument::name), " and "));
  }
  const auto arg = std::ranges::find_if(args, holds_placeholder);
  return arg == args.end() ? meant_option(error, verb, flags)
                           : fmt::format("'{}' is not understood", *arg);
}

/// What the project's file says of flags that nobody typed.
po::parsed_options flags_of_project(const Project& project, const std::string& verb,
                                    const Flags& flags, const po::options_description& described) {
  po::parsed_options parsed(&described);
  for (const auto& [name, values] : project.flags_of(verb)) {
    const Flag* flag = flags.find(name);
    if (flag == nullptr) continue;
    const bool alone = flag->text.kind == ValueKind::none;
    if (alone && values[0] != "true" && values[0] != "false")
      usage_error("{}: '{} = {}' is neither true nor false", project.file.string(), name,
                  values[0]);
    if (alone && values[0] == "false") continue;
    parsed.options.emplace_back(name, alone ? std::vector<std::string>{} : values);
  }
  return parsed;
}

/// Reads the values. An error about one of the project's names its file.
void read_values(po::variables_map& values, const Project& project,
                 const po::parsed_options& of_project, const std::set<std::string>& given) {
  try {
    po::notify(values);
  } catch (const Error& error) {
    for (const po::option& option : of_project.options) {
      const std::string flag = "--" + option.string_key;
      const bool about_it = std::string_view(error.what()).starts_with(flag + " ");
      if (about_it && !given.contains(option.string_key))
        give_up(error.code(), "{}: {}", project.file.string(), error.what() + strlen("--"));
    }
    throw;
  }
}

/// While somebody asks for a command's flags instead of running it.
Flags* asked = nullptr;

std::string usage_of(const Verb& verb) {
  std::string text;
  for (const char* usage : verb.usages) {
    text +=
        fmt::format("{}moegate {} {}\n", text.empty() ? "usage: " : "       ", verb.name, usage);
  }
  return text;
}

std::string examples_of(const Verb& verb) {
  return fmt::format("Examples:\n  {}\n  {}\n", verb.examples[0], verb.examples[1]);
}

/// All that help says, at the width that Boost gives it.
void print_help(const Verb& verb, const po::options_description& options) {
  std::cout << usage_of(verb) << '\n'
            << verb.about << "\n\n"
            << options << '\n'
            << examples_of(verb);
}

/// One screen: the most used flags, a line each.
void print_short_help(const Verb& verb, const Flags& flags) {
  constexpr size_t kWidth = 80;
  size_t column = 0;
  std::vector<std::pair<std::string, std::string>> lines;
  for (const char* name : verb.common) {
    const Flag* flag = flags.find(name);
    if (flag == nullptr) continue;
    std::string typed = fmt::format("  --{}", flag->text.name);
    if (*flag->text.value != 0) typed += fmt::format(" {}", flag->text.value);
    column = std::max(column, typed.size() + 2);
    lines.emplace_back(typed, flag->text.about);
  }
  std::string text = usage_of(verb) + "\n" + verb.about + "\n\n" + examples_of(verb) + "\n";
  for (auto& [typed, about] : lines) {
    const size_t room = kWidth - column;
    if (about.size() > room) {
      const size_t cut = about.rfind(' ', room - 4);
      about = about.substr(0, cut) + " ...";
    }
    text += fmt::format("{:{}}{}\n", typed, column, about);
  }
  std::cout << text << fmt::format("\nAll flags: moegate {} --help\n", verb.name);
}

}  // namespace

std::string Flag::if_unset() const {
  if (text.kind == ValueKind::none) return "";
  // Boost shows "VALUE (=default)".
  const std::string shown = option->semantic()->name();
  const size_t at = shown.find(" (=");
  return at == std::string::npos ? "" : shown.substr(at + 3, shown.size() - at - 4);
}

Flags& Flags::add(Flag flag) {
  groups_.front().flags.push_back(std::move(flag));
  return *this;
}

Flags& Flags::add(const Flags& more) {
  groups_.insert(groups_.end(), more.groups_.begin(), more.groups_.end());
  return *this;
}

std::vector<std::reference_wrapper<const Flag>> Flags::all() const {
  std::vector<std::reference_wrapper<const Flag>> flags;
  for (const Group& group : groups_) {
    flags.insert(flags.end(), group.flags.begin(), group.flags.end());
  }
  return flags;
}

Flags& Flags::replace(const Flag& flag) {
  for (Group& group : groups_) {
    for (Flag& old : group.flags) {
      if (std::string_view(old.text.name) == flag.text.name) old = flag;
    }
  }
  return *this;
}

const Flag* Flags::find(std::string_view name) const {
  for (const Flag& flag : all()) {
    if (flag.text.name == name) return &flag;
  }
  return nullptr;
}

bool parse(const std::string& name, const Flags& flags, const Args& args,
           const std::vector<Argument>& places, std::set<std::string>* given,
           const Project* project) {
  po::options_description hidden;
  po::positional_options_description order;
  for (const Argument& place : places) {
    hidden.add_options()(place.name, place.value);
    order.add(place.name, &place == &places.back() ? -1 : 1);
  }
  if (asked != nullptr) {
    *asked = flags;
    return false;
  }
  po::options_description shown(flags.groups().front().title);
  for (const Flag& flag : flags.groups().front().flags) shown.add(flag.option);
  shown.add_options()("help,h", flag_text("help").about);
  for (size_t i = 1; i < flags.groups().size(); ++i) {
    po::options_description part(flags.groups()[i].title);
    for (const Flag& flag : flags.groups()[i].flags) part.add(flag.option);
    shown.add(part);
  }
  po::options_description all;
  all.add(shown).add(hidden);
  po::variables_map values;
  try {
    // Unambiguous prefixes are refused too: a flag added later must not change what a script means.
    const auto style = po::command_line_style::default_style &
                       ~static_cast<int>(po::command_line_style::allow_guessing);
    po::store(po::command_line_parser(args).options(all).positional(order).style(style).run(),
              values);
    if (values.count("help") != 0) {
      const Verb* verb = find_verb(name);
      if (verb == nullptr) give_up(Exit::internal, "no verb '{}'", name);
      if (std::ranges::count(args, "--help") > 0) {
        print_help(*verb, shown);
      } else {
        print_short_help(*verb, flags);
      }
      return false;
    }
    std::set<std::string> typed;
    for (const auto& [flag, value] : values) {
      if (!value.defaulted()) typed.insert(flag);
    }
    const Project found = project == nullptr ? find_project() : *project;
    use_python(found);
    const po::parsed_options more = flags_of_project(found, name, flags, all);
    po::store(more, values);  // takes no value of what was typed
    read_values(values, found, more, typed);
    if (given) *given = typed;
  } catch (const po::error& e) {
    usage_error("{}: {}; see --help", name, why(e, name, args, flags, places));
  }
  return true;
}

Flags flags_of(const Verb& verb) {
  Flags flags;
  asked = &flags;
  verb.run({});
  asked = nullptr;
  return flags;
}

void refuse_other_flags(const std::set<std::string>& given, const std::set<std::string>& allowed,
                        const std::string& why) {
  for (const std::string& name : given) {
    if (!allowed.contains(name)) usage_error("--{} {}", name, why);
  }
}

void refuse_beside_resume(const std::set<std::string>& given, std::set<std::string> allowed) {
  allowed.insert("resume");
  refuse_other_flags(given, allowed,
                     "is given beside --resume, but a resumed run has the options that it was "
                     "begun with; leave it out, or start a new run");
}

void refuse_flags(const std::set<std::string>& given, const std::vector<std::string>& flags,
                  const std::string& why) {
  for (const std::string& name : flags) {
    if (given.contains(name)) usage_error("--{} {}", name, why);
  }
}

double parse_share(const std::string& flag, const std::string& text) {
  const auto share = parse_percent(text);
  if (!share) usage_error("{} '{}' is not a share; write it in percent, like 1%", flag, text);
  return *share;
}

const std::string& plain_name(const std::string& flag, const std::string& text) {
  if (one_line(text) == text) return text;
  usage_error(
      "{} '{}' has control characters, line ends or bytes that are not UTF-8; leave them out", flag,
      one_line(text));
}

std::string command_line(const std::string& command, const Args& args) {
  std::string line = "moegate " + command;
  for (const std::string& arg : args) line += " " + shell_word(arg);
  return line;
}

}  // namespace moegate
