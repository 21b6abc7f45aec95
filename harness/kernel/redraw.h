// SPDX-License-Identifier: Apache-2.0
// For operators whose activations the host draws: others of the same distribution for
// Problem::replace_activations(), and what belongs to each of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "harness/base/rng.h"
#include "harness/values/case.h"

namespace moegate {

/// Of a case's inputs.
inline uint64_t seed_of(const Case& c) {
  return static_cast<uint64_t>(c.get_int("seed", 0, std::numeric_limits<int64_t>::max()));
}

/// Rows [rows, width] that a seed determines, and others of the same distribution; where `draw`
/// takes a number, too, those from any number on of an endless row of them. Few rows are
/// drawn anew for every change. Many are drawn once more, from another seed, and rotated by the
/// change: drawing a large routing takes longer than launching on it. So are those that no seed
/// changes, as of a recorded routing: one row of them has no others.
template <class T>
class DrawnRows {
 public:
  /// `draw` makes the rows of a seed.
  DrawnRows(int64_t rows, uint64_t seed, std::function<std::vector<T>(uint64_t seed)> draw)
      : DrawnRows(rows, seed, [draw](uint64_t of, int64_t) { return draw(of); }) {}
  DrawnRows(int64_t rows, uint64_t seed,
            std::function<std::vector<T>(uint64_t seed, int64_t first)> draw)
      : rows_(rows), seed_(seed), draw_(std::move(draw)), first_(draw_(seed, 0)) {}

  const std::vector<T>& first() const { return first_; }
  /// Of a change as of Problem::replace_activations(), and of a row as of Problem::move_to().
  std::vector<T> of(uint64_t change, int64_t first = 0) {
    if (first != 0) return draw_(seed_, first);
    if (change == 0) return first_;
    const bool few = rows_ <= kFew;
    if (few || other_.empty()) other_ = draw_(mix64(seed_ ^ (few ? change : 1)) >> 1, 0);
    std::vector<T> rotated = other_;
    const auto width = static_cast<int64_t>(rotated.size()) / rows_;
    const int64_t by = rows_ == 1 ? 0 : 1 + static_cast<int64_t>(mix64(change) >> 1) % (rows_ - 1);
    std::rotate(rotated.begin(), rotated.begin() + by * width, rotated.end());
    return rotated;
  }

 private:
  static constexpr int64_t kFew = 64;

  int64_t rows_;
  uint64_t seed_;
  std::function<std::vector<T>(uint64_t, int64_t)> draw_;
  std::vector<T> first_, other_;
};

/// What takes long to find for some activations, as their truth, kept for when they come back.
template <class T>
class ByChange {
 public:
  /// `at_hand` belongs to the change of the last call, at first 0; becomes what belongs to
  /// `change`, empty where that was never found.
  void turn(uint64_t change, T& at_hand) {
    if (change == change_) return;
    if (!at_hand.empty()) kept_.insert_or_assign(change_, std::move(at_hand));
    change_ = change;
    at_hand = T();
    if (auto found = kept_.extract(change)) at_hand = std::move(found.mapped());
  }

 private:
  uint64_t change_ = 0;
  std::map<uint64_t, T> kept_;
};

}  // namespace moegate
