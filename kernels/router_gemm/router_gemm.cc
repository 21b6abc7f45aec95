// SPDX-License-Identifier: Apache-2.0
#include "kernels/router_gemm/router_gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernel/random_fill.h"
#include "kernels/check/sampled_rows.h"

namespace moegate::router_gemm {
namespace {

const std::vector<std::string> kValues = {"random", "edges"};

// Streams of the counter-based generator, one per tensor.
enum Stream : uint64_t { kXStream = 421, kWeightStream, kBiasStream };

/// What wins on an H200, by tokens and experts: reports/gallery/nvidia-h200-router.md.
std::vector<std::string> usual(const Case& c, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"blocked"};
  const RouterGemmShape s = RouterGemmShape::of(c);
  constexpr int kFewTokens = 24, kFewLogits = 1 << 17;
  if (s.tokens == 1) return {"expert_per_block", "cublaslt", "tile_mma"};
  if (s.tokens <= kFewTokens) return {"mma_cluster", "split_k4", "cublaslt", "tile_mma"};
  if (s.tokens * s.experts <= kFewLogits) return {"split_k4", "cublaslt", "tile_mma"};
  return {"cublaslt", "split_k4", "tile_mma"};
}

const Op<RouterGemm> op({
    .help = "logits of the router: x * W of all experts, and a bias",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"experts", "", "E, 2 to 1024"},
               {"topk", "", "k, 1 to 16: experts that the logits choose for a token"},
               {"hidden", "", "H, a multiple of 8 up to 16384"},
               {"weights", "bf16", "bf16 or fp32"},
               {"out", "fp32", "of logits and bias: fp32 or bf16"},
               {"bias", "0", "1: added to the logits"},
               {"values", "random",
                "random, or edges: tokens of zeros, NaN and infinities, equal experts"}},
    .yardstick = "per_logit",
    .before = {.cuda = {{"tile_mma"}, {"cublaslt"}}},
    .tuning = {.shape = {"experts", "hidden", "weights", "out", "bias"}, .usual = usual},
});

DType narrow_or_fp32(const Case& c, const char* name) {
  return c.get_choice(name, {"fp32", "bf16"}) == 0 ? DType::f32 : DType::bf16;
}

/// x of tokens `first` and later: a token in 8 is zero, one has a NaN, one an infinity, one a
/// value far above its others.
std::vector<uint16_t> edge_values(const RouterGemmShape& s, uint64_t seed, int64_t first) {
  constexpr uint16_t kNan = 0x7fc0, kInfinity = 0x7f80, kMinusZero = 0x8000, k64 = 0x4280;
  const auto width = static_cast<uint64_t>(s.hidden);
  std::vector<uint16_t> x(static_cast<size_t>(s.tokens) * width);
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t at = static_cast<uint64_t>(first) * width + i, token = at / width;
    const double uniform = std::sqrt(3) * (2 * random_uniform(seed, kXStream, at) - 1);
    const bool special = at % width == token * 37 % width;
    x[i] = float_to_bf16(static_cast<float>(uniform));
    if (token % 8 == 1) x[i] = at % 2 == 0 ? 0 : kMinusZero;
    if (token % 8 == 3 && special) x[i] = kNan;
    if (token % 8 == 5 && special) x[i] = kInfinity;
    if (token % 8 == 7 && special) x[i] = k64;
  }
  return x;
}

}  // namespace

RouterGemmShape RouterGemmShape::of(const Case& c) {
  RouterGemmShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  s.experts = static_cast<int>(c.get_int("experts", 2, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  s.hidden = static_cast<int>(c.get_int("hidden", kPiece, 1 << 14));
  s.weights = narrow_or_fp32(c, "weights");
  s.out = narrow_or_fp32(c, "out");
  s.biased = static_cast<int>(c.get_int("bias", 0, 1));
  s.edges = static_cast<int>(c.get_choice("values", kValues));
  if (s.hidden % kPiece != 0) {
    usage_error("{}: hidden = {} is not a multiple of {}", c.where(), s.hidden, kPiece);
  }
  return s;
}

void RouterGemm::validate(const Case& c) {
  RouterGemmShape::of(c);
}

RouterGemm::RouterGemm(Device& device, const Case& c, double most_products)
    : Problem(device),
      shape(RouterGemmShape::of(c)),
      x_(make_tensor("x", Role::activation, DType::bf16, {shape.tokens, shape.hidden})),
      w_(make_tensor("w", Role::weight, shape.weights, {shape.experts, shape.hidden})),
      bias_(shape.biased ? &make_tensor("bias", Role::weight, shape.out, {shape.experts})
                         : nullptr),
      logits_(make_tensor("logits", Role::output, shape.out, {shape.tokens, shape.experts})) {
  const uint64_t seed = seed_of(c);
  fill_weights(seed);
  if (shape.edges) {
    drawn_edges_.emplace(shape.tokens, seed, [s = shape](uint64_t of, int64_t first) {
      return edge_values(s, of, first);
    });
    redraw(0);
  } else {
    const auto edge = static_cast<float>(std::sqrt(3));
    x_.fill_random({RandomFill::Kind::uniform, seed, kXStream, DType::bf16, -edge, edge});
  }
  const double products = static_cast<double>(shape.logits()) * shape.hidden;
  tokens_ = check::sampled_rows(shape.tokens,
                                products <= most_products ? shape.tokens : kSampledTokens, seed);
  if (c.truth) find_truth();
}

/// Sums of variance 1, biases likewise. Edges: experts 2 and 3 are one, expert 5 has no weights.
void RouterGemm::fill_weights(uint64_t seed) {
  const auto fill = [&](Tensor& to, Stream stream, double variance) {
    const auto edge = static_cast<float>(std::sqrt(3 * variance));
    to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), -edge, edge});
  };
  fill(w_, kWeightStream, 1.0 / shape.hidden);
  if (bias_) fill(*bias_, kBiasStream, 1);
  if (!shape.edges) return;
  const auto copy_of = [&](Tensor& of, int64_t row, int64_t rows, bool zeros) {
    const size_t bytes = of.bytes() / static_cast<size_t>(rows);
    std::vector<uint8_t> values(bytes);
    if (!zeros) device().download(values.data(), of.data<uint8_t>() + 2 * bytes, bytes);
    device().upload(of.data<uint8_t>() + static_cast<size_t>(row) * bytes, values.data(), bytes);
  };
  if (shape.experts > 3) copy_of(w_, 3, shape.experts, false);
  if (shape.experts > 3 && bias_) copy_of(*bias_, 3, shape.experts, false);
  if (shape.experts > 5) copy_of(w_, 5, shape.experts, true);
}

bool RouterGemm::redraw(uint64_t change) {
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  if (!drawn_edges_) return false;
  x_.upload(drawn_edges_->of(change, first_token()));
  return true;
}

bool RouterGemm::find_truth() {
  if (truth_.empty()) truth_ = truth(tokens_, RouterSlip::none);
  return true;
}

RouterGemmArgs RouterGemm::args() {
  return {.x = x_.data<uint16_t>(),
          .w = w_.data(),
          .bias = bias_ ? bias_->data() : nullptr,
          .logits = logits_.data(),
          .shape = shape};
}

Cost RouterGemm::cost() const {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(shape.logits()) * shape.hidden;
  cost.read_bytes =
      static_cast<double>(x_.bytes() + w_.bytes() + (bias_ ? bias_->bytes() : size_t{0}));
  cost.write_bytes = static_cast<double>(logits_.bytes());
  return cost;
}

}  // namespace moegate::router_gemm
