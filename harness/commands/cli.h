// SPDX-License-Identifier: Apache-2.0
// What every subcommand does with its arguments: parse them with Boost.Program_options, print its
// help, and turn a bad flag into one clear line.
#pragma once

#include <boost/program_options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moegate {

using Args = std::vector<std::string>;

/// Parses `args`; the positional ones go to the options named in `positional`, one each, the last
/// one taking the rest when it holds a vector. Returns nothing after printing `usage` and the
/// options for
/// --help. Throws Error(usage) naming the command and the flag.
std::optional<boost::program_options::variables_map> parse(
    const std::string& usage, boost::program_options::options_description options, const Args& args,
    const std::vector<std::string>& positional = {});

/// "500ms", "2s", "1.5min" or a plain number of seconds. Throws Error(usage) naming the flag.
double parse_seconds(const std::string& flag, const std::string& text);

/// Splits "a=b" for --axis and --tag. Throws Error(usage) naming the flag.
std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text);

/// Splits at commas; empty parts are an Error(usage) naming the flag.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

}  // namespace moegate
