// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/cli.h"

#include <iostream>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace moegate {

namespace po = boost::program_options;

std::optional<po::variables_map> parse(const std::string& usage, po::options_description options,
                                       const Args& args,
                                       const std::vector<std::string>& positional) {
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
      return std::nullopt;
    }
    po::notify(values);
  } catch (const po::error& e) {
    usage_error("{}: {}; see --help", command, e.what());
  }
  return values;
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
  return number->value * factor;
}

std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    usage_error("{} '{}' is not of the form name=value", flag, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::string> split_list(const std::string& flag, const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (;;) {
    const size_t comma = text.find(',', start);
    parts.push_back(text.substr(start, comma - start));
    if (parts.back().empty()) usage_error("{} '{}' has an empty part", flag, text);
    if (comma == std::string::npos) return parts;
    start = comma + 1;
  }
}

}  // namespace moegate
