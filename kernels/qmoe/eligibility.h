// SPDX-License-Identifier: Apache-2.0
// Which cases the GEMV kernels of ONNX Runtime's QMoE take (microsoft/onnxruntime PR 29167), as
// reasons that a KernelSpec can state, and the arithmetic of their K iterations. Knows no CUDA.
#pragma once

#include <string>

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

/// What a thread sums its products in.
enum class Accumulator { fp16, fp32 };
/// What sums in fp16 round in between: measured up to 2.0e-3 (blocks of 32, K = 4224).
constexpr double kRoundedInHalf = 2e-3;

constexpr int kTileColumns = 32;   // of N, per block
constexpr int kIterationK = 1024;  // of K, that the threads of a block cover at once
constexpr int kTileK = 64;         // of K, that the packed weights come in

int k_iterations(const QmoeShape& shape);

/// Empty, or why the kernels that take a row at a time do not run the case.
std::string gemv_unsupported(const QmoeShape& shape, Accumulator accumulator);
/// The same where K is split over blocks, which upstream has for fp16 activations only.
std::string split_unsupported(const QmoeShape& shape, Accumulator accumulator);

}  // namespace moegate::qmoe
