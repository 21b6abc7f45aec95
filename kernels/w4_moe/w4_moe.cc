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

// Streams of the counter-based generator; those of weights.cc lie between.
enum Stream : uint64_t { kXStream = 401, kRoutingStream = 405 };

std::vector<Param> params(std::vector<Param> own) {
  own.push_back({"values", "random",
                 "random, or edges: the least scales (and 2^33 before clamps), biases at clamps"});
  return layer_params(std::move(own));
}

std::vector<std::string> usual(const Case& c, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"expert_once"};
  if (has_few_rows(c)) return {"stream_rows", "stream_mma", "tile_mma"};
  return {"prefill_rs", "tile_mma", "stream_mma"};
}

const Tuning kTuning = {.shape = {"experts", "topk", "hidden", "inter", "weights", "group", "bias"},
                        .usual = usual};

const Op<W4GateUp> gate_up({
    .help = "grouped GEMM x * W1 + bias per routed row, MXFP4 or int4 weights, SwiGLU",
    .params = params(swiglu_params()),
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
  if (s.k % s.group != 0) {
    usage_error("{}: {} = {} is not a multiple of {}, the group that shares a scale", c.where(), k,
                s.k, s.group);
  }
  return s;
}

void validate_data(const Case& c, const W4Shape& s) {
  c.get_choice("values", kData);
  const std::string& routing = c.get("routing");
  // As for moe_gemm: what is recorded may be wrong in any row.
  const int looked_at = routing.find("replay") == std::string::npos ? 1 : 64;
  routing_scores(routing, {std::min(s.tokens, looked_at), s.experts, s.topk}, 0);
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

bool has_bias(const Case& c) {
  return c.get_int("bias", 0, 1) != 0;
}

bool has_few_rows(const Case& c) {
  const int64_t rows = c.get_int("tokens", 1, 1 << 16) * c.get_int("topk", 1, 1 << 16);
  return rows <= 6 * c.get_int("experts", 1, 1 << 16);
}

std::vector<Param> layer_params(std::vector<Param> own) {
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
      {"routing", "uniform", kRoutingHelp}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<Param> swiglu_params() {
  return {{"alpha", "1.702", "factor inside the sigmoid"},
          {"beta", "1", "added to the up half"},
          {"limit", "7", "clamp of gate (above) and up (both sides); 0: none"}};
}

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
  validate_data(c, shape_of(c));
}
void W4Down::validate(const Case& c) {
  validate_data(c, shape_of(c));
}

W4Moe::W4Moe(Device& device, const Case& c, const W4Shape& s, double most_products)
    : Problem(device),
      shape(s),
      x_(make_tensor("x", Role::activation, DType::bf16, {s.source_rows(), s.k})),
      weights_(s, has_bias(c),
               [this](const std::string& name, DType dtype, std::vector<int64_t> dims) -> Tensor& {
                 return make_tensor(name, Role::weight, dtype, std::move(dims));
               }),
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
  if (c.get("values") == "edges") weights_.make_edges(device, seed);
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
  const float edge = weights_.draw(seed, shape.down ? 1 : 3);
  const auto fill = [&](Tensor& to, Stream stream, float low, float high) {
    to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), low, high});
  };
  fill(x_, kXStream, -edge, edge);
  if (routing_weights_) fill(*routing_weights_, kRoutingStream, 0.5f, 1.5f);
}

W4Args W4Moe::args(W4Scaling scaling) {
  scaling_ = scaling;
  W4Args args{.x = x_.data<uint16_t>(),
              .routing_weights = routing_weights_ ? routing_weights_->data<float>() : nullptr,
              .sorted_token_ids = sorted_token_ids_.data<int32_t>(),
              .expert_ids = expert_ids_.data<int32_t>(),
              .padded_rows = padded_rows_.data<int32_t>(),
              .out = out_.data<uint16_t>(),
              .shape = shape};
  weights_.put_into(args);
  return args;
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
  Cost cost;
  cost.flops = 2.0 * shape.rows() * shape.n * shape.k;
  cost.read_bytes = weights_.bytes_of(skew_of(experts_, shape.experts).active_experts) +
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
