// SPDX-License-Identifier: Apache-2.0
// An option of a run: one row says how its flag is typed, how it is stored, and which member holds
// it. The command line, the stored JSON, the worker's wire, the command that repeats a row, help,
// completion and the man page read it.
#pragma once

#include <nlohmann/json.hpp>

#include <concepts>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/values/json_fields.h"

namespace moegate {

/// What a flag's value is. Shells complete by it.
enum class ValueKind {
  none,  // the flag stands alone
  text,
  choice,  // one of FlagText::choices
  number,
  time,     // "500ms"; seconds
  percent,  // "0.5"; a share
  file,
  suite,
  op,
  variant,
  filter,
  axis,
  run,
  report
};

/// A flag as people see it.
struct FlagText {
  const char* name = "";   // without dashes; empty: the option has no flag
  const char* value = "";  // what its value is called: "S"
  ValueKind kind = ValueKind::none;
  const char* about = "";
  const char* choices = "";    // "auto,cupti,event"
  double least = 0, most = 0;  // of a number; both 0: any
};

/// When the command that repeats a row names an option.
enum class Repeat { never, if_set, always };

template <class Options>
struct Option {
  FlagText flag;
  const char* group;  // of help
  const char* key;    // of the stored JSON
  const char* wire;   // JSON pointer of the worker's `start` message; empty: the worker is not told
  Repeat repeat;
  void (*read)(Options&, const FlagText&, const std::string&);  // throws Error(usage)
  /// As read() takes it; of a list a text for each part.
  std::vector<std::string> (*words)(const Options&, const FlagText&);
  nlohmann::json (*get)(const Options&);
  void (*set)(Options&, const nlohmann::json&);  // throws std::exception
};

/// "500ms", "2s", "1.5min" or "1.5m", "2h"; a week at most. Throws Error(usage) naming the flag.
double parse_seconds(const std::string& flag, const std::string& text);

/// Throws Error(usage) naming the flag when its value is below `least`.
void at_least(const std::string& flag, double value, double least);
/// Throws Error(usage) naming the flag when its value is not within [least, most].
void within(const std::string& flag, double value, double least, double most);

namespace option {

template <auto First, auto... Rest>
auto& member(auto& object) {
  if constexpr (sizeof...(Rest) == 0) {
    return object.*First;
  } else {
    return member<Rest...>(object.*First);
  }
}

/// Throws Error(usage) naming the flag for a number outside of its range.
void check_range(const FlagText& flag, double value);
double parse_real(const FlagText& flag, const std::string& text);
void check_choice(const FlagText& flag, const std::string& text);

template <class T>
concept Listed = std::same_as<T, std::vector<std::string>>;

template <class T>
void read(const FlagText& flag, const std::string& text, T& value) {
  if constexpr (Listed<T>) {
    value.push_back(text);
  } else if constexpr (std::same_as<T, std::string>) {
    if (flag.kind == ValueKind::choice) check_choice(flag, text);
    value = text;
  } else if constexpr (Named<T>) {
    check_choice(flag, text);
    parse_name(text, value);
  } else if constexpr (Integer<T>) {
    const auto number = parse_number<T>(text);  // Boost takes -1 for the largest number
    if (!number)
      usage_error("--{} '{}' is no whole number{}", flag.name, text,
                  std::unsigned_integral<T> ? " from 0 on" : "");
    check_range(flag, static_cast<double>(*number));
    value = *number;
  } else if constexpr (std::same_as<T, std::vector<double>> || std::same_as<T, bool>) {
    throw Error(Exit::internal, "an option without a flag was typed");
  } else if (flag.kind == ValueKind::time) {
    value = parse_seconds("--" + std::string(flag.name), text);
  } else {
    value = parse_real(flag, text) / (flag.kind == ValueKind::percent ? 100 : 1);
  }
}

template <class T>
std::vector<std::string> words(const FlagText& flag, const T& value) {
  if constexpr (Listed<T>) {
    return value;
  } else if constexpr (std::same_as<T, std::string>) {
    return {value};
  } else if constexpr (Named<T>) {
    return {name_of(value)};
  } else if constexpr (Integer<T>) {
    return {std::to_string(value)};
  } else if constexpr (std::same_as<T, std::vector<double>> || std::same_as<T, bool>) {
    return {};  // no flag sets it
  } else {
    const double shown = value * (flag.kind == ValueKind::percent ? 100 : 1);
    return {fmt::format("{}{}", shown, flag.kind == ValueKind::time ? "s" : "")};
  }
}

}  // namespace option

/// A row for the member that a path of pointers to members leads to.
template <class Options, auto... Path>
constexpr Option<Options> option_row(FlagText flag, const char* group, const char* key,
                                     const char* wire, Repeat repeat) {
  return {flag,
          group,
          key,
          wire,
          repeat,
          [](Options& o, const FlagText& f, const std::string& text) {
            option::read(f, text, option::member<Path...>(o));
          },
          [](const Options& o, const FlagText& f) {
            return option::words(f, option::member<Path...>(o));
          },
          [](const Options& o) -> nlohmann::json { return option::member<Path...>(o); },
          [](Options& o, const nlohmann::json& json) {
            auto& value = option::member<Path...>(o);
            if constexpr (Integer<std::remove_cvref_t<decltype(value)>>) {
              read_number(json, value);
            } else {
              json.get_to(value);
            }
          }};
}

}  // namespace moegate
