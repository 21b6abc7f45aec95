// SPDX-License-Identifier: Apache-2.0
// The sums of a tile's parts in stream_imma, and how the warps of a team bring them together.
#pragma once

#include "kernels/qmoe/stream_imma.cuh"

namespace moegate::qmoe {

/// Sums of one routed row over a lane's columns 2 * (l / 4) and the next, those of row l % 4.
struct Sums {
  float even = 0, odd = 0;

  __device__ void add(float2 other) {
    even += other.x;
    odd += other.y;
  }
};

/// Where the first warp of a team finds the sums of the others: two inboxes in turn, so that they
/// need not wait for it.
struct Inbox {
  uint64_t full[2], empty[2];

  /// One thread does it, before a barrier of the block.
  __device__ void init(int others) {
    for (int box = 0; box < 2; ++box) {
      init_barrier(&full[box], others);
      init_barrier(&empty[box], 1);
    }
  }
};

struct TeamSums {
  Inbox& inbox;
  float2* sent;  // [2][others][32]
  int others;    // warps beside the first
  int turn = 0;  // tiles so far

  __device__ void send(const Sums& sums, int sender, int lane) {
    const int box = turn % 2;
    if (turn > 1) wait_barrier(&inbox.empty[box], (turn / 2 - 1) % 2);
    sent[(box * others + sender) * 32 + lane] = make_float2(sums.even, sums.odd);
    arrive_warp(&inbox.full[box]);
    ++turn;
  }
  /// In the order of the warps: the result does not depend on who came first.
  __device__ void receive(Sums& sums, int lane) {
    const int box = turn % 2;
    wait_barrier(&inbox.full[box], turn / 2 % 2);
    for (int i = 0; i < others; ++i) sums.add(sent[(box * others + i) * 32 + lane]);
    arrive_warp(&inbox.empty[box]);
    ++turn;
  }
};

}  // namespace moegate::qmoe
