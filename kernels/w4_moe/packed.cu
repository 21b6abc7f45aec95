// SPDX-License-Identifier: Apache-2.0
// Lays MXFP4 weights out as packed.cuh says, on the GPU: gpt-oss-120b has a gigabyte of them.
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

/// The code of an element, 0 beyond N and K.
__device__ uint32_t code_at(const W4Args& args, int64_t expert, int row, int k) {
  const W4Shape& shape = args.shape;
  if (row >= shape.n || k >= shape.k) return 0;
  const uint8_t both = args.codes[((expert * shape.n + row) * shape.k + k) / 2];
  return k % 2 == 0 ? both & 15 : both >> 4;
}

/// A code in the lower half of a word, where decode() expects it in pair `pair`.
__device__ uint32_t placed(uint32_t code, int pair) {
  const uint32_t sign = code >> 3, rest = code & 7;
  if (pair < 3) return sign << (15 - 3 * pair) | rest << (6 - 3 * pair);
  return sign << 14 | (rest >> 2) << 13 | (rest & 3) << 10;
}

/// A thread per word of codes; those of a unit's first eight words bring four scales along.
__global__ void pack_kernel(W4Args args, uint8_t* to, int64_t words, uint32_t* is_wide) {
  constexpr int kWords = kUnitCodes / 4, kScaleWords = 8;
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const W4Shape& shape = args.shape;
  const int units = units_of(shape), panels = panels_of(shape);
  const int64_t at = i / kWords;  // unit of all
  const int in_unit = static_cast<int>(i % kWords), lane = in_unit / 4, step = in_unit % 4;
  const int unit = static_cast<int>(at % units), panel = static_cast<int>(at / units % panels);
  const int64_t expert = at / units / panels;
  const int k = unit * kUnitK + 16 * step + 2 * (lane % 4);
  uint32_t bits = 0;
  for (int pair = 0; pair < 4; ++pair) {
    const int row = weight_row(shape, panel, lane / 4 + pair % 2 * 8);
    const int first = k + pair / 2 * 8;
    bits |= placed(code_at(args, expert, row, first), pair);
    bits |= placed(code_at(args, expert, row, first + 1), pair) << 16;
  }
  auto* const of_unit = reinterpret_cast<uint32_t*>(to + at * kUnitBytes);
  of_unit[in_unit] = bits;
  if (in_unit >= kScaleWords) return;
  uint32_t scales = 0;
  for (int j = 0; j < 4; ++j) {
    const int row = weight_row(shape, panel, in_unit + j % 2 * 8);
    const int group = unit * (kUnitK / shape.group) + j / 2;
    const bool there = row < shape.n && group < shape.groups();
    const auto* const bytes = static_cast<const uint8_t*>(args.scales);
    const uint32_t byte = there ? bytes[(expert * shape.n + row) * shape.groups() + group] : 0u;
    if (byte > 128) *is_wide = 1;
    scales |= ((byte + kScaleOffset) & 0xffu) << (8 * j);
  }
  of_unit[kWords + in_unit] = scales;
}

}  // namespace

void pack_weights(W4Moe& problem, const Launch& where) {
  const W4Args args = problem.args();
  const int64_t bytes = units_bytes(args.shape);
  problem.packed("w4 fragments", static_cast<size_t>(bytes) + 16, [&](Tensor& to) {
    constexpr int kThreads = 256;
    const int64_t words = bytes / kUnitBytes * (kUnitCodes / 4);
    auto* const units = to.data<uint8_t>();
    check_cuda(cudaMemsetAsync(units + bytes, 0, 16, stream_of(where)), "clearing a flag");
    pack_kernel<<<static_cast<unsigned>((words + kThreads - 1) / kThreads), kThreads, 0,
                  stream_of(where)>>>(args, units, words,
                                      reinterpret_cast<uint32_t*>(units + bytes));
    check_launch("pack_kernel");
  });
}

PackedWeights packed_weights(W4Moe& problem) {
  const auto* units = problem.packed("w4 fragments").data<uint8_t>();
  return {units, reinterpret_cast<const uint32_t*>(units + units_bytes(problem.shape))};
}

}  // namespace moegate::w4_moe
