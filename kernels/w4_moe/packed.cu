// SPDX-License-Identifier: Apache-2.0
// Lays weights out as packed.cuh says, on the GPU: gpt-oss-120b has a gigabyte of them.
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_moe {
namespace {

using namespace cuda;

/// The code of an element, that of zero beyond N and K.
template <class W>
__device__ uint32_t code_at(const W4Args& args, int64_t expert, int row, int k) {
  const W4Shape& shape = args.shape;
  if (row >= shape.n || k >= shape.k) return W::kZero;
  const uint8_t both = args.codes[((expert * shape.n + row) * shape.k + k) / 2];
  return k % 2 == 0 ? both & 15 : both >> 4;
}

/// A code where decode() expects it in half `half` of pair `pair`.
__device__ uint32_t placed(Mxfp4, uint32_t code, int pair, int half) {
  const uint32_t sign = code >> 3, rest = code & 7;
  const int at = 16 * half;
  switch (pair) {
    case 0:
      return (sign << 15 | rest << 6) << at;
    case 1:
      return (sign << 11 | rest << 2) << at;
    case 2:  // of the code in the other half, the sign apart
      return sign << (5 + at) | rest << (28 - at);
    default:
      return (sign << 9 | (rest >> 2) << 10 | (rest & 3)) << at;
  }
}
template <int kScales>
__device__ uint32_t placed(Int4<kScales>, uint32_t code, int pair, int half) {
  return code << (4 * pair + 16 * half);
}

/// The scale of an element, as it is stored; 0 beyond N and K.
template <class Stored>
__device__ uint32_t scale_at(const W4Args& args, int64_t expert, int row, int k) {
  const W4Shape& shape = args.shape;
  if (row >= shape.n || k >= shape.k) return 0;
  const auto* const scales = static_cast<const Stored*>(args.scales);
  return scales[(expert * shape.n + row) * shape.groups() + k / shape.group];
}

/// A word of a unit's scales. The unit begins at k.
__device__ uint32_t scale_word(Mxfp4, const W4Args& args, int64_t expert, int panel, int k,
                               int word, uint32_t* is_wide) {
  uint32_t scales = 0;
  for (int j = 0; j < 4; ++j) {
    const int row = weight_row(args.shape, panel, word + j % 2 * 8);
    const uint32_t byte = scale_at<uint8_t>(args, expert, row, k + j / 2 * 32);
    if (byte > 128) *is_wide = 1;
    scales |= ((byte + Mxfp4::kScaleOffset) & 0xffu) << (8 * j);
  }
  return scales;
}
template <int kScales>
__device__ uint32_t scale_word(Int4<kScales>, const W4Args& args, int64_t expert, int panel, int k,
                               int word, uint32_t*) {
  const int at = k + word % kScales * (kUnitK / kScales);
  uint32_t scales = 0;
  for (int i = 0; i < 2; ++i) {
    const int row = weight_row(args.shape, panel, word / kScales + i * 8);
    scales |= scale_at<uint16_t>(args, expert, row, at) << (16 * i);
  }
  return scales;
}

/// A thread per word of codes; those of a unit's first words bring its scales along.
template <class W>
__global__ void pack_kernel(W4Args args, uint8_t* to, int64_t words, int group, uint32_t* is_wide) {
  constexpr int kWords = kUnitCodes / 4, kScaleWords = (W::kUnitBytes - kUnitCodes) / 4;
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const W4Shape& shape = args.shape;
  const int units = units_of(shape), groups = panel_groups(shape, group);
  const int64_t at = i / kWords;  // unit of all
  const int in_unit = static_cast<int>(i % kWords), lane = in_unit / 4, step = in_unit % 4;
  const int64_t in_group = at / group;  // unit of a group of panels
  const int unit = static_cast<int>(in_group % units);
  const int panel = static_cast<int>(in_group / units % groups * group + at % group);
  const int64_t expert = in_group / units / groups;
  const int k = unit * kUnitK + 16 * step + 2 * (lane % 4);
  uint32_t bits = 0;
  for (int pair = 0; pair < 4; ++pair) {
    const int row = weight_row(shape, panel, lane / 4 + pair % 2 * 8);
    const int first = k + pair / 2 * 8;
    for (int half = 0; half < 2; ++half) {
      bits |= placed(W{}, code_at<W>(args, expert, row, first + half), pair, half);
    }
  }
  auto* const of_unit = reinterpret_cast<uint32_t*>(to + at * W::kUnitBytes);
  of_unit[in_unit] = bits;
  if (in_unit >= kScaleWords) return;
  of_unit[kWords + in_unit] = scale_word(W{}, args, expert, panel, unit * kUnitK, in_unit, is_wide);
}

std::string layout_name(const char* name, int group) {
  return fmt::format("{} fragments of {}", name, group);
}

}  // namespace

void pack_weights(Problem& problem, const W4Args& args, const Launch& where, int group,
                  const char* name) {
  const int64_t bytes = units_bytes(args.shape, group);
  problem.packed(layout_name(name, group), static_cast<size_t>(bytes) + 16, [&](Tensor& to) {
    constexpr int kThreads = 256;
    auto* const units = to.data<uint8_t>();
    check_cuda(cudaMemsetAsync(units + bytes, 0, 16, stream_of(where)), "clearing a flag");
    with_format(args.shape, [&]<class W>() {
      const int64_t words = bytes / W::kUnitBytes * (kUnitCodes / 4);
      pack_kernel<W><<<static_cast<unsigned>((words + kThreads - 1) / kThreads), kThreads, 0,
                       stream_of(where)>>>(args, units, words, group,
                                           reinterpret_cast<uint32_t*>(units + bytes));
    });
    check_launch("pack_kernel");
  });
}

PackedWeights packed_weights(Problem& problem, const W4Shape& shape, int group, const char* name) {
  const auto* units = problem.packed(layout_name(name, group)).data<uint8_t>();
  return {units, reinterpret_cast<const uint32_t*>(units + units_bytes(shape, group))};
}

}  // namespace moegate::w4_moe
