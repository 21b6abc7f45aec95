// SPDX-License-Identifier: Apache-2.0
// Expert parallelism: a case about one of N ranks, which holds the experts r*E/N to (r+1)*E/N - 1
// of its layer. Where a map places them otherwise, experts are numbered anew by it, as engines that
// balance loads do: the rank's in ascending order, behind those of lower ranks. Routing, recorded
// or drawn, is the layer's; a rank sees its own experts' rows.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/values/case.h"

namespace moegate {

/// Parameter `rank` of an operator, which ExpertRank::of() reads: r/N or busiest/N, with @FILE.npy
/// a map; 0/1: all.
Param rank_param();

struct ExpertRank {
  static constexpr int kBusiest = -1;  // until find()

  int experts = 1;  // of the layer
  int ranks = 1;
  int rank = 0;
  std::vector<int32_t> numbers = {};  // by a map, of the layer's experts; empty: there is none

  /// Reads `experts` and `rank`; a case without `rank` is about all experts. Throws Error(usage),
  /// naming what works, where the ranks do not divide the experts.
  static ExpertRank of(const Case& c);

  bool is_whole() const { return ranks == 1; }
  int local() const { return experts / ranks; }  // experts of the rank
  int first() const { return rank * local(); }   // the number of its first one

  /// Of busiest/N: the rank with most rows of this routing, the first of equals. Any other stays.
  void find(const std::vector<int32_t>& ids);
  /// Ids as the rank counts its experts, from 0 on; -1 for experts of other ranks. Of all experts:
  /// the ids themselves.
  std::vector<int32_t> own(std::vector<int32_t> ids) const;

 private:
  int32_t number_of(int32_t id) const;
};

/// The routed rows of a rank, ascending: those whose expert is no -1.
std::vector<int32_t> rows_of_rank(const std::vector<int32_t>& own_ids);

/// What a rank has of its layer at even loads, as a case without `rank`: E/N experts and T*k/N
/// rows, k/N to a token or one. Tile configurations are tuned, kept and found by it: what makes one
/// fast are the rows of an expert. A case about all experts: itself.
Case even_share(Case c);

/// The case with rank 0 in place of the busiest one, which differs from batch to batch.
Case with_one_rank(Case c);

}  // namespace moegate
