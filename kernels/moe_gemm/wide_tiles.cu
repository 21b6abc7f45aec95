// SPDX-License-Identifier: Apache-2.0
// The fp8 grouped GEMMs for many rows per expert: tiles of a block of 64 or 128 routed rows times
// 256 columns. At that size what bounds smaller tiles is not the tensor cores but the path from L2
// to the SMs (R1 gate-up, 8192 tokens, 128 x 128 tiles: L2 at 82 % of its peak, tensor cores at
// half of theirs): a 128 x 256 tile takes 48 KB per 128 of K where two of 128 x 128 take 64.
//
// A warpgroup copies (TMA for weights, asynchronous copies gather the rows), two multiply 64 rows
// by 128 columns at a time. The accumulators go to fp32 sums, times both scale factors, while the
// other warpgroup's product runs; the two take turns. Rows are the M of wgmma here: a thread's 64
// accumulators then have two rows, so two scale factors in place of 32.
#include <algorithm>
#include <cstddef>

#include "kernels/cuda_check.cuh"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_gemm/output_tile.cuh"
#include "kernels/moe_gemm/pipeline.cuh"
#include "kernels/moe_gemm/ring.cuh"
#include "kernels/moe_gemm/tile.h"
#include "kernels/moe_gemm/token_sums.h"
#include "kernels/moe_gemm/weights_map.h"
#include "kernels/moe_gemm/wgmma.cuh"

namespace moegate {
namespace gemm {
namespace {

constexpr int kColumns = 256;         // of a tile: rows of weights
constexpr int kProductColumns = 128;  // of a product; its M is 64 rows
constexpr int kProductBytes = kProductColumns * kMoeGroup, kProductRowBytes = 64 * kMoeGroup;
constexpr int kWeightBytes = kColumns * kMoeGroup;  // of a stage
constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;
constexpr int kConsumerRegisters = 232, kProducerRegisters = 40;

template <int Tokens>
struct Config {
  static constexpr int kStages = Tokens == 128 ? 4 : 5;
  static constexpr int kStageBytes = kWeightBytes + Tokens * kMoeGroup;
  static constexpr int kRowsPerThread = Tokens * 8 / kProducers;  // 16 bytes of each
};

template <int Tokens>
struct Shared {
  using C = Config<Tokens>;
  uint8_t stages[C::kStages][C::kStageBytes];  // weights, rows; both with the 128-byte swizzle
  uint8_t staged[kConsumers / 32][kWarpStagedBytes];  // of the output, per warp
  float row_scales[C::kStages][Tokens];
  uint64_t full[C::kStages], empty[C::kStages];
};

struct Tile {
  int block, expert, column;
};

/// All thread blocks work side by side through the list, columns first: blocks of rows of one
/// expert find its weights in L2.
struct Tiles {
  int columns, all;
  __device__ explicit Tiles(const MoeGemmArgs& args)
      : columns((args.shape.n + kColumns - 1) / kColumns),
        all(*args.padded_rows / args.shape.block * columns) {}
  __device__ Tile get(const MoeGemmArgs& args, int index) const {
    const int block = index / columns;
    return {block, __ldg(args.expert_ids + block), index % columns * kColumns};
  }
};

template <int Tokens>
__device__ void produce(const CUtensorMap* map, const MoeGemmArgs& args, const Tiles& tiles,
                        Shared<Tokens>& shared) {
  using C = Config<Tokens>;
  const int thread = threadIdx.x - kConsumers, piece = thread % 8;
  const auto* x = static_cast<const uint8_t*>(args.x);
  Ring ring{C::kStages};
  for (int index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    const Tile tile = tiles.get(args, index);
    // Rows of x in pieces of 16 bytes, which takes 32 bits; padding has none.
    constexpr uint32_t kNone = ~0u;
    const auto row_of = [&](int row, int pieces) {
      const int id = __ldg(args.sorted_token_ids + tile.block * Tokens + row);
      return id < args.shape.rows() ? static_cast<uint32_t>(args.shape.source(id)) * pieces : kNone;
    };
    uint32_t rows[C::kRowsPerThread];
#pragma unroll
    for (int i = 0; i < C::kRowsPerThread; ++i)
      rows[i] = row_of(thread / 8 + i * 16, args.shape.k / 16);
    const uint32_t scales_of = thread < Tokens ? row_of(thread, args.shape.k_groups()) : kNone;
    const int weight_row = tile.expert * args.shape.n + tile.column;
    for (int g = 0; g < args.shape.k_groups(); ++g, ring.advance()) {
      uint8_t* stage = shared.stages[ring.stage];
      uint64_t* full = &shared.full[ring.stage];
      wait_barrier(&shared.empty[ring.stage], ring.phase ^ 1);
      if (thread == 0) {
        arrive_expecting(full, kWeightBytes);
        copy_tile(shared_address(stage), map, g * kMoeGroup, weight_row, full);
      }
      const uint32_t to = shared_address(stage + kWeightBytes) + thread / 8 * kMoeGroup +
                          (piece ^ thread / 8 % 8) * 16;
      const uint8_t* from = x + g * kMoeGroup + piece * 16;
#pragma unroll
      for (int i = 0; i < C::kRowsPerThread; ++i) {
        const bool there = rows[i] != kNone;
        copy_async<16>(to + i * 16 * kMoeGroup, from + uint64_t{there ? rows[i] : 0} * 16, there);
      }
      if (thread < Tokens) {
        const bool there = scales_of != kNone;
        copy_async<4>(shared_address(&shared.row_scales[ring.stage][thread]),
                      args.x_scales + g + (there ? scales_of : 0), there);
      }
      arrive_after_copies(full);
    }
  }
}

__device__ inline float load_shared(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// The warpgroups' turns at the tensor cores (barriers 3 and 4).
__device__ inline void wait_turn(int warpgroup) {
  asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory");
}
__device__ inline void pass_turn(int warpgroup) {
  asm volatile("bar.arrive %0, 256;" ::"r"(4 - warpgroup) : "memory");
}

/// acc = the product of 64 rows and 128 columns over 128 of K, under way.
__device__ void start_product(uint32_t a, uint32_t b, float (&acc)[kProductColumns / 2]) {
  const int warpgroup = threadIdx.x / 128;
  wait_turn(warpgroup);
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<kProductColumns>(acc, a + 2 * k, b + 2 * k, k > 0);
  commit_products();
  pass_turn(warpgroup);
}

/// What a warpgroup multiplies: of a block of 128 rows each has 64, with all columns; of one of 64
/// it has all rows, with half of the columns.
template <int Tokens>
struct Part {
  static constexpr int kProducts = Tokens / 64;
  int row, first_product;  // the warp's first row; in units of 128 columns
  __device__ Part()
      : row((Tokens == 128 ? threadIdx.x / 128 * 64 : 0) + threadIdx.x / 32 % 4 * 16),
        first_product(Tokens == 128 ? 0 : threadIdx.x / 128) {}
};

/// A stage that a warpgroup has waited for.
template <int Tokens>
struct Ready {
  uint32_t rows, weights;                    // operands
  float scales[Part<Tokens>::kProducts][2];  // of rows l / 4 and 8 more, times the weights'
};

/// The scale factors of a tile's weights, read ahead by one group of K.
template <int Tokens>
struct WeightScales {
  static constexpr int kProducts = Part<Tokens>::kProducts;
  const float* at[kProducts];
  float next[kProducts];
  int left;  // groups

  __device__ WeightScales(const MoeGemmArgs& args, const Tile& tile, const Part<Tokens>& part)
      : left(args.shape.k_groups()) {
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      // Beyond the last column: any factor, nothing is written.
      const int n_group =
          min(tile.column / kMoeGroup + part.first_product + p, args.shape.n_groups() - 1);
      at[p] = args.weight_scales + (int64_t{tile.expert} * args.shape.n_groups() + n_group) * left;
      next[p] = __ldg(at[p]);
    }
  }
  __device__ void advance() {
    if (--left == 0) return;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) next[p] = __ldg(++at[p]);
  }
};

template <int Tokens>
__device__ Ready<Tokens> wait_stage(uint32_t shared, const Ring& ring, const Part<Tokens>& part,
                                    WeightScales<Tokens>& weight_scales) {
  using S = Shared<Tokens>;
  const uint32_t stage = shared + ring.stage * Config<Tokens>::kStageBytes;
  wait_barrier(shared + static_cast<uint32_t>(offsetof(S, full)) + ring.stage * 8, ring.phase);
  fence_for_products();
  Ready<Tokens> ready;
  ready.rows = operand(stage + kWeightBytes + part.row / 64 * kProductRowBytes);
  ready.weights = operand(stage + part.first_product * kProductBytes);
  const uint32_t scales = shared + static_cast<uint32_t>(offsetof(S, row_scales)) +
                          (ring.stage * Tokens + part.row + threadIdx.x % 32 / 4) * 4;
  const float first = load_shared(scales), second = load_shared(scales + 8 * 4);
#pragma unroll
  for (int p = 0; p < Part<Tokens>::kProducts; ++p) {
    ready.scales[p][0] = first * weight_scales.next[p];
    ready.scales[p][1] = second * weight_scales.next[p];
  }
  weight_scales.advance();
  return ready;
}

/// A tile from a warpgroup's side; what it needs is asked for here, long before it is used.
template <int Tokens>
struct Job {
  Tile tile;
  int id;         // of row l % 16 of the warp's
  bool has_rows;  // padding is at a block's end: where the first row has none, all are
  WeightScales<Tokens> weight_scales;

  __device__ Job(const MoeGemmArgs& args, const Tiles& tiles, int index, const Part<Tokens>& part)
      : tile(tiles.get(args, index)), weight_scales(args, tile, part) {
    const int32_t* ids = args.sorted_token_ids + tile.block * Tokens + part.row;
    id = __ldg(ids + threadIdx.x % 16);
    has_rows = __ldg(ids - part.row % 64) < args.shape.rows();
  }
};

template <int Tokens>
__device__ void multiply_tile(int groups, Job<Tokens>& job, const Part<Tokens>& part,
                              Shared<Tokens>& memory, uint32_t shared, Ring& ring,
                              float (&sums)[Part<Tokens>::kProducts][kProductColumns / 2]) {
  constexpr int kProducts = Part<Tokens>::kProducts;
  Ready<Tokens> ready = wait_stage<Tokens>(shared, ring, part, job.weight_scales);
  for (int g = 0; g < groups; ++g) {
    const Ready<Tokens> now = ready;
    uint64_t* empty = &memory.empty[ring.stage];
    ring.advance();
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      float acc[kProductColumns / 2];
      start_product(now.rows, now.weights + p * (kProductBytes >> 4), acc);
      // The next stage's turn comes while the tensor cores work.
      if (p == kProducts - 1 && g + 1 < groups)
        ready = wait_stage<Tokens>(shared, ring, part, job.weight_scales);
      wait_products();
      __syncwarp();
      if (p == kProducts - 1 && threadIdx.x % 32 == 0) arrive_barrier(empty);
#pragma unroll
      for (int i = 0; i < kProductColumns / 2; ++i) sums[p][i] += acc[i] * now.scales[p][i / 2 % 2];
    }
  }
}

/// For a warpgroup whose rows are all padding.
template <int Tokens>
__device__ void pass_tile(int groups, Shared<Tokens>& memory, Ring& ring) {
  for (int g = 0; g < groups; ++g, ring.advance()) {
    for (int p = 0; p < Part<Tokens>::kProducts; ++p) {
      wait_turn(threadIdx.x / 128);
      pass_turn(threadIdx.x / 128);
    }
    wait_barrier(&memory.full[ring.stage], ring.phase);
    if (threadIdx.x % 32 == 0) arrive_barrier(&memory.empty[ring.stage]);
  }
}

template <int Tokens, Output kOutput>
__device__ void consume(const MoeGemmArgs& args, const Tiles& tiles, Shared<Tokens>& memory) {
  constexpr int kProducts = Part<Tokens>::kProducts;
  if (blockIdx.x >= tiles.all) return;
  const Part<Tokens> part;
  const int groups = args.shape.k_groups();
  uint32_t shared = shared_address(&memory);
  asm volatile("" : "+r"(shared));  // kept, where the compiler would compute it every time
  Ring ring{Config<Tokens>::kStages};
  if (threadIdx.x / 128 == 1) pass_turn(1);
  Job<Tokens> next(args, tiles, blockIdx.x, part);
  for (int index = blockIdx.x; index < tiles.all; index += gridDim.x) {
    Job<Tokens> job = next;
    float sums[kProducts][kProductColumns / 2] = {};
    if (job.has_rows) {
      multiply_tile<Tokens>(groups, job, part, memory, shared, ring, sums);
    } else {
      pass_tile<Tokens>(groups, memory, ring);
    }
    if (index + gridDim.x < tiles.all) next = Job<Tokens>(args, tiles, index + gridDim.x, part);
    if (!job.has_rows) continue;
    const float weight =
        args.routing_weights && job.id < args.shape.rows() ? args.routing_weights[job.id] : 1;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      write_rows<kOutput>(args, job.tile.column + (part.first_product + p) * kProductColumns,
                          job.id, weight, sums[p], memory.staged[threadIdx.x / 32]);
    }
  }
}

template <int Tokens, Output kOutput>
__global__ void __launch_bounds__(kThreads, 1)
    wide_tiles_kernel(const __grid_constant__ CUtensorMap map,
                      const __grid_constant__ MoeGemmArgs args) {
  using C = Config<Tokens>;
  extern __shared__ uint8_t raw[];
  auto& shared =
      *reinterpret_cast<Shared<Tokens>*>(raw + (1024 - shared_address(raw) % 1024) % 1024);
  if (threadIdx.x < C::kStages) {
    init_barrier(&shared.full[threadIdx.x], kProducers + 1);
    init_barrier(&shared.empty[threadIdx.x], kConsumers / 32);
  }
  fence_barrier_init();
  __syncthreads();
  const Tiles tiles(args);
  if (threadIdx.x >= kConsumers) {
    leave_registers<kProducerRegisters>();
    produce<Tokens>(&map, args, tiles, shared);
  } else {
    take_registers<kConsumerRegisters>();
    consume<Tokens, kOutput>(args, tiles, shared);
  }
}

template <int Tokens, Output kOutput>
void launch_tokens(const MoeGemmArgs& args, const Launch& where) {
  constexpr size_t kBytes = sizeof(Shared<Tokens>) + 1024;
  const auto kernel = wide_tiles_kernel<Tokens, kOutput>;
  allow_shared(kernel, kBytes);
  const int64_t blocks = (args.shape.capacity() + args.shape.block - 1) / args.shape.block;
  const int64_t tiles = blocks * ((args.shape.n + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, where.device.processors));
  kernel<<<grid, kThreads, kBytes, static_cast<cudaStream_t>(where.stream)>>>(
      weights_map(args, kColumns), args);
  check_launch("wide_tiles_kernel");
}

template <Output kOutput>
void launch_output(const MoeGemmArgs& args, const Launch& where) {
  args.shape.block == 64 ? launch_tokens<64, kOutput>(args, where)
                         : launch_tokens<128, kOutput>(args, where);
}

std::string unsupported(const MoeGemmShape& s) {
  if (!s.scaled()) return "multiplies fp8 only";
  if (s.block != 64 && s.block != 128) return fmt::format("block = {} is not 64 or 128", s.block);
  if (s.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", s.n);
  return {};
}

const TileRegistration tiles("wide_tiles", launch_output<Output::rows>, unsupported);

template <class P>
KernelSpec<P> spec() {
  return {
      .name = "wide_tiles",
      .backend = Backend::cuda,
      .help = "wgmma on tiles of 256 columns, for many rows per expert",
      .launch = [](P& problem,
                   const Launch& where) { launch_output<Output::rows>(problem.args(), where); },
      .unsupported = [](const Case& c, const DeviceFacts&) { return unsupported(P::shape_of(c)); }};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp>());
const Kernel<MoeDown> down(spec<MoeDown>());

}  // namespace
}  // namespace gemm

void launch_wide_token_sums(const MoeGemmArgs& args, const Launch& where) {
  gemm::launch_output<gemm::Output::token_sums>(args, where);
}
std::string wide_tiles_unsupported(const MoeGemmShape& shape) {
  return gemm::unsupported(shape);
}

}  // namespace moegate
