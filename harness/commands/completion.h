// SPDX-License-Identifier: Apache-2.0
// What could stand at the cursor of a command line, by the tables of verbs and flags alone. What
// there is of it (suites, runs) is looked up by cmd_complete.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/commands/cli.h"
#include "harness/values/option.h"

namespace moegate {

using WordList = std::vector<std::string>;

struct Asked {
  ValueKind wanted = ValueKind::none;  // a `choice` is one of `words`
  WordList words;
  std::string before;  // what every candidate begins with that is no part of its name
  std::string typed;   // what its name begins with
  /// Of an axis and a filter: the parameter whose value is typed; empty: none yet.
  std::string of;
};

/// Whether a line has a flag with a value: the last one.
std::optional<std::string> value_of(const std::string& flag, const WordList& words);

WordList values_of(const std::string& flag, const WordList& words);

/// As typed, of bash's words: it cuts --suite=tiny into three, and zipf:0.67.
struct Joined {
  WordList words;
  size_t cut =
      0;  // bytes of the last word that are no part of bash's, so that no candidate has them
};
Joined joined_words(const WordList& words);

/// What could stand in place of the last word, which ends at the cursor; `words` follow the verb.
Asked asked_for(const Verb& verb, const Flags& flags, const WordList& words);

}  // namespace moegate
