// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma)
// The router's logits by wgmma: rows of x and of w as they lie in memory, by TMA, both operands in
// shared memory. K has four parts, each one chain of products from zero; part i begins with step i
// * steps / 4, by H alone, and their sums are (p0 + p1) + (p2 + p3) whoever has them. So a token's
// bits depend neither on its batch nor on the plan (split_k4.h): a cluster has one tile, whose
// parts its blocks share, or two tiles whose blocks have all of K.
//
// Floor: x from memory, or the products where experts are many; what it takes is fetching operands
// from L2, and with few tokens the launch, one wait for memory and the way through the cluster.
//
// On an H200 (3a9cf04a), us, cublaslt in brackets, for 32 experts of 2880, 128 of 2880, 256 of
// 7168:
//   64 tokens   3.7 (6.9)    3.8 (7.1)    5.3 (7.1)
//   512         4.1 (7.2)    4.7 (7.5)    9.0 (9.7)
//   2048        6.6 (8.2)    8.3 (7.9)   17.9 (15.5)
//   8192       14.3 (13.6)  17.7 (15.1)  42.9 (40.4)
// L2 is read less where many blocks ask for the same rows of w at a time, but not where a copy has
// a policy of L2's. 256 of 7168 at 512 and 2048 tokens, in other sittings: all copies with a policy
// 12.4 and 23.9; without, and rows of w shared by multicast 10.8 and 22.6; those of x, as here, 9.0
// and 17.5. At 2048 tokens that is 120 MB, where cublaslt reads 100 and its tile is the same. An
// epilogue from registers, unrolled, took up to 40 us: its code comes from memory, too.
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/cluster_launch.cuh"
#include "kernels/cuda/named_barriers.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/router_gemm/split_k4.h"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr int kPanelK = 64, kRowBytes = kPanelK * 2;  // of a row in shared memory
/// Where eight warps have three sets of sums: theirs, and those of the others.
constexpr int kManyRegisters = 232, kFewRegisters = 40;

/// What a launch knows besides the tensor maps. `blocks` share a tile.
struct SplitWork {
  RouterGemmArgs args;
  int blocks;
  int same_tokens;  // of a pair, which else has the same experts
};
static_assert(std::has_unique_object_representations_v<SplitWork>, "a row's identity");

/// Warpgroups that multiply have 64 tokens by all experts of the tile. Of one more the first warp
/// copies rows of x, the second one those of w, and the third one fetches biases.
template <int kGroups, int kExpertsOf, bool kIsCut>
struct SplitTile {
  static constexpr bool kCut = kIsCut;
  static constexpr int kTokens = kGroups * 64, kExperts = kExpertsOf;
  static constexpr int kWarps = kGroups * 4, kMultipliers = kWarps * 32;
  static constexpr int kThreads = kMultipliers + 128;
  static constexpr int kAtLogits = kMultipliers + 32;  // threads: and who fetches biases
  static constexpr int kSums = kExperts / 2, kOctets = kExperts / 8;  // of a thread; see multiply()
  static constexpr bool kTakesRegisters = kWarps * kExperts == 8 * 128;
  /// Of small tiles a stage has two panels of K: products of one are as long as what they wait for.
  static constexpr int kPanels = kTokens + kExperts <= 160 ? 2 : 1, kStageK = kPanels * kPanelK;
  static constexpr int kPanelBytes = (kTokens + kExperts) * kRowBytes;
  static constexpr int kStageBytes = kPanels * kPanelBytes;
  static constexpr int kInboxBytes = kCut ? kTokens * kExperts * 4 : 0;
  static constexpr int kMostStages = (225 * 1024 - kInboxBytes) / kStageBytes;
  static constexpr int kStages = kMostStages < 16 ? kMostStages : 16;

  struct Shared {
    uint8_t stages[kStages][kStageBytes];       // panels of rows of x, then of w
    float4 inbox[kCut ? kInboxBytes / 16 : 1];  // [blocks, octets of a share, multipliers]
    float bias[kExperts];
    uint64_t full[kStages], empty[kStages], arrived;
  };
  static_assert(kSharedBytes<Shared> <= 227 * 1024);
};

/// Where a block is: its tile, and its parts of K.
struct SplitPlace {
  int rank;  // in the cluster
  int first_token, first_expert;
  int first_part, parts;

  template <class T>
  __device__ static SplitPlace of(const SplitWork& work, const T&) {
    const int rank = static_cast<int>(blockIdx.x);
    const int tokens = static_cast<int>(blockIdx.y), experts = static_cast<int>(blockIdx.z);
    const bool next_tokens = !T::kCut && !work.same_tokens, next_experts = !T::kCut && !next_tokens;
    const int parts = T::kCut ? kQuarters / work.blocks : kQuarters;
    return {.rank = rank,
            .first_token = (next_tokens ? tokens * kPair + rank : tokens) * T::kTokens,
            .first_expert = (next_experts ? experts * kPair + rank : experts) * T::kExperts,
            .first_part = T::kCut ? rank * parts : 0,
            .parts = parts};
  }
};

/// The stage with which a part begins. What is behind K of the last one is zeros.
template <class T>
__device__ int first_stage(const SplitWork& work, int part) {
  const int steps = (work.args.shape.hidden + kStepK - 1) / kStepK;
  return part * steps / kQuarters * (kStepK / T::kStageK);
}

/// Calls `copy` for each panel of the stages that a block takes, once they are empty, and `begin`
/// before.
template <class T, class Begin, class Copy>
__device__ void fill_stages(const SplitWork& work, const SplitPlace& place,
                            typename T::Shared& shared, const Begin& begin, const Copy& copy) {
  const uint32_t stages = shared_address(shared.stages), full = shared_address(shared.full),
                 empty = shared_address(shared.empty);
  Ring ring{T::kStages};
  const int end = first_stage<T>(work, place.first_part + place.parts);
  for (int i = first_stage<T>(work, place.first_part); i < end; ++i, ring.advance()) {
    wait_barrier(empty + ring.stage * 8, ring.phase ^ 1);
    begin(full + ring.stage * 8);
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      copy(stages + ring.stage * T::kStageBytes + panel * T::kPanelBytes,
           (i * T::kPanels + panel) * kRowBytes, full + ring.stage * 8);
    }
  }
  if constexpr (!T::kCut) {
    // A block stays until its neighbour has said that it has read what it brought it.
    for (int i = 0; i < T::kStages; ++i, ring.advance()) {
      wait_barrier(empty + ring.stage * 8, ring.phase ^ 1);
    }
  }
}

/// One thread copies rows of x, and says how many bytes a stage gets. Of a pair with the same
/// tokens each block copies half of them for both.
template <class T>
__device__ void copy_tokens(const CUtensorMap& x, const SplitWork& work, const SplitPlace& place,
                            typename T::Shared& shared) {
  constexpr uint16_t kBoth = (1 << kPair) - 1;
  const int slice = place.rank * (T::kTokens / kPair);
  fill_stages<T>(
      work, place, shared, [](uint32_t full) { arrive_expecting(full, T::kStageBytes); },
      [&](uint32_t to, int column, uint32_t full) {
        if (!T::kCut && work.same_tokens) {
          copy_tile(to + slice * kRowBytes, &x, column, place.first_token + slice, full, kBoth);
        } else {
          copy_tile(to, &x, column, place.first_token, full);
        }
      });
}

/// Another one copies rows of w. Many blocks want the same ones at the same time, which are then
/// read from L2 once; not so where a copy has a policy.
template <class T>
__device__ void copy_experts(const CUtensorMap& w, const SplitWork& work, const SplitPlace& place,
                             typename T::Shared& shared) {
  fill_stages<T>(
      work, place, shared, [](uint32_t) {},
      [&](uint32_t to, int column, uint32_t full) {
        copy_tile(to + T::kTokens * kRowBytes, &w, column, place.first_expert, full);
      });
}

/// What a warp that multiplies knows from stage to stage; addresses, computed once.
template <class T>
struct Reader {
  static constexpr int kGivers = T::kCut ? 1 : kPair;  // who fills a stage
  uint32_t a, b, full;                                 // of stage 0
  uint32_t empty;                                      // the giver's that is this lane's
  bool hands_back;
  Ring ring{T::kStages};

  __device__ explicit Reader(typename T::Shared& shared) {
    const uint32_t rows = shared_address(shared.stages);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    a = operand(uniform(rows + warpgroup() * 64 * kRowBytes));
    b = operand(uniform(rows + T::kTokens * kRowBytes));
    full = uniform(shared_address(shared.full));
    empty = shared_address(shared.empty);
    if constexpr (!T::kCut) empty = shared_address_of(empty, lane % kPair);
    hands_back = lane < kGivers;
  }
  /// Starts the products of the next stage once it is full.
  __device__ __forceinline__ void start(float (&sums)[T::kSums], bool add) {
    wait_barrier(full + ring.stage * 8, ring.phase);
    begin_products();
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      const uint32_t at = (ring.stage * T::kStageBytes + panel * T::kPanelBytes) / 16;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        multiply<T::kExperts, DType::bf16>(sums, a + at + 2 * k, b + at + 2 * k,
                                           add || panel + k > 0);
      }
    }
    commit_products();
    ring.advance();
  }
  /// The warp has read the stage so many before the next one.
  __device__ void hand_back(int before) const {
    const int stage = ring.stage - before;
    __syncwarp();
    if (hands_back) arrive_at(empty + (stage < 0 ? stage + T::kStages : stage) * 8);
  }
};

/// Reads of the sums stay behind the wait before it.
template <int kSums>
__device__ void settle(float (&sums)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; i += 8) {
    float* const of = sums + i;
    asm volatile(""
                 : "+f"(of[0]), "+f"(of[1]), "+f"(of[2]), "+f"(of[3]), "+f"(of[4]), "+f"(of[5]),
                   "+f"(of[6]), "+f"(of[7])::"memory");
  }
}

/// The products of so many stages from zero, those of two at once.
template <class T>
__device__ __forceinline__ void multiply_part(float (&sums)[T::kSums], int stages,
                                              Reader<T>& reader) {
  for (int i = 0; i < stages; ++i) {
    reader.start(sums, i > 0);
    wait_products<1>();
    if (i > 0) reader.hand_back(2);
  }
  wait_products();
  if (stages > 0) reader.hand_back(1);
  if (stages == 0) {  // no else: with one, or without settle() behind it, sums get more registers
#pragma unroll
    for (float& sum : sums) sum = 0;
  }
  settle(sums);
}

template <int kSums>
__device__ void add(float (&to)[kSums], const float (&sums)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) to[i] += sums[i];
}

template <int kSums>
__device__ void copy(float (&to)[kSums], const float (&sums)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) to[i] = sums[i];
}

/// The sums of a block's one, two or four parts.
template <class T>
__device__ __forceinline__ void multiply_parts(float (&sums)[T::kSums], const SplitWork& work,
                                               const SplitPlace& place,
                                               typename T::Shared& shared) {
  Reader<T> reader(shared);
  const auto stages_of = [&](int i) {
    const int part = place.first_part + i;
    return first_stage<T>(work, part + 1) - first_stage<T>(work, part);
  };
  float part[T::kSums];  // the same registers for all products
  multiply_part(part, stages_of(0), reader);
  copy(sums, part);
  if (place.parts == 1) return;
  multiply_part(part, stages_of(1), reader);
  add(sums, part);
  if constexpr (!T::kCut) {
    float others[T::kSums];
    multiply_part(part, stages_of(2), reader);
    copy(others, part);
    multiply_part(part, stages_of(3), reader);
    add(others, part);
    add(sums, others);
  }
}

/// Stores the logits of two experts that follow each other.
__device__ inline void store_pair(const RouterGemmArgs& args, int token, int expert, float first,
                                  float second) {
  const RouterGemmShape& shape = args.shape;
  if (token >= shape.tokens || expert >= shape.experts) return;
  const int64_t at = int64_t{token} * shape.experts + expert;
  if (shape.experts % 2 != 0) {
    write_float(shape.out, args.logits, at, first);
    if (expert + 1 < shape.experts) write_float(shape.out, args.logits, at + 1, second);
  } else if (shape.out == DType::f32) {
    *reinterpret_cast<float2*>(static_cast<float*>(args.logits) + at) = {first, second};
  } else {
    *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(args.logits) + at) =
        float_to_bf16(first) | uint32_t{float_to_bf16(second)} << 16;
  }
}

/// Of a thread's sums those of eight of the tile's experts.
__device__ inline void store_octet(const RouterGemmArgs& args, const SplitPlace& place, int octet,
                                   const float4& sums, const float* bias) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int token = place.first_token + warp * 16 + lane / 4, of_tile = octet * 8 + lane % 4 * 2;
  const float2 add = *reinterpret_cast<const float2*>(bias + of_tile);
  store_pair(args, token, place.first_expert + of_tile, sums.x + add.x, sums.y + add.y);
  store_pair(args, token + 8, place.first_expert + of_tile, sums.z + add.x, sums.w + add.y);
}

template <int kSums>
__device__ float4 octet_of(const float (&sums)[kSums], int octet) {
  return {sums[octet * 4], sums[octet * 4 + 1], sums[octet * 4 + 2], sums[octet * 4 + 3]};
}
__device__ inline float4 sum(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// Each block of a cluster adds up its share of the tile's octets.
template <class T>
__device__ void reduce(const float (&sums)[T::kSums], const SplitWork& work,
                       const SplitPlace& place, typename T::Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x), share = T::kOctets / work.blocks;
  const auto slot = [&](int block, int octet) {
    return (block * share + octet) * T::kMultipliers + thread;
  };
#pragma unroll
  for (int octet = 0; octet < T::kOctets; ++octet) {
    const int to =
        work.blocks == kQuarters ? octet / (T::kOctets / kQuarters) : octet / (T::kOctets / kPair);
    send(&shared.inbox[slot(place.rank, octet - to * share)], &shared.arrived, to,
         octet_of(sums, octet));
  }
  sync_barrier<T::kAtLogits>(kLogitsBarrier);
  wait_inbox(&shared.arrived);
#pragma unroll 1
  for (int octet = 0; octet < share; ++octet) {
    float4 total = sum(shared.inbox[slot(0, octet)], shared.inbox[slot(1, octet)]);
    if (work.blocks == kQuarters) {
      total = sum(total, sum(shared.inbox[slot(2, octet)], shared.inbox[slot(3, octet)]));
    }
    store_octet(work.args, place, place.rank * share + octet, total, shared.bias);
  }
}

/// A block with all of K stores its sums: from shared memory, in a loop. From registers it is long
/// code, which comes from memory as slowly as anything.
template <class T>
__device__ void store_all(const float (&sums)[T::kSums], const SplitWork& work,
                          const SplitPlace& place, typename T::Shared& shared) {
  static_assert(sizeof(shared.stages) >= T::kTokens * T::kExperts * 4);
  sync_barrier<T::kAtLogits>(kLogitsBarrier);  // nobody reads stages any more
  float4* const staged = reinterpret_cast<float4*>(shared.stages) + threadIdx.x;
#pragma unroll
  for (int octet = 0; octet < T::kOctets; ++octet) {
    staged[octet * T::kMultipliers] = octet_of(sums, octet);
  }
#pragma unroll 1
  for (int octet = 0; octet < T::kOctets; ++octet) {
    store_octet(work.args, place, octet, staged[octet * T::kMultipliers], shared.bias);
  }
}

/// A warp.
template <class T>
__device__ void fetch_biases(const RouterGemmArgs& args, const SplitPlace& place,
                             typename T::Shared& shared) {
  for (int i = static_cast<int>(threadIdx.x) % 32; i < T::kExperts; i += 32) {
    const int expert = place.first_expert + i;
    shared.bias[i] = expert < args.shape.experts ? args.bias_of(expert) : 0;
  }
  arrive_at_barrier<T::kAtLogits>(kLogitsBarrier);
}

/// Grid: blocks of a cluster, what clusters take of tokens, and of experts.
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    split_k4_kernel(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap w,
                    const __grid_constant__ SplitWork work) {
  extern __shared__ uint8_t raw[];
  auto& shared = aligned_shared<typename T::Shared>(raw);
  const auto place = SplitPlace::of(work, T());
  const int warp = uniform(threadIdx.x / 32);
  init_barriers(0, shared.full, 1);
  init_barriers(1, shared.empty, T::kWarps * Reader<T>::kGivers);
  fence_barrier_init();
  if (threadIdx.x == 64) prepare_inbox(&shared.arrived, T::kInboxBytes);
  if (warp == T::kWarps && elected()) prefetch_map(&x);
  if (warp == T::kWarps + 1 && elected()) prefetch_map(&w);
  __syncthreads();
  cluster_arrive();
  if (warp >= T::kWarps) {
    if constexpr (T::kTakesRegisters) leave_registers<kFewRegisters>();
    if (warp == T::kWarps + 2) fetch_biases<T>(work.args, place, shared);
    // What a block brings itself needs no other block to run.
    if constexpr (!T::kCut) cluster_wait();
    if (warp == T::kWarps && elected()) copy_tokens<T>(x, work, place, shared);
    if (warp == T::kWarps + 1 && elected()) copy_experts<T>(w, work, place, shared);
    __syncwarp();
    if constexpr (T::kCut) cluster_wait();
    return;
  }
  if constexpr (T::kTakesRegisters) take_registers<kManyRegisters>();
  cluster_wait();
  float sums[T::kSums];
  multiply_parts<T>(sums, work, place, shared);
  if constexpr (T::kCut) {
    reduce<T>(sums, work, place, shared);
  } else {
    store_all<T>(sums, work, place, shared);
  }
}

/// Calls `use` with the SplitTile of a plan.
template <class Use>
auto with_tile(const SplitPlan& plan, const Use& use) {
  if (plan.tokens == 128) return use(SplitTile<2, 128, false>());
  const auto of = [&]<bool kCut>(std::bool_constant<kCut>) {
    if (plan.experts == 128) return use(SplitTile<1, 128, kCut>());
    if (plan.experts == 64) return use(SplitTile<1, 64, kCut>());
    return use(SplitTile<1, 32, kCut>());
  };
  return plan.blocks > 1 ? of(std::true_type()) : of(std::false_type());
}

template <class T>
constexpr size_t kBytes = kSharedBytes<typename T::Shared>;

SplitPlan plan_of(const RouterGemmShape& shape, const DeviceFacts& device) {
  return plan_split(shape, [&](const SplitPlan& asked) {
    return with_tile(asked, [&]<class T>(T) {
      return resident_clusters(split_k4_kernel<T>, asked.size(), T::kThreads, kBytes<T>, device);
    });
  });
}

const Kernel<RouterGemm> kernel({
    .name = "split_k4",
    .backend = Backend::cuda,
    .help = "K in four parts, over the blocks of a cluster where tiles are few; TMA and wgmma",
    .launch =
        [](RouterGemm& problem, const Launch& where) {
          launch_split(problem.args(), plan_of(problem.shape, where.device), where);
        },
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return mma_unsupported(RouterGemmShape::of(c)); },
    .path = [](const Case& c, const DeviceFacts& device) -> std::string {
      const SplitPlan plan = plan_of(RouterGemmShape::of(c), device);
      return fmt::format("tiles of {} x {}, blocks={}", plan.tokens, plan.experts, plan.blocks);
    },
    .tolerance = 4,  // as tile_mma's, of a quarter of K: 1.6e-6 at H = 7168, a row 1.8e-6
});

}  // namespace

void launch_split(const RouterGemmArgs& args, const SplitPlan& plan, const Launch& where) {
  const RouterGemmShape& shape = args.shape;
  with_tile(plan, [&]<class T>(T) {
    const auto kernel = split_k4_kernel<T>;
    ClusterLaunch launch(kernel, plan.clusters(shape), plan.size(), T::kThreads, kBytes<T>,
                         where.stream);
    const bool same_tokens = plan.same_tokens(shape);
    launch.config.gridDim = {static_cast<unsigned>(plan.size()),
                             static_cast<unsigned>(plan.token_clusters(shape)),
                             static_cast<unsigned>(plan.expert_clusters(shape))};
    const SplitWork work{args, plan.blocks, same_tokens};
    const CUtensorMap x = matrix_map(args.x, shape.tokens, shape.hidden * 2,
                                     same_tokens ? T::kTokens / kPair : T::kTokens);
    const CUtensorMap w = matrix_map(args.w, shape.experts, shape.hidden * 2, T::kExperts);
    check_cuda(cudaLaunchKernelEx(&launch.config, kernel, x, w, work), "split_k4_kernel");
  });
}

}  // namespace moegate::router_gemm
