// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>

namespace moegate {

/// Finds keys in a map. Where they are asked for in the map's order, or nearly, each is a step or two
/// from the one before; else it is found as the map finds it. The map may not change meanwhile.
template <class Map>
class InOrder {
 public:
  using Iterator = typename Map::const_iterator;

  explicit InOrder(const Map& map) : map_(&map), at_(map.begin()) {}

  /// As Map::find().
  Iterator find(const typename Map::key_type& key) {
    constexpr int kSteps = 4;
    const auto less = map_->key_comp();
    bool stepped = false;  // so that all before at_ is less
    for (int i = 0; i < kSteps && at_ != map_->end() && less(at_->first, key); ++i) {
      ++at_;
      stepped = true;
    }
    const bool passed = at_ == map_->end() || !less(at_->first, key);
    const bool none_before = stepped || at_ == map_->begin() || less(std::prev(at_)->first, key);
    if (!passed || !none_before) at_ = map_->lower_bound(key);
    return at_ == map_->end() || less(key, at_->first) ? map_->end() : at_;
  }
  /// Null: the map has no such key.
  const typename Map::mapped_type* find_or_null(const typename Map::key_type& key) {
    const Iterator found = find(key);
    return found == map_->end() ? nullptr : &found->second;
  }

 private:
  const Map* map_;
  Iterator at_;
};

}  // namespace moegate
