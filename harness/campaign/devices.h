// SPDX-License-Identifier: Apache-2.0
// The devices that one --device names, and how cases are dealt out to several GPUs.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/plan.h"

namespace moegate {

/// One by one: "cuda:0,1" and "cuda:0,cuda:1" are {"cuda:0", "cuda:1"}, "host" is {"host"}. Throws
/// Error(usage) for a list that names a GPU twice, or what is no numbered GPU. Whether they are
/// there is the workers' to say.
std::vector<std::string> devices_of(const std::string& spec);

/// As short as it can be typed: "cuda:0,1".
std::string device_list(const std::vector<std::string>& devices);

/// The number of "cuda:1", which devices_of() has read from a list.
int gpu_number(const std::string& device);

// Deals the cases of a round out to the devices of a run, which are its lanes. A case stays with
// the lane that first measured it, so that all its variants, all its processes, and both sides of a
// comparison ran on one device. Pure: no threads, no clocks.

class Dealer {
 public:
  explicit Dealer(size_t lanes) : queues_(lanes), lost_(lanes) {}

  /// The cases of a round, in their order. What was left of the round before is forgotten.
  void begin(std::vector<PlannedCase> cases);
  /// The next case of a lane: its own; then those whose home it is, which their keys decide, so
  /// that most cases meet the same GPU night after night; then what other lanes have not come to.
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
