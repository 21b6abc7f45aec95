// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

namespace moegate {

/// A number for each of some rounds, in their order. As std::map<int, double>, but in one piece of
/// memory: a run has 10^5 of these, of five rounds each.
class ByRound {
 public:
  using key_type = int;
  using mapped_type = double;
  using value_type = std::pair<key_type, mapped_type>;
  using const_iterator = std::vector<value_type>::const_iterator;

  ByRound() = default;
  ByRound(std::initializer_list<value_type> values) {
    for (const auto& [round, value] : values) (*this)[round] = value;
  }

  /// That of a round, 0 where it had none.
  double& operator[](int round) {
    const auto at = std::ranges::lower_bound(values_, round, {}, &value_type::first);
    if (at != values_.end() && at->first == round) return at->second;
    return values_.insert(at, {round, 0})->second;
  }
  const_iterator find(int round) const {
    const auto at = std::ranges::lower_bound(values_, round, {}, &value_type::first);
    return at != values_.end() && at->first == round ? at : values_.end();
  }
  /// Throws std::out_of_range for a round that it does not have.
  double at(int round) const {
    const auto found = find(round);
    if (found == end()) throw std::out_of_range("a round without a value");
    return found->second;
  }
  size_t count(int round) const { return find(round) == end() ? 0 : 1; }
  void erase(int round) {
    if (const auto at = find(round); at != end()) values_.erase(at);
  }
  void clear() { values_.clear(); }
  void reserve(size_t rounds) { values_.reserve(rounds); }

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  bool operator==(const ByRound&) const = default;

 private:
  std::vector<value_type> values_;
};

}  // namespace moegate
