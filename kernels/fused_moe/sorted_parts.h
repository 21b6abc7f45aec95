// SPDX-License-Identifier: Apache-2.0
// What the chains for many rows per expert share, whose middle is in sorted order (moe_gemm.h);
// only in builds with CUDA. Their blocks of rows are 128, whatever the case says: which rows lie
// together is a chain's own affair, and prefill multiplies no others.
#pragma once

#include "kernels/fused_moe/steps.h"
#include "kernels/moe_gemm/prefill/prefill.h"

namespace moegate::fused_moe {

/// A layer that is under way: its arguments in blocks of 128, and buffers_at() its workspace, in
/// sorted order.
struct SortedLayer {
  FusedMoeArgs args;
  Buffers buffers;

  moe_gemm::MoeGemmArgs down() const { return fused_moe::down(args, buffers); }
  /// The blocks that share weights in the down product.
  int down_cluster() const { return moe_gemm::prefill::usual_cluster(args.shape.down(), true); }
};

/// redundant_count, and gate-up with activation and quantisation in it: two launches that leave q,
/// scales and places. The next may start early.
SortedLayer launch_up_to_codes(FusedMoe& problem, const Launch& where);

/// Why such a chain cannot run a case; empty when it can.
std::string sorted_unsupported(const Case& c, const DeviceFacts& device);

/// What such a chain registers; they differ in these alone.
KernelSpec<FusedMoe> sorted_chain(const char* name, const char* help,
                                  void (*launch)(FusedMoe&, const Launch&));

}  // namespace moegate::fused_moe
