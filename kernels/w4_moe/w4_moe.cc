// SPDX-License-Identifier: Apache-2.0
#include "kernels/w4_moe/w4_moe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"

namespace moegate::w4_moe {
namespace {

const std::vector<std::string> kData = {"random", "edges"};

// Streams of the counter-based generator, one per tensor and use.
enum Stream : uint64_t {
  kXStream = 401,
  kCodeStream,
  kScaleStream,
  kBiasStream,
  kRoutingStream,
  kEdgeStream
};

std::vector<Param> params(std::vector<Param> own) {
  std::vector<Param> all = {
      {"tokens", "", "T, 1 to 65536"},
      {"experts", "", "E, 1 to 1024"},
      {"topk", "", "k, 1 to 16"},
      {"hidden", "", "H"},
      {"inter", "", "I, the layer's inner width (of one rank)"},
      {"block", "0", "BM, rows that an expert's are padded to; 0: by the mean of rows per expert"},
      {"values", "random",
       "random, or edges: scales of 2^-127 (and 2^33 before clamps), biases at clamps"},
      {"routing", "uniform", kRoutingHelp}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Op<W4GateUp> gate_up({
    .help = "grouped GEMM x * W1 + bias per routed row, MXFP4 weights, SwiGLU (gpt-oss)",
    .params = params({{"alpha", "1.702", "factor inside the sigmoid"},
                      {"beta", "1", "added to the up half"},
                      {"limit", "7", "clamp of gate (above) and up (both sides); 0: none"}}),
    .yardstick = "gather",
    .before = {.cuda = {{"tile_mma"}}},
});

const Op<W4Down> down({
    .help = "grouped GEMM activations * W2 + bias, MXFP4 weights, times the routing weight",
    .params = params({}),
    .yardstick = "gather",
    .before = {.cuda = {{"tile_mma"}}},
});

/// The least block that holds what an expert's rows are on average, and some more.
int default_block(const W4Shape& s) {
  const double mean = 1.0 * s.rows() / s.experts;
  constexpr std::pair<double, int> kUpTo[] = {{4, 8}, {12, 16}, {28, 32}, {64, 64}};
  for (const auto& [rows, block] : kUpTo) {
    if (mean <= rows) return block;
  }
  return 128;
}

W4Shape common_shape(const Case& c, const char* k, const char* n) {
  W4Shape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  s.experts = static_cast<int>(c.get_int("experts", 1, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  s.k = static_cast<int>(c.get_int(k, kGroup, 1 << 16));
  s.n = static_cast<int>(c.get_int(n, 1, 1 << 15));
  s.block = static_cast<int>(c.get_int("block", 0, 256));
  if (s.block == 0) s.block = default_block(s);
  s.data = static_cast<W4Data>(c.get_choice("values", kData));
  if (s.k % kGroup != 0) {
    usage_error("{}: {} = {} is not a multiple of {}, the group that shares a scale", c.where(), k,
                s.k, kGroup);
  }
  return s;
}

void validate_routing(const Case& c, const W4Shape& s) {
  const std::string& routing = c.get("routing");
  // As for moe_gemm: what is recorded may be wrong in any row.
  const int looked_at = routing.find("replay") == std::string::npos ? 1 : 64;
  routing_scores(routing, {std::min(s.tokens, looked_at), s.experts, s.topk}, 0);
}

/// Rows of weights that edges leave with their bias. Pairs, because a gate and its up meet in one
/// output.
bool is_left(size_t row) {
  return row / 2 % 4 == 0;
}

/// For samples, which know rows, columns and multiply-adds alone.
moe_gemm::MoeGemmShape sampled_shape(const W4Shape& s) {
  moe_gemm::MoeGemmShape of{};
  of.tokens = s.tokens;
  of.topk = s.topk;
  of.k = s.k;
  of.n = s.outputs();
  return of;
}

}  // namespace

W4Shape W4GateUp::shape_of(const Case& c) {
  W4Shape s = common_shape(c, "hidden", "inter");
  s.n *= 2;
  s.alpha = static_cast<float>(c.get_double("alpha", 1e-3, 1e3));
  s.beta = static_cast<float>(c.get_double("beta", -1e3, 1e3));
  const auto limit = static_cast<float>(c.get_double("limit", 0, 1e4));
  s.limit = limit > 0 ? limit : std::numeric_limits<float>::infinity();
  return s;
}

W4Shape W4Down::shape_of(const Case& c) {
  W4Shape s = common_shape(c, "inter", "hidden");
  s.down = 1;
  return s;
}

void W4GateUp::validate(const Case& c) {
  validate_routing(c, shape_of(c));
}
void W4Down::validate(const Case& c) {
  validate_routing(c, shape_of(c));
}

W4Moe::W4Moe(Device& device, const Case& c, const W4Shape& s, double most_products)
    : Problem(device),
      shape(s),
      x_(make_tensor("x", Role::activation, DType::bf16, {s.source_rows(), s.k})),
      codes_(make_tensor("codes", Role::weight, DType::u8, {s.experts, s.n, s.k / 2})),
      scales_(make_tensor("scales", Role::weight, DType::u8, {s.experts, s.n, s.groups()})),
      bias_(make_tensor("bias", Role::weight, DType::bf16, {s.experts, s.n})),
      routing_weights_(
          s.down ? &make_tensor("routing_weights", Role::activation, DType::f32, {s.rows()})
                 : nullptr),
      sorted_token_ids_(
          make_tensor("sorted_token_ids", Role::activation, DType::i32, {s.capacity()})),
      expert_ids_(make_tensor("expert_ids", Role::activation, DType::i32,
                              {(s.capacity() + s.block - 1) / s.block})),
      padded_rows_(make_tensor("num_tokens_post_padded", Role::activation, DType::i32, {1})),
      out_(make_tensor("out", Role::output, DType::bf16, {s.rows(), s.outputs()})),
      drawn_experts_(s.tokens, seed_of(c),
                     [s, routing = c.get("routing")](uint64_t seed, int64_t first) {
                       return routed_experts(routing, {s.tokens, s.experts, s.topk, first}, seed);
                     }) {
  const uint64_t seed = seed_of(c);
  fill_operands(seed);
  if (shape.data == W4Data::edges) make_edges(seed);
  redraw(0);
  sample_ = moe_gemm::moe_gemm_sample(sampled_shape(shape), experts_, seed,
                                      shape.down ? most_products : most_products / 2);
  if (c.truth) find_truth();
}

bool W4Moe::find_truth() {
  if (truth_.empty()) truth_ = truth(W4Slip::none, sample_);
  return true;
}

/// Sums of deviation 3 in gate_up, so that 3 % of them lie beyond the clamps, and of 1 in down.
/// Scales differ by up to 2^3 from their mean from group to group: one that is read a group late
/// shows.
void W4Moe::fill_operands(uint64_t seed) {
  constexpr int kSpread = 3;
  constexpr double kCodes = 68.5 / 8;          // mean square of all codes
  constexpr double kScales = 5461.0 / 64 / 7;  // of 2^-3 to 2^3
  const double unscaled = std::sqrt(shape.k * kCodes * kScales), size = shape.down ? 1 : 3;
  const double exponent = std::round(std::log2(size / unscaled));
  const auto middle = static_cast<float>(127 + exponent);
  const auto edge = static_cast<float>(std::sqrt(3.0) * size / (unscaled * std::exp2(exponent)));
  const auto uniform = [&](Tensor& to, Stream stream, float low, float high) {
    to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), low, high});
  };
  uniform(x_, kXStream, -edge, edge);
  codes_.fill_random({RandomFill::Kind::bits, seed, kCodeStream});
  scales_.fill_random(
      {RandomFill::Kind::bytes, seed, kScaleStream, DType::u8, middle - kSpread, middle + kSpread});
  const float bias = std::sqrt(3.0f);
  uniform(bias_, kBiasStream, -bias, bias);
  if (routing_weights_) uniform(*routing_weights_, kRoutingStream, 0.5f, 1.5f);
}

/// Every fourth pair of rows has scales of 2^-127 and is left with its bias, which is at, next to
/// or far beyond a clamp, or a zero. Elsewhere one scale in 8 is 2^-127 or 2^-126.
void W4Moe::make_edges(uint64_t seed) {
  const bool clamps = !shape.down && std::isfinite(shape.limit);
  auto scales = scales_.download<uint8_t>();
  const auto of_row = static_cast<size_t>(shape.groups());
  for (size_t i = 0; i < scales.size(); ++i) {
    const uint64_t random = random_bits(seed, kEdgeStream, i);
    if (is_left(i / of_row)) {
      scales[i] = 0;
    } else if (random % 8 == 0) {
      scales[i] = random >> 8 & 1;
    }
  }
  if (clamps) put_beyond(seed, scales);
  scales_.upload(scales);
  const uint16_t limit = float_to_bf16(clamps ? shape.limit : 1);
  const auto next = static_cast<uint16_t>(limit + 1);
  const uint16_t far = float_to_bf16((clamps ? 8 : 2) * bf16_to_float(limit));
  constexpr uint16_t kSign = 0x8000;
  const uint16_t corners[] = {
      limit, next, far, 0, uint16_t(limit | kSign), uint16_t(next | kSign), uint16_t(far | kSign),
      kSign};
  auto bias = bias_.download<uint16_t>();
  for (size_t row = 0; row < bias.size(); ++row) {
    if (is_left(row)) bias[row] = corners[random_bits(seed, kEdgeStream + 1, row) % 8];
  }
  bias_.upload(bias);
}

/// One group of every third row has a scale of 2^33 and one code that is not zero: the row is far
/// beyond its clamp. Two terms of that size could cancel, which no sum in fp32 gets right. Without
/// clamps such rows would carry the output.
void W4Moe::put_beyond(uint64_t seed, std::vector<uint8_t>& scales) {
  constexpr size_t kBytes = 16;  // of a group's codes
  auto codes = codes_.download<uint8_t>();
  const auto groups = static_cast<size_t>(shape.groups());
  for (size_t row = 0; row * groups < scales.size(); ++row) {
    const uint64_t random = random_bits(seed, kEdgeStream + 2, row);
    if (is_left(row) || random % 3 != 0) continue;
    const size_t group = row * groups + (random >> 8) % groups;
    scales[group] = 160;
    uint8_t* of_group = codes.data() + group * kBytes;
    std::fill_n(of_group, kBytes, uint8_t{0});
    of_group[(random >> 40) % kBytes] = random >> 60 & 1 ? 0x05 : 0xd0;  // 3 or -3
  }
  codes_.upload(codes);
}

W4Args W4Moe::args() {
  return {.x = x_.data<uint16_t>(),
          .codes = codes_.data<uint8_t>(),
          .scales = scales_.data<uint8_t>(),
          .bias = bias_.data<uint16_t>(),
          .routing_weights = routing_weights_ ? routing_weights_->data<float>() : nullptr,
          .sorted_token_ids = sorted_token_ids_.data<int32_t>(),
          .expert_ids = expert_ids_.data<int32_t>(),
          .padded_rows = padded_rows_.data<int32_t>(),
          .out = out_.data<uint16_t>(),
          .shape = shape};
}

bool W4Moe::redraw(uint64_t change) {
  experts_ = drawn_experts_.of(change, first_token());
  const auto aligned = moe_gemm::align_rows(experts_, shape.experts, shape.block);
  padded_ = aligned.padded_rows;
  sorted_token_ids_.upload(aligned.sorted_token_ids);
  expert_ids_.upload(aligned.expert_ids);
  padded_rows_.upload(std::vector<int32_t>{padded_});
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return experts_ != drawn_experts_.first();
}

Cost W4Moe::cost() const {
  // Weights of the experts that have rows, once each; ids of padded rows and of their blocks.
  const double weight_rows = 1.0 * skew_of(experts_, shape.experts).active_experts * shape.n;
  Cost cost;
  cost.flops = 2.0 * shape.rows() * shape.n * shape.k;
  cost.read_bytes = weight_rows * (shape.k / 2.0 + shape.groups() + 2) +
                    static_cast<double>(x_.bytes()) +
                    (routing_weights_ ? static_cast<double>(routing_weights_->bytes()) : 0) +
                    4.0 * (padded_ + 1.0 * padded_ / shape.block);
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> W4Moe::facts() const {
  return moe_gemm::routing_facts(experts_, shape.experts, padded_);
}

}  // namespace moegate::w4_moe
