// SPDX-License-Identifier: Apache-2.0
// The router's logits by cuBLASLt, as engines compute them; the bias is its epilogue. The algorithm
// is what its heuristic names first, chosen when the problem is prepared.
//
// cuBLASLt counts in columns: its A is w, its B is x, its D [E, T] the logits.
//
// Its factor: as tile_mma's.
#include "harness/kernel/cublaslt.h"

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/router_gemm/router_gemm.h"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // as engines give it on Hopper

void prepare(RouterGemm& problem, const Launch&) {
  if (problem.library_product) return;
  const RouterGemmArgs args = problem.args();
  const RouterGemmShape& s = args.shape;
  auto product = std::make_shared<const CublasltProduct>(
      CublasltShape{.type = CUDA_R_16BF,
                    .m = s.experts,
                    .n = s.tokens,
                    .k = s.hidden,
                    .workspace_bytes = kWorkspaceBytes,
                    .out = s.out == DType::f32 ? CUDA_R_32F : CUDA_R_16BF,
                    .bias = args.bias});
  if (!product->ok()) {
    throw Error(Exit::internal,
                fmt::format("cuBLASLt has no algorithm for T = {}, E = {}, H = {} on this device; "
                            "leave cublaslt out with --variant",
                            s.tokens, s.experts, s.hidden));
  }
  problem.library_product = std::move(product);
}

void launch(RouterGemm& problem, const Launch& where) {
  const RouterGemmArgs args = problem.args();
  const CublasltOperands operands = {
      .a = args.w, .b = args.x, .d = args.logits, .workspace = problem.workspace()};
  if (!problem.library_product->run(operands, stream_of(where))) {
    throw Error(Exit::internal, "cublasLtMatmul refused its own algorithm");
  }
}

std::string unsupported(const Case& c, const DeviceFacts&) {
  const auto s = RouterGemmShape::of(c);
  if (s.weights == DType::f32) return "weights = fp32: cuBLASLt takes both operands of one type";
  if (s.experts % 8 != 0) return fmt::format("experts = {} is no multiple of 8", s.experts);
  return no_cublaslt();
}

const Kernel<RouterGemm> kernel(
    {.name = "cublaslt",
     .backend = Backend::cuda,
     .help = "cuBLASLt's product with a bias, by the algorithm that its heuristic names first",
     .launch = launch,
     .prepare = prepare,
     .workspace = [](const Case&, const DeviceFacts&) { return kWorkspaceBytes; },
     .unsupported = unsupported,
     .tolerance = 4});

}  // namespace
}  // namespace moegate::router_gemm
