// SPDX-License-Identifier: Apache-2.0
// Zeroing moe_buf, spread over any number of threads.
#pragma once

#include <cstdint>

#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {

/// Thread `worker` of `workers` zeroes its part of moe_buf with 16-byte stores. The size is a
/// multiple of 2 only, so the last bytes go as 2-byte stores: a full vector would leave the buffer.
__device__ inline void zero_moe_buf(const TopkSortArgs& args, int64_t worker, int64_t workers) {
  const int64_t vectors = args.moe_buf_bytes / 16;
  uint4* vector = static_cast<uint4*>(args.moe_buf);
  for (int64_t i = worker; i < vectors; i += workers) vector[i] = make_uint4(0, 0, 0, 0);
  const int64_t tail = args.moe_buf_bytes % 16 / 2;
  if (worker < tail) static_cast<uint16_t*>(args.moe_buf)[vectors * 8 + worker] = 0;
}

}  // namespace moegate::topk_sort
