// SPDX-License-Identifier: Apache-2.0
// Deals the cases of a round out to the devices of a run, which are its lanes. A case stays with the
// lane that first measured it, so that all its variants, all its processes, and both sides of a
// comparison ran on one device. Pure: no threads, no clocks.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/plan.h"

namespace moegate {

class Dealer {
 public:
  explicit Dealer(size_t lanes) : queues_(lanes), lost_(lanes) {}

  /// The cases of a round, in their order. What was left of the round before is forgotten.
  void begin(std::vector<PlannedCase> cases);
  /// The next case of a lane: its own; then those whose home it is, which their keys decide, so that
  /// most cases meet the same GPU night after night; then what other lanes have not come to.
  std::optional<PlannedCase> next(size_t lane);
  /// Something of the case was measured on this lane, where it stays from now on.
  void settle(const std::string& key, size_t lane) { owners_[key] = lane; }
  /// Nothing was: another lane may have it. The opposite of next().
  void put_back(PlannedCase planned, size_t lane);
  /// The lane's device is gone. What was measured there is not finished elsewhere.
  void lose(size_t lane) { lost_[lane] = true; }

  size_t lanes() const { return queues_.size(); }
  bool is_lost(size_t lane) const { return lost_[lane]; }
  size_t left() const;  // lanes that are not lost
  /// Whether a lane that is not lost could be given a case of this round.
  bool any() const;
  /// Whether a case of this round is left, for whomever.
  bool leaves_some() const;
  /// The lane that a case stays with; 0 where it has none yet.
  size_t lane_of(const std::string& key) const;

 private:
  struct Waiting {
    PlannedCase planned;
    std::string key;
  };
  bool is_free(const Waiting& waiting) const { return !owners_.contains(waiting.key); }
  size_t home_of(const std::string& key) const;
  std::optional<PlannedCase> steal();

  std::vector<std::deque<Waiting>> queues_;  // by lane
  std::vector<bool> lost_;
  std::map<std::string, size_t> owners_;  // by key
};

}  // namespace moegate
