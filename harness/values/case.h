// SPDX-License-Identifier: Apache-2.0
// One point of a suite: an operator and the values of its parameters. Plain data; knows neither
// devices nor kernels. key() is the identity of a case in filters, logs, the store and baselines.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace moegate {

/// One parameter that an operator reads. An empty default_value makes it required in every suite.
struct Param {
  std::string name;
  std::string default_value;
  std::string help;
};

/// Parameters every operator has: how to run a case rather than what to compute.
///   launch = stream | graph   (a GPU case launched eagerly or as a captured graph)
///   cache  = cold | warm | cold-weights
///   seed   = seed of every input
const std::vector<Param>& common_params();

/// Values by the names of parameters, which copies share: 10^5 cases of a section have the same
/// defaults. A value is replaced as a whole.
class SharedParams {
 public:
  using Map = std::map<std::string, std::string>;

  SharedParams() = default;
  SharedParams(Map values)  // NOLINT: implicit, as a Map is written where one is meant
      : values_(std::make_shared<const Map>(std::move(values))) {}
  SharedParams(std::initializer_list<Map::value_type> values) : SharedParams(Map(values)) {}
  const Map& get() const {
    static const Map none;
    return values_ ? *values_ : none;
  }
  /// Of that name; null: it has none.
  const std::string* find(const std::string& name) const {
    const auto at = get().find(name);
    return at == get().end() ? nullptr : &at->second;
  }

 private:
  std::shared_ptr<const Map> values_;
};

struct Case {
  std::string suite;    // name of the suite file, without folder and extension
  std::string section;  // model name
  std::string op;
  std::map<std::string, std::string> params;  // every parameter, defaults filled in
  SharedParams defaults;                      // the operator's defaults, to leave out of key()
  /// Whether its problem finds the truth of its outputs, which takes longest; no part of what the
  /// case is.
  bool truth = true;

  /// "op/name=value,…", names sorted. A parameter at its default is left out, so that a new
  /// parameter with a default never renames the cases that exist.
  std::string key() const;

  /// Where the case was written, for error messages: "tiny.suite [ties]".
  std::string where() const;

  /// Value of a declared parameter; throws Error(usage) naming suite, section, parameter and value
  /// when it is absent, not a number, or outside [low, high].
  const std::string& get(const std::string& name) const;
  int64_t get_int(const std::string& name, int64_t low, int64_t high) const;
  double get_double(const std::string& name, double low, double high) const;
  /// Index of the value in `choices`; throws Error(usage) listing them otherwise.
  size_t get_choice(const std::string& name, const std::vector<std::string>& choices) const;
};

}  // namespace moegate
