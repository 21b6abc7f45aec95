// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of the int4 products as plain functions, for operators that are chains of
// launches. All are asynchronous on a stream, allocate nothing and can be captured into a graph.
// Errors: Error(internal) when a launch is refused.
#pragma once

#include "kernels/qmoe/interleaved_layout.cuh"

namespace moegate::qmoe {

/// The variant that leaves K whole, and what those that split it fall back to.
void launch_single(const QmoeArgs& args, const Interleaved& weights, Accumulator accumulator,
                   cudaStream_t stream);

/// Bytes of the partial sums of fc1 with K split in two; 0 where K is too short for that.
size_t split_k2_bytes(const QmoeShape& shape, Accumulator accumulator);
/// fc1 with K split in two, or as a whole where split_k2_bytes() is 0. `partials`: so many bytes.
void launch_split_k2(const QmoeArgs& args, const Interleaved& weights, void* partials,
                     Accumulator accumulator, cudaStream_t stream);

}  // namespace moegate::qmoe
