// SPDX-License-Identifier: Apache-2.0
// The commands as people see them: what each is for, how it is typed, two examples, its most used flags.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moegate {

struct Verb {
  const char* name;
  const char* about;
  std::vector<const char*> usages;  // behind "moegate NAME"
  std::array<const char*, 2> examples;
  std::vector<const char*> common;  // flags that -h shows
};

std::span<const Verb> verbs();
/// Null where there is none of this name.
const Verb* find_verb(std::string_view name);

}  // namespace moegate
