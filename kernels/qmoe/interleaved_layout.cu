// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/interleaved_layout.cuh"

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::qmoe {
namespace {

using namespace cuda;

constexpr char kLayout[] = "interleaved";
constexpr int kPackThreads = 256;

size_t code_bytes(const QmoeShape& shape) {
  return size_t(shape.experts) * size_t(shape.expert_bytes());
}

size_t scale_count(const QmoeShape& shape) {
  return size_t(shape.experts) * size_t(shape.n) * size_t(shape.groups());
}

/// Code i of the word moves to nibble i / 2, in the upper half where i is odd.
__device__ uint32_t interleave_codes(uint32_t word) {
  uint32_t out = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) out |= (word >> (4 * i) & 15) << (4 * (i / 2 + i % 2 * 4));
  return out;
}

/// A thread per 16 bytes of the packed codes. `column_chunks`: 16-byte pieces of a column.
__global__ void pack_codes(const uint4* weights, uint4* packed, int64_t chunks, int column_chunks) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= chunks) return;
  constexpr int kTileChunks = kTileK / kChunkK;
  const int64_t group = i / (column_chunks * kGroupColumns);
  const int in_group = static_cast<int>(i % (column_chunks * kGroupColumns));
  const int tile = in_group / (kTileChunks * kGroupColumns);
  const int column = in_group / kTileChunks % kGroupColumns;
  const int64_t from = (group * kGroupColumns + column) * column_chunks + tile * kTileChunks +
                       in_group % kTileChunks;
  const uint4 codes = weights[from];
  packed[i] = make_uint4(interleave_codes(codes.x), interleave_codes(codes.y),
                         interleave_codes(codes.z), interleave_codes(codes.w));
}

/// [E, N, groups] to [E, groups, N], a thread per scale factor.
__global__ void transpose_scales(const uint16_t* scales, uint16_t* packed, int64_t count, int n,
                                 int groups) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int column = static_cast<int>(i % n), group = static_cast<int>(i / n % groups);
  const int64_t expert = i / n / groups;
  packed[i] = scales[(expert * n + column) * groups + group];
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kPackThreads - 1) / kPackThreads);
}

Interleaved parts_of(Tensor& packed, const QmoeShape& shape) {
  const char* bytes = packed.data<char>();
  return {reinterpret_cast<const uint4*>(bytes),
          reinterpret_cast<const uint16_t*>(bytes + code_bytes(shape))};
}

}  // namespace

void pack_interleaved(Problem& problem, const std::string& layout, const QmoeArgs& args,
                      const Launch& where) {
  const QmoeShape& shape = args.shape;
  const size_t codes = code_bytes(shape), scales = scale_count(shape);
  problem.packed(layout, codes + scales * sizeof(uint16_t), [&](Tensor& packed) {
    const auto stream = stream_of(where);
    const auto chunks = static_cast<int64_t>(codes / sizeof(uint4));
    auto* bytes = packed.data<char>();
    pack_codes<<<blocks_for(chunks), kPackThreads, 0, stream>>>(
        reinterpret_cast<const uint4*>(args.weights), reinterpret_cast<uint4*>(bytes), chunks,
        shape.k / kChunkK);
    check_launch("pack_codes");
    const auto count = static_cast<int64_t>(scales);
    transpose_scales<<<blocks_for(count), kPackThreads, 0, stream>>>(
        args.scales, reinterpret_cast<uint16_t*>(bytes + codes), count, shape.n, shape.groups());
    check_launch("transpose_scales");
  });
}

Interleaved interleaved(Problem& problem, const std::string& layout, const QmoeShape& shape) {
  return parts_of(problem.packed(layout), shape);
}

void pack_interleaved(Qmoe& problem, const Launch& where) {
  pack_interleaved(problem, kLayout, problem.args(), where);
}

Interleaved interleaved(Qmoe& problem) {
  return interleaved(problem, kLayout, problem.shape);
}

}  // namespace moegate::qmoe
