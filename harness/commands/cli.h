// SPDX-License-Identifier: Apache-2.0
// What every subcommand does with its arguments: parse them with Boost.Program_options, print its
// help, and turn a bad flag into one clear line.
#pragma once

#include <boost/program_options.hpp>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace moegate {

using Args = std::vector<std::string>;

/// Parses `args` into the fields that `options` are bound to. Positional arguments go to the
/// options named in `positional`, one each; the last one takes the rest when it holds a vector.
/// Returns false after printing `usage` and the options for --help. Throws Error(usage) naming the
/// command and the flag. `given` gets the names of the options that the user typed.
bool parse(const std::string& usage, boost::program_options::options_description options,
           const Args& args, const std::vector<std::string>& positional = {},
           std::set<std::string>* given = nullptr);

/// Throws Error(usage) for an option that was given beside --resume and is not one of `allowed`: a
/// resumed run has the options that it was begun with.
void refuse_beside_resume(const std::set<std::string>& given, const std::set<std::string>& allowed);

/// A flag that may be left out: the field stays empty.
template <class T>
boost::program_options::typed_value<T>* into(std::optional<T>& field) {
  return boost::program_options::value<T>()->notifier([&field](const T& value) { field = value; });
}

/// A text that is read by `read`, which throws Error(usage).
template <class Read>
boost::program_options::typed_value<std::string>* read_by(Read read) {
  return boost::program_options::value<std::string>()->notifier(read);
}

/// "500ms", "2s", "1.5min" or a plain number of seconds, a week at most. Throws Error(usage) naming
/// the flag.
double parse_seconds(const std::string& flag, const std::string& text);

/// "1%" -> 0.01. Throws Error(usage) naming the flag.
double parse_share(const std::string& flag, const std::string& text);

/// Splits "a=b" for --axis and --tag. Throws Error(usage) naming the flag.
std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text);

/// Splits at commas; empty parts are an Error(usage) naming the flag.
std::vector<std::string> parse_list(const std::string& flag, const std::string& text);

/// Throws Error(usage) naming the flag when its value is below `least`.
void at_least(const char* flag, double value, double least);
/// Throws Error(usage) naming the flag when its value is not within [least, most].
void within(const char* flag, double value, double least, double most);

/// The text of a name that a user gives. Throws Error(usage) naming the flag for control characters,
/// line ends and bytes that are no UTF-8.
const std::string& plain_name(const std::string& flag, const std::string& text);

/// What the user typed, quoted for a shell: "moegate run --suite tiny".
std::string command_line(const std::string& command, const Args& args);

}  // namespace moegate
