// SPDX-License-Identifier: Apache-2.0
// chip: sm_89 (fp8 of cuBLASLt)
// Not an implementation of dense_fc2 but what it is to be held against: cuBLASLt's plain fp8 GEMM
// of the same size, without the alpha work. Alpha is folded into a beforehand, untimed, which
// rounds a once more (cublaslt_plain.h); an engine cannot do that for nothing, as both are new with
// every token. Floor: that of the operator, less the alphas that it does not read.
//
// cuBLASLt counts in columns: its A is b, its B is a, its D [H, M] is out. The algorithm is what
// its heuristic names first, chosen when the problem is prepared.
#include <algorithm>

#include "harness/kernel/cublaslt.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/dense_fc2/cublaslt/cublaslt_plain.h"

namespace moegate::dense_fc2::cublaslt {
namespace {

using namespace cuda;

constexpr char kLayout[] = "alpha folded into a";
constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // as engines give it on Hopper
constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 8;
constexpr int kChunk = 16;  // codes that a thread takes at once, of one row and expert

/// Parts of the packed tensor.
struct Folded {
  uint8_t* codes;  // [M, E*I]
  float* scale;    // of the codes
  float* largest;  // |alpha * a|

  static size_t code_bytes(const DenseFc2Shape& s) {
    return static_cast<size_t>(s.tokens) * static_cast<size_t>(s.k());
  }
  static size_t bytes(const DenseFc2Shape& s) { return code_bytes(s) + 2 * sizeof(float); }
  static Folded in(Tensor& packed, const DenseFc2Shape& s) {
    auto* codes = packed.data<uint8_t>();
    auto* floats = reinterpret_cast<float*>(codes + code_bytes(s));
    return {codes, floats, floats + 1};
  }
};

struct Chunk {
  uint8_t codes[kChunk];
  float alpha;
};

/// The i-th of all chunks of a, row by row.
__device__ Chunk chunk_at(const DenseFc2Args& args, int64_t i) {
  const DenseFc2Shape& s = args.shape;
  const int row_chunks = s.k() / kChunk, expert_chunks = s.inter / kChunk;
  const int64_t row = i / row_chunks;
  const int expert = static_cast<int>(i % row_chunks) / expert_chunks;
  Chunk chunk;
  const uint4 vector = reinterpret_cast<const uint4*>(args.a)[i];
  memcpy(chunk.codes, &vector, sizeof vector);
  chunk.alpha = args.alpha[row * s.experts + expert];
  return chunk;
}

/// Needs *largest = 0.
__global__ void largest_kernel(DenseFc2Args args, int64_t chunks, float* largest) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  float most = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < chunks; i += stride) {
    const Chunk chunk = chunk_at(args, i);
    for (const uint8_t code : chunk.codes) {
      most = fmaxf(most, fabsf(e4m3_to_float(code) * chunk.alpha));
    }
  }
  // Floats that are not negative are in the order of their bits.
  const unsigned bits = __reduce_max_sync(0xffffffff, __float_as_uint(most));
  if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned*>(largest), bits);
}

__global__ void fold_kernel(DenseFc2Args args, int64_t chunks, Folded to) {
  const float factor = code_factor(*to.largest);
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (first == 0) *to.scale = folded_scale(args.a_scales[0], *to.largest);
  for (int64_t i = first; i < chunks; i += int64_t{gridDim.x} * kThreads) {
    Chunk chunk = chunk_at(args, i);
    for (uint8_t& code : chunk.codes) code = folded_code(code, chunk.alpha, factor);
    uint4 vector;
    memcpy(&vector, chunk.codes, sizeof vector);
    reinterpret_cast<uint4*>(to.codes)[i] = vector;
  }
}

void fold(const DenseFc2Args& args, const Folded& to, const Launch& where) {
  const auto stream = stream_of(where);
  const auto chunks = static_cast<int64_t>(Folded::code_bytes(args.shape) / kChunk);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(
      (chunks + kThreads - 1) / kThreads, int64_t{where.device.processors} * kBlocksPerSm));
  check_cuda(cudaMemsetAsync(to.largest, 0, sizeof(float), stream), "memset");
  largest_kernel<<<blocks, kThreads, 0, stream>>>(args, chunks, to.largest);
  check_launch("largest_kernel");
  fold_kernel<<<blocks, kThreads, 0, stream>>>(args, chunks, to);
  check_launch("fold_kernel");
}

void prepare(DenseFc2& problem, const Launch& where) {
  if (problem.library_product) return;
  const DenseFc2Args args = problem.args();
  const DenseFc2Shape& s = args.shape;
  Tensor& packed = problem.packed(kLayout, Folded::bytes(s),
                                  [&](Tensor& to) { fold(args, Folded::in(to, s), where); });
  problem.refold = [args, to = Folded::in(packed, s), where] { fold(args, to, where); };
  const CublasltShape shape = {.type = CUDA_R_8F_E4M3,
                               .m = s.hidden,
                               .n = s.tokens,
                               .k = s.k(),
                               .workspace_bytes = kWorkspaceBytes,
                               .a_scale = args.b_scales,
                               .b_scale = Folded::in(packed, s).scale};
  auto product = std::make_shared<const CublasltProduct>(shape);
  if (!product->ok()) {
    throw Error(Exit::internal,
                fmt::format("cuBLASLt has no fp8 algorithm for M = {}, N = {}, K = {} on this "
                            "device; leave cublaslt_plain out with --variant",
                            s.tokens, s.hidden, s.k()));
  }
  problem.library_product = std::move(product);
}

void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  const CublasltOperands operands = {.a = args.b,
                                     .b = Folded::in(problem.packed(kLayout), args.shape).codes,
                                     .d = args.out,
                                     .workspace = problem.workspace()};
  if (!problem.library_product->run(operands, stream_of(where))) {
    throw Error(Exit::internal, "cublasLtMatmul refused its own algorithm");
  }
}

size_t workspace(const Case&, const DeviceFacts&) {
  return kWorkspaceBytes;
}

std::string unsupported(const Case& c, const DeviceFacts&) {
  const auto s = DenseFc2Shape::of(c);
  if (s.block_scales) {
    return "scales = block: a plain GEMM has one scale factor for each operand; take tensor";
  }
  if (s.edges) return "alphas = edges: they test the alpha work, which it leaves out; take routed";
  if (s.hidden % 16 != 0) {
    return fmt::format("hidden = {}: cuBLASLt's fp8 takes multiples of 16", s.hidden);
  }
  return no_cublaslt();
}

const Kernel<DenseFc2> kernel(
    {.name = "cublaslt_plain",
     .backend = Backend::cuda,
     .help = "yardstick: cuBLASLt's fp8 GEMM of the same size; does not do the alpha work (a is "
             "multiplied by alpha and rounded beforehand, untimed)",
     .launch = launch,
     .prepare = prepare,
     .workspace = workspace,
     .unsupported = unsupported,
     .tolerance = kTolerance,
     .between = kBetween});

}  // namespace
}  // namespace moegate::dense_fc2::cublaslt
