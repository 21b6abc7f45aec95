// SPDX-License-Identifier: Apache-2.0
// How stream_imma wants an expert's matrix: in tiles of 16 columns, each a contiguous piece of
// memory in the order in which a warp reads it, the codes as the tensor cores' operand A.
//
//   [E][N/16] tiles: [scales 16][biases 16][K/64 steps: [lane 32][16 bytes of codes][scales]]
//
// A lane's 16 bytes are two products m16n8k32 of 8 bytes, one per half of the step. Rows 0 to 7 of
// operand A are the even (gate) columns, rows 8 to 15 the odd (up) ones; lane l has rows l/4 and
// l/4 + 8 and 8 consecutive k from 8 * (l % 4): byte j holds code k = j of both, as q - 8 in two's
// complement, the even column's in its upper half. Which k the instruction takes them for is free,
// as long as x agrees. Scale factors per channel stand in front; those per block behind the step
// they belong to, [column pair 8][half of the step][2] for blocks of 32, else [column pair 8][2] (a
// block of 128 has them twice).
#pragma once

#include <cstdint>

#include "harness/kernel/dtype.h"
#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

constexpr int kTileColumns = 16;
constexpr int kStepK = 64;        // of K per step of a warp
constexpr int kCodeBytes = 512;   // of a step: kTileColumns * kStepK / 2
constexpr int kHeaderBytes = 64;  // scale factors and biases per channel

struct StreamLayout {
  int tiles;       // per expert
  int steps;       // of K
  int step_bytes;  // codes and scale factors
  int tile_bytes;

  static StreamLayout of(const QmoeShape& s) {
    StreamLayout layout{.tiles = s.n / kTileColumns, .steps = s.k / kStepK};
    layout.step_bytes = kCodeBytes + (s.block == s.k ? 0 : s.block == 32 ? 64 : 32);
    layout.tile_bytes = kHeaderBytes + layout.steps * layout.step_bytes;
    return layout;
  }
};

}  // namespace moegate::qmoe
