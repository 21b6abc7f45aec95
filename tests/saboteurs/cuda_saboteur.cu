// SPDX-License-Identifier: Apache-2.0
// A CUDA variant of topk_sort that launches `fused_warp_per_token` and then a kernel that
// misbehaves as MOEGATE_SABOTEUR says. The second kernel is always launched, so that spin:NS is
// slower than spin:0 by NS and by nothing else.
// - spin:NS: busy for NS nanoseconds
// - scale: weights times 1.05
// - drop: loses one token
// - overrun: writes past its output
// - fault: reads an illegal address, which kills the context
// - hang: never returns
#include <cuda_runtime.h>

#include "kernels/topk_sort/topk_sort.h"
#include "tests/saboteurs/saboteur.h"

namespace moegate::test {
namespace {

using topk_sort::TopkSort;
using topk_sort::TopkSortArgs;

enum class Act : int { spin, scale, drop, overrun, fault, hang };

__global__ void sabotage(TopkSortArgs args, Act act, long long spin_ns) {
  switch (act) {
    case Act::spin: {
      // Dependent reads of the 1 GHz global timer: a delay in time, whatever the SM clock.
      unsigned long long start, now;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
      do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      } while (static_cast<long long>(now - start) < spin_ns);
      break;
    }
    case Act::scale:
      for (int i = 0; i < args.num_valid[0]; ++i) args.sorted_weights[i] *= 1.05f;
      break;
    case Act::drop:
      args.sorted_ids[0] = args.shape.topk << 24 | args.shape.tokens;
      args.sorted_weights[0] = 0;
      break;
    case Act::overrun:
      static_cast<char*>(args.moe_buf)[args.moe_buf_bytes] = 0;
      break;
    case Act::fault:
      args.num_valid[1ll << 40] = 0;
      break;
    case Act::hang:
      while (*const_cast<volatile int32_t*>(args.num_valid + 1) >= 0) {
      }
  }
}

const Variant& fused() {
  for (const Variant& v : all_variants()) {
    const bool is_it = v.op == TopkSort::kOp && v.backend == Backend::cuda;
    if (is_it && v.name == "fused_warp_per_token") return v;
  }
  throw Error(Exit::internal, "the saboteur needs variant fused_warp_per_token of topk_sort");
}

size_t workspace(const Case& c, const DeviceFacts& device) {
  return fused().workspace ? fused().workspace(c, device) : 0;
}

Act act_of(const std::string& mode) {
  if (mode == "scale") return Act::scale;
  if (mode == "drop") return Act::drop;
  if (mode == "overrun") return Act::overrun;
  if (mode == "fault") return Act::fault;
  if (mode == "hang") return Act::hang;
  return Act::spin;
}

void launch(TopkSort& problem, const Launch& where) {
  const Sabotage asked = requested_sabotage();
  fused().launch(problem, where);
  sabotage<<<1, 1, 0, static_cast<cudaStream_t>(where.stream)>>>(
      problem.args(), act_of(asked.mode), static_cast<long long>(asked.amount));
}

const Kernel<TopkSort> kernel({.name = "saboteur",
                               .backend = Backend::cuda,
                               .help = "fused_warp_per_token, then what MOEGATE_SABOTEUR says",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::test
