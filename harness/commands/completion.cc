// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/completion.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <sstream>

#include "harness/base/pattern.h"

namespace moegate {
namespace {

/// The values that a description begins by listing: "md, csv or json on stdout".
WordList listed_values(const std::string& about) {
  static const Pattern list = compile_pattern("", "^[a-z-]+([,;] [a-z-]+)* or [a-z-]+");
  if (!list.found_in(about)) return {};
  WordList values;
  bool last = false;
  std::istringstream words(about);
  for (std::string word; words >> word;) {
    if (word == "or") {
      last = true;
      continue;
    }
    word = word.substr(0, word.find_first_of(",;"));
    // "cuda:N" is no value.
    if (word.find(':') == std::string::npos) values.push_back(word);
    if (last) break;
  }
  return values;
}

Asked value_asked(const HelpFlag& flag) {
  static const std::set<std::string> kFiles = {"PATH", "FILE", "DIR", "FOLDER"};
  if (flag.name == "--suite") return {Wanted::suites};
  if (flag.name == "--op") return {Wanted::operators};
  if (flag.name == "--kernel" || flag.name == "--variant") return {Wanted::variants};
  if (flag.name == "--axis") return {Wanted::axis};
  if (flag.name == "--filter" || flag.name == "--case") return {Wanted::case_part};
  if (flag.name == "--run" || flag.value == "RUN") return {Wanted::runs};
  if (flag.value == "NAME" && flag.about.starts_with("a report")) return {Wanted::reports};
  if (kFiles.contains(flag.value)) return {Wanted::files};
  if (flag.value == "REF") return {};  // of another repository
  return {Wanted::words, listed_values(flag.about)};
}

WordList flag_names(const HelpText& help) {
  WordList names;
  for (const HelpGroup& group : help.groups) {
    for (const HelpFlag& flag : group.flags) names.push_back(flag.name);
  }
  return names;
}

/// The places of a usage line: {"suites|kernels"} of "moegate list [suites|kernels] [options]".
WordList places_of(const HelpText& help) {
  WordList places;
  std::istringstream words(help.usages.empty() ? "" : help.usages[0]);
  std::string word;
  words >> word >> word;  // moegate COMMAND
  while (words >> word && !word.starts_with("--") && word != "[options]") {
    std::erase_if(word, [](char c) { return c == '[' || c == ']'; });
    places.push_back(word);
  }
  return places;
}

constexpr const char* kRepeated = "...";

Asked place_asked(const HelpText& help, std::string place) {
  if (place.ends_with(kRepeated)) place.erase(place.size() - std::strlen(kRepeated));
  if (std::ranges::none_of(place, [](unsigned char c) { return std::isupper(c); })) {
    Asked asked{Wanted::words};
    std::istringstream values(place);
    for (std::string value; std::getline(values, value, '|');) asked.words.push_back(value);
    return asked;
  }
  std::string flag = "--" + place;
  std::ranges::transform(flag, flag.begin(), [](unsigned char c) { return std::tolower(c); });
  const HelpFlag* named = help.find(flag);
  return value_asked(named != nullptr ? *named : HelpFlag{flag, place});
}

bool takes_value(const HelpText& help, const std::string& word) {
  const HelpFlag* flag = help.find(word);
  return flag != nullptr && !flag->value.empty();
}

/// How many of the words before the last one stand for themselves, as no flag and no flag's value.
size_t places_taken(const HelpText& help, const WordList& words) {
  size_t taken = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (takes_value(help, words[i])) {
      ++i;
    } else if (!words[i].starts_with("-")) {
      ++taken;
    }
  }
  return taken;
}

Asked with_typed(Asked asked, const std::string& before, const std::string& typed) {
  asked.before = before;
  asked.typed = typed;
  const bool may_be_path = asked.wanted == Wanted::suites || asked.wanted == Wanted::reports;
  if (may_be_path && typed.find_first_of("/.~") != std::string::npos) asked.wanted = Wanted::files;
  return asked;
}

/// Where the word of a key begins that ends a regular expression.
size_t last_word(const std::string& pattern) {
  const auto is_of_word = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-=:.").find(static_cast<char>(c)) < 5;
  };
  size_t begin = pattern.size();
  while (begin > 0 && is_of_word(pattern[begin - 1])) --begin;
  return begin;
}

/// A parameter's name, or, behind it and '=', one of its values: the last one of --axis tokens=1,8.
Asked typed_parameter(Wanted wanted, const std::string& before, const std::string& typed) {
  const size_t name = wanted == Wanted::axis ? 0 : last_word(typed);
  const size_t equals = typed.find('=', name);
  if (equals == std::string::npos)
    return {wanted, {}, before + typed.substr(0, name), typed.substr(name), ""};
  const size_t comma = typed.rfind(',');
  const bool list = wanted == Wanted::axis && comma != std::string::npos && comma > equals;
  const size_t value = (list ? comma : equals) + 1;
  return {wanted,
          {},
          before + typed.substr(0, value),
          typed.substr(value),
          typed.substr(name, equals - name)};
}

/// The value of a flag; of a list, its last part.
Asked typed_value(const HelpFlag& flag, const std::string& before, const std::string& typed) {
  const Wanted wanted = value_asked(flag).wanted;
  if (wanted == Wanted::axis || wanted == Wanted::case_part)
    return typed_parameter(wanted, before, typed);
  const size_t comma = flag.value.find(',') == std::string::npos ? std::string::npos  //
                                                                 : typed.rfind(',');
  const size_t part = comma == std::string::npos ? 0 : comma + 1;
  return with_typed(value_asked(flag), before + typed.substr(0, part), typed.substr(part));
}

}  // namespace

std::optional<std::string> value_of(const std::string& flag, const WordList& words) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) value = words[i + 1];
    if (words[i].starts_with(flag + "=")) value = words[i].substr(flag.size() + 1);
  }
  return value;
}

WordList values_of(const std::string& flag, const WordList& words) {
  WordList values;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) values.push_back(words[i + 1]);
    if (words[i].starts_with(flag + "=")) values.push_back(words[i].substr(flag.size() + 1));
  }
  return values;
}

Joined joined_words(const WordList& words) {
  Joined joined;
  WordList& out = joined.words;
  bool within = false;  // the next word goes on with the last one
  for (const std::string& word : words) {
    const bool cuts = (word == "=" || word == ":") && !out.empty();
    if (cuts && word == "=" && out.back().starts_with("--") &&
        out.back().find('=') == std::string::npos) {
      out.emplace_back();  // the flag's value, as if behind a blank
      joined.cut = 0;
      within = true;
    } else if (cuts || within) {
      if (!cuts) joined.cut = out.back().size();
      out.back() += word;
      if (cuts) joined.cut = out.back().size();
      within = cuts;
    } else {
      out.push_back(word);
      joined.cut = 0;
    }
  }
  return joined;
}

Asked asked_for(const HelpText& help, const WordList& words) {
  if (words.empty()) return {};
  const std::string& word = words.back();
  if (words.size() > 1 && takes_value(help, words[words.size() - 2])) {
    return typed_value(*help.find(words[words.size() - 2]), "", word);
  }
  const size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos) {
    const HelpFlag* flag = help.find(word.substr(0, equals));
    if (flag == nullptr || flag->value.empty()) return {};
    return typed_value(*flag, word.substr(0, equals + 1), word.substr(equals + 1));
  }
  if (word.starts_with("-")) return with_typed({Wanted::words, flag_names(help)}, "", word);
  const WordList places = places_of(help);
  const size_t taken = places_taken(help, words);
  const bool repeated = !places.empty() && places.back().ends_with(kRepeated);
  if (taken < places.size() || repeated) {
    const std::string& place = places[std::min(taken, places.size() - 1)];
    return with_typed(place_asked(help, place), "", word);
  }
  return with_typed({Wanted::words, flag_names(help)}, "", word);
}

}  // namespace moegate
