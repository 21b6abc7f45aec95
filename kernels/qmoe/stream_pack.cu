// SPDX-License-Identifier: Apache-2.0
// Lays canonical weights out as stream_layout.h says. Untimed: what an engine does at load time.
#include <cuda_runtime.h>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/qmoe/stream_layout.h"
#include "kernels/qmoe/stream_pack.h"

namespace moegate::qmoe {
namespace {

using namespace cuda;

constexpr int kThreads = 256;

/// Four codes of each of two columns (16 bits each, low nibble first) as four bytes, the even
/// column's in the upper halves; q becomes q - 8 in two's complement.
__device__ uint32_t interleaved(uint32_t even, uint32_t odd) {
  uint32_t word = 0;
  for (int j = 0; j < 4; ++j)
    word |= ((even >> (4 * j) & 15) << 4 | (odd >> (4 * j) & 15)) << (8 * j);
  return word ^ 0x88888888;
}

/// One thread per lane's 16 bytes of codes.
__global__ void pack_codes(QmoeArgs args, StreamLayout layout, uint8_t* packed, int64_t units) {
  const int64_t unit = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (unit >= units) return;
  const int lane = unit % 32, step = unit / 32 % layout.steps;
  const int64_t tile = unit / 32 / layout.steps;  // over all experts
  const int64_t column = tile * kTileColumns + lane / 4 * 2;
  const uint8_t* from = args.weights + (column * args.shape.k + step * kStepK + lane % 4 * 8) / 2;
  uint32_t words[4];
  for (int half = 0; half < 2; ++half) {
    const uint8_t* eight = from + half * kStepK / 4;  // 32 codes on, two to a byte
    const uint32_t even = *reinterpret_cast<const uint32_t*>(eight);
    const uint32_t odd = *reinterpret_cast<const uint32_t*>(eight + args.shape.k / 2);
    words[2 * half] = interleaved(even, odd);
    words[2 * half + 1] = interleaved(even >> 16, odd >> 16);
  }
  uint8_t* to = packed + tile * layout.tile_bytes + kHeaderBytes + step * layout.step_bytes;
  reinterpret_cast<uint4*>(to)[lane] = make_uint4(words[0], words[1], words[2], words[3]);
}

/// One thread per column and step: its scale factors of that step, and with step 0 the header.
__global__ void pack_scales(QmoeArgs args, StreamLayout layout, uint8_t* packed, int64_t units) {
  const int64_t unit = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (unit >= units) return;
  const int within = unit % kTileColumns, step = unit / kTileColumns % layout.steps;
  const int64_t tile = unit / kTileColumns / layout.steps, column = tile * kTileColumns + within;
  const QmoeShape& shape = args.shape;
  const uint16_t* scales = args.scales + column * shape.groups();
  uint16_t* header = reinterpret_cast<uint16_t*>(packed + tile * layout.tile_bytes);
  if (step == 0) {
    header[within] = scales[0];
    header[kTileColumns + within] = args.bias ? args.bias[column] : 0;
  }
  const int halves = (layout.step_bytes - kCodeBytes) / (2 * kTileColumns);  // 0, 1 or 2
  uint16_t* to = header + (kHeaderBytes + step * layout.step_bytes + kCodeBytes) / 2;
  for (int half = 0; half < halves; ++half)
    to[(within / 2 * halves + half) * 2 + within % 2] =
        scales[(step * kStepK + half * kStepK / 2) / shape.block];
}

constexpr const char* kPacked = "stream tiles";

unsigned blocks_for(int64_t units) {
  return static_cast<unsigned>((units + kThreads - 1) / kThreads);
}

}  // namespace

void stream_pack(Problem& problem, const std::string& name, const QmoeArgs& args,
                 cudaStream_t stream) {
  const auto layout = StreamLayout::of(args.shape);
  const int64_t tiles = int64_t{args.shape.experts} * layout.tiles;
  const auto pack = [&](Tensor& to) {
    const int64_t codes = tiles * layout.steps * 32, scales = tiles * layout.steps * kTileColumns;
    auto* packed = to.data<uint8_t>();
    pack_codes<<<blocks_for(codes), kThreads, 0, stream>>>(args, layout, packed, codes);
    pack_scales<<<blocks_for(scales), kThreads, 0, stream>>>(args, layout, packed, scales);
    check_launch("pack");
  };
  const auto bytes = static_cast<size_t>(tiles) * static_cast<size_t>(layout.tile_bytes);
  problem.packed(name, bytes, pack);
}

const uint8_t* stream_packed(Problem& problem, const std::string& name) {
  return problem.packed(name).data<uint8_t>();
}

void stream_pack(Qmoe& problem, cudaStream_t stream) {
  stream_pack(problem, kPacked, problem.args(), stream);
}

const uint8_t* stream_packed(Qmoe& problem) {
  return stream_packed(problem, kPacked);
}

}  // namespace moegate::qmoe
