// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_fc2/dense_fc2.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"

namespace moegate::dense_fc2 {
namespace {

const std::vector<std::string> kScales = {"tensor", "block"};
const std::vector<std::string> kKTiles = {"128", "256"};
const std::vector<std::string> kAlphas = {"routed", "edges"};

// Streams of the counter-based generator, one per tensor.
enum Stream : uint64_t { kAStream = 361, kAScaleStream, kBStream, kBScaleStream, kRoutingStream };

std::vector<std::string> usual(const Case& /*c*/, const DeviceFacts& /*device*/) {
  return {"sparse_rows", "stream_k", "alpha_per_expert", "alpha_as_scale"};
}

const Op<DenseFc2> op({
    .help = "FC2 of all experts as one dense fp8 GEMM, an alpha per token and expert",
    .params = {{"tokens", "", "M, 1 to 65536"},
               {"experts", "", "E, 1 to 1024"},
               {"topk", "", "k, 1 to 16"},
               {"inter", "", "I, the layer's inner width (of one rank), a multiple of 128"},
               {"hidden", "", "H"},
               {"scales", "tensor",
                "tensor: one factor for each operand; block: per 128 of K, of the weights per 128 "
                "columns, too"},
               {"k_tile", "128",
                "128 or 256: K that a step of alpha_per_k_tile and alpha_per_expert takes"},
               {"alphas", "routed",
                "as routed; edges: tokens whose weights are all 0, experts named twice"},
               {"routing", "uniform", kRoutingHelp}},
    .yardstick = "alpha_per_k_tile",
    .before = {.cuda = {{"alpha_per_k_tile_n64", "alpha_per_expert_n64*"}, {"alpha_per_k_tile"}}},
    .tuning = {.shape = {"experts", "topk", "hidden", "inter", "scales", "k_tile"},
               .usual = usual,
               .without = {"cublaslt_plain"}},  // without the work of alpha
});

/// Of the tensor that holds an operand's scale factors.
std::vector<int64_t> scale_shape(const DenseFc2Shape& s, int rows) {
  if (!s.block_scales) return {1};
  return {rows, s.k_groups()};
}

std::vector<int32_t> experts_of(const DenseFc2Shape& s, const std::string& routing, uint64_t seed,
                                int64_t first = 0) {
  return routed_experts(routing, {s.tokens, s.experts, s.topk, first}, seed);
}

/// For moe_gemm_sample(): every token stands for the expert of its first slot.
moe_gemm::MoeGemmSample sample_of(const DenseFc2Shape& s, std::span<const int32_t> experts,
                                  uint64_t seed, double most_products) {
  std::vector<int32_t> first;
  for (size_t i = 0; i < experts.size(); i += static_cast<size_t>(s.topk)) {
    first.push_back(experts[i]);
  }
  moe_gemm::MoeGemmShape product = s.product();
  product.experts = s.experts;
  return moe_gemm::moe_gemm_sample(product, first, seed, most_products);
}

}  // namespace

DenseFc2Shape DenseFc2Shape::of(const Case& c) {
  DenseFc2Shape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  s.experts = static_cast<int>(c.get_int("experts", 1, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  s.inter = static_cast<int>(c.get_int("inter", 1, 1 << 16));
  s.hidden = static_cast<int>(c.get_int("hidden", 1, 1 << 16));
  s.k_tile = c.get_choice("k_tile", kKTiles) == 1 ? 256 : 128;
  s.block_scales = c.get_choice("scales", kScales) == 1;
  s.edges = c.get_choice("alphas", kAlphas) == 1;
  if (s.inter % s.k_tile != 0) {
    usage_error("{}: inter = {} is not a multiple of k_tile = {}", c.where(), s.inter, s.k_tile);
  }
  return s;
}

/// Outputs of unit size: of k products, each of unit size, with such weights.
std::vector<float> dense_fc2_alpha(const DenseFc2Shape& shape, std::span<const int32_t> experts,
                                   uint64_t seed, int64_t first) {
  std::vector<float> alpha(static_cast<size_t>(shape.tokens) * static_cast<size_t>(shape.experts));
  const double size = 1 / std::sqrt(static_cast<double>(shape.topk));
  for (int t = 0; t < shape.tokens; ++t) {
    const int64_t token = first + t;
    if (shape.edges && token % 4 == 1) continue;
    const int32_t* slots = experts.data() + int64_t{t} * shape.topk;
    float* row = alpha.data() + int64_t{t} * shape.experts;
    for (int j = 0; j < shape.topk; ++j) {
      const auto slot = static_cast<uint64_t>(token * shape.topk + j);
      const double weight = size * (0.5 + random_uniform(seed, kRoutingStream, slot));
      const bool again = shape.edges && token % 2 == 0 && j == shape.topk - 1;
      row[again ? slots[0] : slots[j]] += static_cast<float>(weight);
    }
  }
  return alpha;
}

void DenseFc2::validate(const Case& c) {
  const auto s = DenseFc2Shape::of(c);
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), s.experts, s.topk}, 0);
}

DenseFc2::DenseFc2(Device& device, const Case& c, double most_products)
    : Problem(device),
      shape(DenseFc2Shape::of(c)),
      a_(make_tensor("a", Role::activation, DType::e4m3, {shape.tokens, shape.k()})),
      a_scales_(
          make_tensor("a_scales", Role::activation, DType::f32, scale_shape(shape, shape.tokens))),
      b_(make_tensor("b", Role::weight, DType::e4m3, {shape.hidden, shape.k()})),
      b_scales_(
          make_tensor("b_scales", Role::weight, DType::f32, scale_shape(shape, shape.n_groups()))),
      alpha_(make_tensor("alpha", Role::activation, DType::f32, {shape.tokens, shape.experts})),
      out_(make_tensor("out", Role::output, DType::bf16, {shape.tokens, shape.hidden})),
      drawn_alphas_(shape.tokens, seed_of(c),
                    [s = shape, routing = c.get("routing")](uint64_t seed, int64_t first) {
                      return dense_fc2_alpha(s, experts_of(s, routing, seed, first), seed, first);
                    }) {
  const uint64_t seed = seed_of(c);
  const auto experts = experts_of(shape, c.get("routing"), seed);
  fill_operands(seed);
  redraw(0);
  sample_ = sample_of(shape, experts, seed, most_products);
  if (c.truth) find_truth();
}

bool DenseFc2::redraw(uint64_t change) {
  alphas_ = drawn_alphas_.of(change, first_token());
  if (!shape.block_scales) a_scales_.refill(change);  // one for all tokens: no token's
  alpha_.upload(alphas_);
  if (refold) refold();
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return alphas_ != drawn_alphas_.first();
}

bool DenseFc2::find_truth() {
  if (truth_.empty()) truth_ = truth(Fault::none, sample_);
  return true;
}

/// As in MoeGemm: activations of unit size, weights of variance 1/I.
void DenseFc2::fill_operands(uint64_t seed) {
  constexpr float kCodeSize = 129.3f;  // of RandomFill::Kind::e4m3_normal
  const auto around = [&](Tensor& to, Stream stream, float middle) {
    to.fill_random(
        {RandomFill::Kind::uniform, seed, stream, DType::f32, 0.75f * middle, 1.25f * middle});
  };
  a_.fill_random({RandomFill::Kind::e4m3_normal, seed, kAStream, DType::e4m3});
  around(a_scales_, kAScaleStream, 1 / kCodeSize);
  b_.fill_random({RandomFill::Kind::e4m3_normal, seed, kBStream, DType::e4m3});
  around(b_scales_, kBScaleStream, 1 / (kCodeSize * std::sqrt(static_cast<float>(shape.inter))));
}

DenseFc2Args DenseFc2::args() {
  return {.a = a_.data<uint8_t>(),
          .a_scales = a_scales_.data<float>(),
          .b = b_.data<uint8_t>(),
          .b_scales = b_scales_.data<float>(),
          .alpha = alpha_.data<float>(),
          .out = out_.data<uint16_t>(),
          .shape = shape};
}

/// What alpha makes compulsory, which a variant that leaves useless work out has to do, too. The
/// dense form does more; reports work its share out from the parameters.
Cost DenseFc2::cost() const {
  const double useful = useful_alphas(), active = active_experts();
  Cost cost;
  cost.flops = 2 * useful * shape.hidden * shape.inter;
  cost.read_bytes = (useful + active * shape.hidden) * shape.inter;
  const auto scale_bytes = [&](double rows) {  // with a factor per 128 of an expert's K
    return shape.block_scales ? rows * shape.expert_groups() * double{sizeof(float)}
                              : double{sizeof(float)};
  };
  cost.read_bytes += scale_bytes(useful) + scale_bytes(active * shape.n_groups());
  cost.read_bytes += static_cast<double>(alpha_.bytes());
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

double DenseFc2::active_experts() const {
  int active = 0;
  for (size_t e = 0; e < static_cast<size_t>(shape.experts); ++e) {
    bool used = false;
    for (size_t i = e; i < alphas_.size() && !used; i += static_cast<size_t>(shape.experts)) {
      used = alphas_[i] != 0;
    }
    active += used;
  }
  return active;
}

double DenseFc2::useful_alphas() const {
  return static_cast<double>(alphas_.size()) -
         static_cast<double>(std::count(alphas_.begin(), alphas_.end(), 0.0f));
}

std::vector<Fact> DenseFc2::facts() const {
  return {{"active_experts", active_experts()},
          {"useful_share", useful_alphas() / static_cast<double>(alphas_.size())}};
}

}  // namespace moegate::dense_fc2
