// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/completion.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "harness/base/text.h"

namespace moegate {
namespace {

/// The flag of a word such as "--suite"; null for any other word.
const Flag* flag_of(const Flags& flags, const std::string& word) {
  return word.starts_with("--") ? flags.find(word.substr(2)) : nullptr;
}

/// The places of a verb's usages, in order: {"suites|kernels"} of "suites|kernels [options]". A
/// usage that begins with a plain word adds it to the first place.
WordList places_of(const Verb& verb) {
  WordList places;
  for (const char* usage : verb.usages) {
    std::istringstream words(usage);
    std::string word;
    for (size_t i = 0; words >> word && !word.starts_with("--") && word != "[options]"; ++i) {
      std::erase_if(word, [](char c) { return c == '[' || c == ']'; });
      if (places.size() <= i) {
        places.push_back(word);
      } else if (places[i] != word) {
        places[i] += "|" + word;
      }
    }
  }
  return places;
}

constexpr const char* kRepeated = "...";

/// A place in capitals is what a person names: a report, a run, a file.
Asked place_asked(const std::string& place) {
  Asked asked{ValueKind::choice};
  std::istringstream values(place);
  for (std::string value; std::getline(values, value, '|');) {
    const bool repeated = value.ends_with(kRepeated);
    if (value == "REPORT") {
      asked.wanted = ValueKind::report;
    } else if (repeated || value == "OUT") {
      return {ValueKind::file};
    } else if (value != "BASE" && value != "HEAD" && value != "NAME") {
      asked.words.push_back(value);
    }
  }
  return asked;
}

bool takes_value(const Flags& flags, const std::string& word) {
  const Flag* flag = flag_of(flags, word);
  return flag != nullptr && flag->text.kind != ValueKind::none;
}

/// How many of the words before the last one stand for themselves, as no flag and no flag's value.
size_t places_taken(const Flags& flags, const WordList& words) {
  size_t taken = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (takes_value(flags, words[i])) {
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
  const bool may_be_path = asked.wanted == ValueKind::suite || asked.wanted == ValueKind::report;
  if (may_be_path && typed.find_first_of("/.~") != std::string::npos)
    asked.wanted = ValueKind::file;
  return asked;
}

/// Where the word of a key begins that ends a regular expression.
size_t last_word(const std::string& pattern) {
  constexpr const char* kOfWord =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=:.";
  return pattern.find_last_not_of(kOfWord) + 1;  // npos + 1 is 0
}

/// A parameter's name, or, behind it and '=', one of its values: the last one of --axis tokens=1,8.
Asked typed_parameter(ValueKind wanted, const std::string& before, const std::string& typed) {
  const size_t name = wanted == ValueKind::axis ? 0 : last_word(typed);
  const size_t equals = typed.find('=', name);
  if (equals == std::string::npos)
    return {wanted, {}, before + typed.substr(0, name), typed.substr(name), ""};
  const size_t comma = typed.rfind(',');
  const bool list = wanted == ValueKind::axis && comma != std::string::npos && comma > equals;
  const size_t value = (list ? comma : equals) + 1;
  return {wanted,
          {},
          before + typed.substr(0, value),
          typed.substr(value),
          typed.substr(name, equals - name)};
}

/// The value of a flag; of a list, its last part.
Asked typed_value(const FlagText& flag, const std::string& before, const std::string& typed) {
  if (flag.kind == ValueKind::axis || flag.kind == ValueKind::filter)
    return typed_parameter(flag.kind, before, typed);
  const bool is_list = std::string_view(flag.value).find(',') != std::string_view::npos;
  const size_t comma = is_list ? typed.rfind(',') : std::string::npos;
  const size_t part = comma == std::string::npos ? 0 : comma + 1;
  Asked asked{flag.kind};
  if (flag.kind == ValueKind::choice) asked.words = split_list(flag.choices);
  return with_typed(std::move(asked), before + typed.substr(0, part), typed.substr(part));
}

}  // namespace

std::optional<std::string> value_of(const std::string& flag, const WordList& words) {
  const WordList values = values_of(flag, words);
  return values.empty() ? std::nullopt : std::optional(values.back());
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

Asked asked_for(const Verb& verb, const Flags& flags, const WordList& words) {
  if (words.empty()) return {};
  const std::string& word = words.back();
  if (words.size() > 1 && takes_value(flags, words[words.size() - 2])) {
    return typed_value(flag_of(flags, words[words.size() - 2])->text, "", word);
  }
  const size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos) {
    const Flag* flag = flag_of(flags, word.substr(0, equals));
    if (flag == nullptr || flag->text.kind == ValueKind::none) return {};
    return typed_value(flag->text, word.substr(0, equals + 1), word.substr(equals + 1));
  }
  const WordList places = places_of(verb);
  const size_t taken = places_taken(flags, words);
  const bool repeated = !places.empty() && places.back().find(kRepeated) != std::string::npos;
  if (word.starts_with("-") || (taken >= places.size() && !repeated)) {
    WordList names = {"--help"};
    for (const Flag& flag : flags.all()) names.push_back(fmt::format("--{}", flag.text.name));
    return with_typed({ValueKind::choice, names}, "", word);
  }
  return with_typed(place_asked(places[std::min(taken, places.size() - 1)]), "", word);
}

}  // namespace moegate
