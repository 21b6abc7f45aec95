// SPDX-License-Identifier: Apache-2.0
// A line of the input is a word of a command line that has the flags of every command. Parsed only.
#include <cctype>
#include <iostream>
#include <sstream>

#include "harness/commands/cli.h"
#include "harness/commands/flags.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

Args words_of(std::string_view bytes) {
  Args words;
  std::istringstream in{std::string(bytes)};
  for (std::string line; std::getline(in, line);) words.push_back(line);
  return words;
}

/// What a shell makes of a command line that people copy. Throws Finding where it is more
/// than words.
Args read_by_shell(const std::string& line) {
  Args words(1);
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ' ') {
      words.emplace_back();
    } else if (c == '\'') {
      const size_t end = line.find('\'', i + 1);
      require(end != std::string::npos, "a quote without its end");
      words.back() += line.substr(i + 1, end - i - 1);
      i = end;
    } else if (c == '\\') {
      words.back() += line.at(++i);
    } else {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
      require(plain || std::string_view("-_./=,:@%+").find(c) != std::string_view::npos,
              "a character that a shell reads");
      words.back() += c;
    }
  }
  return words;
}

void check_command_line(const Args& args) {
  Args words = {"moegate", "run"};
  words.insert(words.end(), args.begin(), args.end());
  require(read_by_shell(command_line("run", args)) == words, "other words");
}

bool parse_all(const Args& args, RunOptions& run) {
  JudgingOptions judging;
  std::optional<std::string> resume;
  std::string which;
  Flags all("What to keep");
  all.add(flag("rounds", run.rounds)).add(flag("resume", resume));
  all.add(db_flag(run.db)).add(run_flag(which));
  all.add(selection_flags(run)).add(measuring_flags(run)).add(judging_flags(judging));
  std::streambuf* const out = std::cout.rdbuf(nullptr);  // --help
  const bool run_it = accepted({Exit::usage, Exit::environment}, [&] {
    if (!parse("run", all, args)) throw Error(Exit::usage, "--help");
    check_measuring(run);
    within("--rounds", run.rounds, 1, kMostRounds);
    judging.limits.of(backend_of("host"));
  });
  std::cout.rdbuf(out);
  std::cout.clear();
  return run_it;
}

}  // namespace

void flags(std::string_view bytes) {
  const Args args = words_of(bytes);
  check_command_line(args);
  RunOptions run;
  if (!parse_all(args, run)) return;
  RunOptions stored;
  stored.from_json(run.to_json());
  require(stored.to_json() == run.to_json(), "a resumed run has other options");
}

}  // namespace moegate::fuzz
