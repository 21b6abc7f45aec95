// SPDX-License-Identifier: Apache-2.0
#include "kernels/w4_layer/w4_layer.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"
#include "harness/kernel/workspace.h"
#include "kernels/check/sampled_rows.h"
#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_layer {
namespace {

// Streams of the counter-based generator; weights.cc has its own.
enum Stream : uint64_t { kXStream = 451, kRoutingStream };
constexpr uint64_t kDownSeed = 0x646f776e;  // the weights of both products differ

std::vector<std::string> usual(const Case& c, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"expert_once"};
  if (w4_moe::has_few_rows(c)) return {"chain_stream", "chain_rs", "chain_tile"};
  return {"chain_rs", "chain_tile"};
}

const Op<W4Layer> op({
    .help = "a whole MoE layer with MXFP4 or int4 weights: align, gate-up with SwiGLU, down, sum",
    .params = w4_moe::layer_params(w4_moe::swiglu_params()),
    .yardstick = "gather",
    .before = {.cuda = {{"chain_tile"}}},
    .parts = {"moe_align", "w4_gate_up", "w4_down", "moe_sum"},
    .tuning = {.shape = {"experts", "topk", "hidden", "inter", "weights", "group", "bias"},
               .usual = usual},
});

/// Multiply-adds of a token.
double products(const W4LayerShape& s) {
  return 3.0 * s.topk() * s.inter() * s.hidden();
}

/// From null it only counts.
Steps steps_at(const W4LayerShape& shape, void* memory) {
  WorkspaceCut take(memory);
  const W4Shape& product = shape.gate_up;
  Steps s{};
  s.align.shape = {product.tokens, product.experts, product.topk, product.block,
                   moe_align::IdData::valid};
  take(s.align.sorted_token_ids, s.align.shape.capacity());
  take(s.align.expert_ids, s.align.shape.blocks());
  take(s.align.num_tokens_post_padded, 1);
  take(s.next, product.experts);
  take(s.gate_up.out, int64_t{shape.rows()} * shape.inter());
  take(s.down.out, int64_t{shape.rows()} * shape.hidden());
  take(s.end, 0);
  s.gate_up.shape = shape.gate_up;
  s.down.shape = shape.down;
  s.down.x = s.gate_up.out;
  for (W4Args* args : {&s.gate_up, &s.down}) {
    args->sorted_token_ids = s.align.sorted_token_ids;
    args->expert_ids = s.align.expert_ids;
    args->padded_rows = s.align.num_tokens_post_padded;
  }
  s.sum.y = s.down.out;
  s.sum.shape = {product.tokens, product.topk, shape.hidden(), 1};
  return s;
}

}  // namespace

W4LayerShape W4LayerShape::of(const Case& c) {
  return {w4_moe::W4GateUp::shape_of(c), w4_moe::W4Down::shape_of(c)};
}

void W4Layer::validate(const Case& c) {
  const W4Shape s = W4LayerShape::of(c).gate_up;
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), s.experts, s.topk}, 0);
}

W4Layer::W4Layer(Device& device, const Case& c, double most_products)
    : Problem(device),
      shape(W4LayerShape::of(c)),
      x_(make_tensor("x", Role::activation, DType::bf16, {shape.tokens(), shape.hidden()})),
      topk_ids_(
          make_tensor("topk_ids", Role::activation, DType::i32, {shape.tokens(), shape.topk()})),
      topk_weights_(make_tensor("topk_weights", Role::activation, DType::f32,
                                {shape.tokens(), shape.topk()})),
      w1_(shape.gate_up, w4_moe::has_bias(c), make_weights(), "w1_"),
      w2_(shape.down, w4_moe::has_bias(c), make_weights(), "w2_"),
      out_(make_tensor("out", Role::output, DType::bf16, {shape.tokens(), shape.hidden()})),
      drawn_experts_(shape.tokens(), seed_of(c),
                     [s = shape.gate_up, routing = c.get("routing")](uint64_t seed, int64_t first) {
                       return routed_experts(routing, {s.tokens, s.experts, s.topk, first}, seed);
                     }) {
  const uint64_t seed = seed_of(c);
  fill_operands(seed);
  redraw(0);
  const double each = products(shape);
  const auto sample = std::max<int64_t>(2, static_cast<int64_t>(kSampleProducts / each));
  tokens_ = check::sampled_rows(
      shape.tokens(), each * shape.tokens() <= most_products ? shape.tokens() : sample, seed);
  if (c.truth) find_truth();
}

w4_moe::WeightTensors::Make W4Layer::make_weights() {
  return [this](const std::string& name, DType dtype, std::vector<int64_t> dims) -> Tensor& {
    return make_tensor(name, Role::weight, dtype, std::move(dims));
  };
}

bool W4Layer::redraw(uint64_t change) {
  experts_ = drawn_experts_.of(change, first_token());
  topk_ids_.upload(experts_);
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return experts_ != drawn_experts_.first();
}

/// Sums of deviation 3 in gate-up, so that 3 % of them lie beyond the clamps. Activations of these
/// are 6 on average. Outputs have unit size.
void W4Layer::fill_operands(uint64_t seed) {
  constexpr float kActivation = 6;
  const auto fill = [&](Tensor& to, Stream stream, float low, float high) {
    to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), low, high});
  };
  const float edge = w1_.draw(seed, 3);
  fill(x_, kXStream, -edge, edge);
  w2_.draw(seed ^ kDownSeed, 1 / kActivation);
  const float mean = 1 / std::sqrt(static_cast<float>(shape.topk()));
  fill(topk_weights_, kRoutingStream, 0.5f * mean, 1.5f * mean);
}

size_t W4Layer::workspace_bytes(const W4LayerShape& shape) {
  return reinterpret_cast<uintptr_t>(steps_at(shape, nullptr).end);
}

Steps W4Layer::steps(W4Scaling scaling) {
  scaling_ = scaling;
  Steps s = steps_at(shape, workspace());
  s.align.topk_ids = topk_ids_.data<int32_t>();
  s.gate_up.x = x_.data<uint16_t>();
  w1_.put_into(s.gate_up);
  w2_.put_into(s.down);
  s.down.routing_weights = topk_weights_.data<float>();
  s.sum.out = out_.data<uint16_t>();
  return s;
}

Cost W4Layer::cost() const {
  // The operands; what stands between the parts need not be memory.
  const double active = skew_of(experts_, shape.gate_up.experts).active_experts;
  Cost cost;
  cost.flops = 2 * products(shape) * shape.tokens();
  cost.read_bytes = w1_.bytes_of(active) + w2_.bytes_of(active) +
                    static_cast<double>(x_.bytes() + topk_ids_.bytes() + topk_weights_.bytes());
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> W4Layer::facts() const {
  const W4Shape& s = shape.gate_up;
  return moe_gemm::routing_facts(experts_, s.experts,
                                 moe_gemm::align_rows(experts_, s.experts, s.block).padded_rows);
}

}  // namespace moegate::w4_layer
