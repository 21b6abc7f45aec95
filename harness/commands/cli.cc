// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/cli.h"

#include <algorithm>
#include <iostream>

#include "harness/base/closest.h"
#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/pattern.h"
#include "harness/base/text.h"

namespace moegate {

namespace po = boost::program_options;

namespace {

/// Whether Boost's text about an argument would never end: it replaces %value% and its like in its
/// messages by what was typed as long as there are any, and what was typed may be one.
bool holds_placeholder(const std::string& arg) {
  static const Pattern placeholder = compile_pattern("", "%[a-z_]+%");
  return placeholder.found_in(arg);
}

/// "--filter", where the error is about an option of nearly that name.
std::string meant_option(const po::error& error, const po::options_description& options) {
  const auto* unknown = dynamic_cast<const po::unknown_option*>(&error);
  if (unknown == nullptr) return "";
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  return did_you_mean(unknown->get_option_name(), known);
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

std::string why(const po::error& error, const Args& args, const po::options_description& options,
                const std::vector<std::string>& positional) {
  if (one_too_many(error, args))
    return fmt::format("only {} may stand without a flag", fmt::join(positional, " and "));
  const auto arg = std::ranges::find_if(args, holds_placeholder);
  return arg == args.end() ? error.what() + meant_option(error, options)
                           : fmt::format("'{}' is not understood", *arg);
}

}  // namespace

bool parse(const std::string& usage, po::options_description options, const Args& args,
           const std::vector<std::string>& positional, std::set<std::string>* given) {
  options.add_options()("help,h", "this text");
  po::positional_options_description places;
  for (const std::string& name : positional) {
    places.add(name.c_str(), &name == &positional.back() ? -1 : 1);
  }
  po::variables_map values;
  const std::string command = usage.substr(0, usage.find(' ', usage.find(' ') + 1));
  try {
    // Unambiguous prefixes are refused too: a flag added later must not change what a script means.
    const auto style = po::command_line_style::default_style &
                       ~static_cast<int>(po::command_line_style::allow_guessing);
    po::store(po::command_line_parser(args).options(options).positional(places).style(style).run(),
              values);
    if (values.count("help") != 0) {
      std::cout << "usage: " << usage << "\n\n" << options;
      return false;
    }
    po::notify(values);
    for (const auto& [name, value] : values) {
      if (given && !value.defaulted()) given->insert(name);
    }
  } catch (const po::error& e) {
    usage_error("{}: {}; see --help", command, why(e, args, options, positional));
  }
  return true;
}

void refuse_beside_resume(const std::set<std::string>& given,
                          const std::set<std::string>& allowed) {
  for (const std::string& name : given) {
    if (name == "resume" || allowed.contains(name)) continue;
    usage_error(
        "--{} is given beside --resume, but a resumed run has the options that it was begun "
        "with; leave it out, or start a new run",
        name);
  }
}

double parse_seconds(const std::string& flag, const std::string& text) {
  const auto number = leading_number(text);
  const std::string unit = number ? number->rest : "?";
  const double factor = unit.empty() || unit == "s" ? 1
                        : unit == "ms"              ? 1e-3
                        : unit == "min"             ? 60
                                                    : 0;
  if (factor == 0 || !(number->value > 0)) {
    usage_error("{} '{}' is not a time; write 500ms, 2s or 1.5min", flag, text);
  }
  constexpr double kWeek = 7 * 24 * 3600;
  const double seconds = number->value * factor;
  if (!(seconds <= kWeek)) usage_error("{} '{}' is longer than a week; use less", flag, text);
  return seconds;
}

double parse_share(const std::string& flag, const std::string& text) {
  const auto share = parse_percent(text);
  if (!share) usage_error("{} '{}' is not a share; write it in percent, like 1%", flag, text);
  return *share;
}

std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    usage_error("{} '{}' is not of the form name=value", flag, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::string> parse_list(const std::string& flag, const std::string& text) {
  std::vector<std::string> parts = split_list(text);
  for (const std::string& part : parts) {
    if (part.empty()) usage_error("{} '{}' has an empty part", flag, text);
  }
  return parts;
}

void at_least(const char* flag, double value, double least) {
  if (!(value >= least)) usage_error("{} {}; use at least {}", flag, value, least);
}

void within(const char* flag, double value, double least, double most) {
  at_least(flag, value, least);
  if (!(value <= most)) usage_error("{} {}; use at most {}", flag, value, most);
}

const std::string& plain_name(const std::string& flag, const std::string& text) {
  if (one_line(text) == text) return text;
  usage_error(
      "{} '{}' has control characters, line ends or bytes that are no UTF-8; leave them out", flag,
      one_line(text));
}

std::string command_line(const std::string& command, const Args& args) {
  std::string line = "moegate " + command;
  for (const std::string& arg : args) line += " " + shell_word(arg);
  return line;
}

}  // namespace moegate
