// SPDX-License-Identifier: Apache-2.0
// What stream_imma needs to know of the routing: rows of the same expert together, and the list of
// all tiles that follows from it.
#pragma once

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

constexpr int kMaxRows = 64;        // R: two ballots of a warp
constexpr int kRowsPerSegment = 4;  // two columns of the product's operand B each

/// The routed rows cut into segments of up to 4 rows of one expert, in shared memory.
struct Segments {
  int count;
  int first[kMaxRows + 1];  // row at which each begins; [count]: R
  int expert[kMaxRows];     // by row
  int source[kMaxRows];     // by row
};

/// One warp does it; `row`, `expert` and `source` are the lane's. Rows of one token are segments.
/// Rows from 32 on are added to what is there already: `run` is where the run of rows of one expert
/// began that the first of them may belong to, `last` that expert. Returns both for the next 32.
struct Run {
  int last = -1, start = 0;
};
template <bool kOneToken>
__device__ Run add_rows(Segments& segments, int row, int rows, int expert, int source, Run run,
                        int lane) {
  const int before = __shfl_up_sync(~0u, expert, 1);
  const uint32_t changes =
      __ballot_sync(~0u, kOneToken || expert != (lane > 0 ? before : run.last));
  const uint32_t mine = changes & (~0u >> (31 - lane));
  const int start = mine ? row - lane + 31 - __clz(mine) : run.start;
  const bool begins = row < rows && (row - start) % kRowsPerSegment == 0;
  const uint32_t starts = __ballot_sync(~0u, begins);
  const int count = segments.count;
  segments.expert[row] = expert;
  segments.source[row] = source;
  if (begins) segments.first[count + __popc(starts & ((1u << lane) - 1))] = row;
  __syncwarp();
  if (lane == 0) {
    segments.count = count + __popc(starts);
    segments.first[segments.count] = rows;
  }
  __syncwarp();
  return {__shfl_sync(~0u, expert, 31), __shfl_sync(~0u, start, 31)};
}

template <bool kOneToken>
__device__ void find_segments(const QmoeArgs& args, Segments& segments, int lane) {
  const int rows = args.shape.rows();
  const int low = min(lane, rows - 1), high = min(lane + 32, rows - 1);
  const int expert = args.row_expert[low], source = args.row_source[low];
  const int high_expert = args.row_expert[high], high_source = args.row_source[high];
  if (lane == 0) segments.count = 0;
  __syncwarp();
  const Run run = add_rows<kOneToken>(segments, lane, rows, expert, source, {}, lane);
  if (rows > 32)
    add_rows<kOneToken>(segments, lane + 32, rows, high_expert, high_source, run, lane);
}

/// A place in the list of all tiles of all segments, in that order.
struct Cursor {
  int segment, tile;

  __device__ void advance(int by, int tiles) {
    tile += by;
    for (; tile >= tiles; ++segment) tile -= tiles;
  }
};

}  // namespace moegate::qmoe
