// SPDX-License-Identifier: Apache-2.0
#include "kernels/w4_moe/w4_moe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"
#include "kernels/check/sampled_rows.h"

namespace moegate::w4_moe {
namespace {

const std::vector<std::string> kData = {"random", "edges"};
const std::vector<std::string> kWeights = {"mxfp4", "int4"};
const std::vector<std::string> kGroups = {"32", "64", "128"};
constexpr int kLeastGroup = 32;

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
      {"weights", "mxfp4", "mxfp4, or int4 with scales in bf16"},
      {"group", "32", "elements of K that share a scale: 32; of int4 64 or 128, too"},
      {"bias", "1", "0: none (int4)"},
      {"values", "random",
       "random, or edges: the least scales (and 2^33 before clamps), biases at clamps"},
      {"routing", "uniform", kRoutingHelp}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

/// By the rows that an expert has on average: reports/gallery/nvidia-h100-int4.md.
std::vector<std::string> usual(const Case& c, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"expert_once"};
  constexpr int64_t kFewRows = 6;
  const int64_t rows = c.get_int("tokens", 1, 1 << 16) * c.get_int("topk", 1, 1 << 16);
  if (rows <= kFewRows * c.get_int("experts", 1, 1 << 16)) {
    return {"stream_rows", "stream_mma", "tile_mma"};
  }
  return {"prefill_rs", "tile_mma", "stream_mma"};
}

const Tuning kTuning = {.shape = {"experts", "topk", "hidden", "inter", "weights", "group", "bias"},
                        .usual = usual};

const Op<W4GateUp> gate_up({
    .help = "grouped GEMM x * W1 + bias per routed row, MXFP4 or int4 weights, SwiGLU",
    .params = params({{"alpha", "1.702", "factor inside the sigmoid"},
                      {"beta", "1", "added to the up half"},
                      {"limit", "7", "clamp of gate (above) and up (both sides); 0: none"}}),
    .yardstick = "gather",
    .before = {.cuda = {{"tile_mma"}}},
    .tuning = kTuning,
});

const Op<W4Down> down({
    .help = "grouped GEMM activations * W2 + bias, MXFP4 or int4 weights, times the routing weight",
    .params = params({}),
    .yardstick = "gather",
    .before = {.cuda = {{"tile_mma"}}},
    .tuning = kTuning,
});

bool has_bias(const Case& c) {
  return c.get_int("bias", 0, 1) != 0;
}

/// The least block that holds what an expert's rows are on average, and some more.
int default_block(const W4Shape& s) {
  const double mean = 1.0 * s.rows() / s.experts;
  constexpr std::pair<double, int> kUpTo[] = {{4, 8}, {12, 16}, {28, 32}, {64, 64}};
  for (const auto& [rows, block] : kUpTo) {
    if (mean <= rows) return block;
  }
  return 128;
}

void set_weights(const Case& c, W4Shape& s) {
  s.weights = static_cast<W4Weights>(c.get_choice("weights", kWeights));
  s.group = std::stoi(kGroups[c.get_choice("group", kGroups)]);
  if (s.weights == W4Weights::int4) return;
  if (s.group != kLeastGroup) {
    usage_error("{}: weights = mxfp4 have groups of {}, not of {}; use weights = int4", c.where(),
                kLeastGroup, s.group);
  }
  if (!has_bias(c)) usage_error("{}: bias = 0 is for weights = int4", c.where());
}

W4Shape common_shape(const Case& c, const char* k, const char* n) {
  W4Shape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  s.experts = static_cast<int>(c.get_int("experts", 1, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  set_weights(c, s);
  s.k = static_cast<int>(c.get_int(k, kLeastGroup, 1 << 16));
  s.n = static_cast<int>(c.get_int(n, 1, 1 << 15));
  s.block = static_cast<int>(c.get_int("block", 0, 256));
  if (s.block == 0) s.block = default_block(s);
  c.get_choice("values", kData);
  if (s.k % s.group != 0) {
    usage_error("{}: {} = {} is not a multiple of {}, the group that shares a scale", c.where(), k,
                s.k, s.group);
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

/// A scale of 2^(byte - 127); byte 0: the least, of int4 a zero.
uint16_t power_of_two(const W4Shape& s, uint64_t byte) {
  return static_cast<uint16_t>(s.weights == W4Weights::int4 ? byte << 7 : byte);
}

void fill_uniform(Tensor& to, uint64_t seed, Stream stream, float low, float high) {
  to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), low, high});
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
      scales_(make_tensor("scales", Role::weight,
                          s.weights == W4Weights::int4 ? DType::bf16 : DType::u8,
                          {s.experts, s.n, s.groups()})),
      bias_(has_bias(c) ? &make_tensor("bias", Role::weight, DType::bf16, {s.experts, s.n})
                        : nullptr),
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
  if (c.get("values") == "edges") make_edges(seed);
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
void W4Moe::fill_operands(uint64_t seed) {
  const float size = shape.down ? 1 : 3;
  codes_.fill_random({RandomFill::Kind::bits, seed, kCodeStream});
  if (shape.weights == W4Weights::int4) {
    fill_int4(seed, size);
  } else {
    fill_mxfp4(seed, size);
  }
  const float bias = std::sqrt(3.0f);
  if (bias_) fill_uniform(*bias_, seed, kBiasStream, -bias, bias);
  if (routing_weights_) fill_uniform(*routing_weights_, seed, kRoutingStream, 0.5f, 1.5f);
}

/// x and scales, for sums of this deviation. Scales differ by up to 2^3 from their mean from group
/// to group: one that is read a group late shows.
void W4Moe::fill_mxfp4(uint64_t seed, float size) {
  constexpr int kSpread = 3;
  constexpr double kCodes = 68.5 / 8;          // mean square of all codes
  constexpr double kScales = 5461.0 / 64 / 7;  // of 2^-3 to 2^3
  const double unscaled = std::sqrt(shape.k * kCodes * kScales);
  const double exponent = std::round(std::log2(size / unscaled));
  const auto middle = static_cast<float>(127 + exponent);
  const auto edge = static_cast<float>(std::sqrt(3.0) * size / (unscaled * std::exp2(exponent)));
  fill_uniform(x_, seed, kXStream, -edge, edge);
  scales_.fill_random(
      {RandomFill::Kind::bytes, seed, kScaleStream, DType::u8, middle - kSpread, middle + kSpread});
}

/// Likewise, with x of deviation 1 and scales from a quarter of their mean to seven.
void W4Moe::fill_int4(uint64_t seed, float size) {
  constexpr double kCodes = 21.5;           // mean square of q - 8
  constexpr double kScales = 1 + 0.75 / 4;  // of 0.25 to 1.75
  const auto mean = static_cast<float>(size / std::sqrt(shape.k * kCodes * kScales));
  const float edge = std::sqrt(3.0f);
  fill_uniform(x_, seed, kXStream, -edge, edge);
  fill_uniform(scales_, seed, kScaleStream, 0.25f * mean, 1.75f * mean);
}

/// Rows of `width` scales, as they are stored.
std::vector<uint16_t> W4Moe::scales_of(int64_t width, const std::vector<int64_t>& rows) const {
  if (shape.weights == W4Weights::int4) {
    return check::rows_of<uint16_t>(device(), scales_, width, rows);
  }
  const auto bytes = check::rows_of<uint8_t>(device(), scales_, width, rows);
  return {bytes.begin(), bytes.end()};
}

void W4Moe::upload_scales(const std::vector<uint16_t>& scales) {
  if (shape.weights == W4Weights::int4) return scales_.upload(scales);
  scales_.upload(std::vector<uint8_t>(scales.begin(), scales.end()));
}

/// Every fourth pair of rows has scales of 2^-127 and is left with its bias, which is at, next to
/// or far beyond a clamp, or a zero. Elsewhere one scale in 8 is 2^-127 or 2^-126. In int4 a zero
/// stands for 2^-127.
void W4Moe::make_edges(uint64_t seed) {
  const bool clamps = !shape.down && std::isfinite(shape.limit);
  auto scales = scales_of(scales_.size(), {0});
  const auto of_row = static_cast<size_t>(shape.groups());
  for (size_t i = 0; i < scales.size(); ++i) {
    const uint64_t random = random_bits(seed, kEdgeStream, i);
    if (is_left(i / of_row)) {
      scales[i] = 0;
    } else if (random % 8 == 0) {
      scales[i] = power_of_two(shape, random >> 8 & 1);
    }
  }
  if (clamps) put_beyond(seed, scales);
  upload_scales(scales);
  if (!bias_) return;
  const uint16_t limit = float_to_bf16(clamps ? shape.limit : 1);
  const auto next = static_cast<uint16_t>(limit + 1);
  const uint16_t far = float_to_bf16((clamps ? 8 : 2) * bf16_to_float(limit));
  constexpr uint16_t kSign = 0x8000;
  const uint16_t corners[] = {
      limit, next, far, 0, uint16_t(limit | kSign), uint16_t(next | kSign), uint16_t(far | kSign),
      kSign};
  auto bias = bias_->download<uint16_t>();
  for (size_t row = 0; row < bias.size(); ++row) {
    if (is_left(row)) bias[row] = corners[random_bits(seed, kEdgeStream + 1, row) % 8];
  }
  bias_->upload(bias);
}

/// One group of every third row has a scale of 2^33 and one code that is not zero: the row is far
/// beyond its clamp. Two terms of that size could cancel, which no sum in fp32 gets right. Without
/// clamps such rows would carry the output.
void W4Moe::put_beyond(uint64_t seed, std::vector<uint16_t>& scales) {
  const bool int4 = shape.weights == W4Weights::int4;
  const auto bytes = static_cast<size_t>(shape.group) / 2;  // of a group's codes
  const uint8_t none = int4 ? 0x88 : 0, three = int4 ? 0x8b : 0x05, minus = int4 ? 0x58 : 0xd0;
  auto codes = codes_.download<uint8_t>();
  const auto groups = static_cast<size_t>(shape.groups());
  for (size_t row = 0; row * groups < scales.size(); ++row) {
    const uint64_t random = random_bits(seed, kEdgeStream + 2, row);
    if (is_left(row) || random % 3 != 0) continue;
    const size_t group = row * groups + (random >> 8) % groups;
    scales[group] = power_of_two(shape, 160);
    uint8_t* of_group = codes.data() + group * bytes;
    std::fill_n(of_group, bytes, none);
    of_group[(random >> 40) % bytes] = random >> 60 & 1 ? three : minus;
  }
  codes_.upload(codes);
}

W4Args W4Moe::args(W4Scaling scaling) {
  scaling_ = scaling;
  return {.x = x_.data<uint16_t>(),
          .codes = codes_.data<uint8_t>(),
          .scales = scales_.data(),
          .bias = bias_ ? bias_->data<uint16_t>() : nullptr,
          .routing_weights = routing_weights_ ? routing_weights_->data<float>() : nullptr,
          .sorted_token_ids = sorted_token_ids_.data<int32_t>(),
          .expert_ids = expert_ids_.data<int32_t>(),
          .padded_rows = padded_rows_.data<int32_t>(),
          .out = out_.data<uint16_t>(),
          .shape = shape};
}

void W4Moe::lay_out(const std::string& rows) {
  if (rows != "" && rows != "listed") return Problem::lay_out(rows);
  scaling_ = W4Scaling::exact;
  if (rows == "" || expert_rows_) return;
  expert_rows_ = &make_tensor("expert_rows", Role::activation, DType::i32, {shape.experts});
  rows_by_expert_ = &make_tensor("rows_by_expert", Role::activation, DType::i32, {shape.rows()});
  upload_lists();
}

void W4Moe::upload_lists() {
  const auto listed = moe_gemm::list_rows(experts_, shape.experts);
  expert_rows_->upload(listed.expert_rows);
  rows_by_expert_->upload(listed.rows);
}

bool W4Moe::redraw(uint64_t change) {
  experts_ = drawn_experts_.of(change, first_token());
  const auto aligned = moe_gemm::align_rows(experts_, shape.experts, shape.block);
  padded_ = aligned.padded_rows;
  sorted_token_ids_.upload(aligned.sorted_token_ids);
  expert_ids_.upload(aligned.expert_ids);
  padded_rows_.upload(std::vector<int32_t>{padded_});
  if (expert_rows_) upload_lists();
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return experts_ != drawn_experts_.first();
}

Cost W4Moe::cost() const {
  // Weights of the experts that have rows, once each; ids of padded rows and of their blocks.
  const double weight_rows = 1.0 * skew_of(experts_, shape.experts).active_experts * shape.n;
  const double scale_bytes = shape.groups() * (shape.weights == W4Weights::int4 ? 2.0 : 1.0);
  Cost cost;
  cost.flops = 2.0 * shape.rows() * shape.n * shape.k;
  cost.read_bytes = weight_rows * (shape.k / 2.0 + scale_bytes + (bias_ ? 2 : 0)) +
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
