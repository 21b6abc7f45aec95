// SPDX-License-Identifier: Apache-2.0
#include "kernels/fused_moe/fused_moe.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/routing.h"
#include "kernels/check/sampled_rows.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::fused_moe {
namespace {

const std::vector<std::string> kInputs = {"fp8", "bf16"};
const std::vector<std::string> kBlocks = {"0", "16", "32", "64", "128"};

// Streams of the counter-based generator, one per tensor.
enum Stream : uint64_t {
  kXStream = 351,
  kXScaleStream,
  kW1Stream,
  kW1ScaleStream,
  kW2Stream,
  kW2ScaleStream,
  kRoutingStream
};

void resolve(Case& c, const DeviceFacts& device) {
  moe_gemm::tiles::resolve_tuned_block(
      c, device, [](const Case& one) { return FusedMoeShape::of(one).gate_up(); });
}

/// On H200s, the gallery's pages of whole layers: one launch at decode, from 32 rows per expert on
/// the chain in sorted order. With fewer, as R1 has at 512 tokens, it is 1 to 2 % slower than
/// chain_tuned; below 512 tokens no layer was measured that has as many.
std::vector<std::string> usual(const Case& c, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"depth_first"};
  const FusedMoeShape s = FusedMoeShape::of(c);
  constexpr int kDecodeRows = 8;
  constexpr int kPrefillTokens = 512, kPrefillRows = 32;
  if (s.tokens >= kPrefillTokens && s.rows() >= kPrefillRows * s.experts) {
    return {"chain_sorted", "chain_tuned", "chain_gather"};
  }
  if (s.tokens * s.topk > kDecodeRows || FusedMoe::input_of(c) == DType::bf16) {
    return {"chain_tuned", "chain_gather"};
  }
  return {"one_launch", "chain_tuned", "chain_gather"};
}

const Op<FusedMoe> op({
    .help = "a whole fp8 block-scaled MoE layer: align, gate-up, silu and quantisation, down, sum",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"experts", "", "E, 1 to 1024"},
               {"topk", "", "k, 1 to 16"},
               {"hidden", "", "H, a multiple of 128"},
               {"inter", "", "I, the layer's inner width (of one rank), a multiple of 128"},
               {"block", "0",
                "BM of both products: 16, 32, 64, 128; 0: by T, as vLLM's default; tuned: as "
                "gate-up's tile configuration (suites/tiles); shipped: as a variant of "
                "--module chooses"},
               {"input", kInputs[0], "of x: fp8, or bf16, which the layer first quantises per 128"},
               {"routing", "uniform", kRoutingHelp},
               rank_param()},
    .yardstick = "chain",
    .before = {.cuda = {{"chain_gather"}}},
    .parts = {"moe_align", "moe_gate_up", "silu_mul_quant", "moe_sum"},
    .resolve = resolve,
    .tuning = {.shape = {"experts", "topk", "hidden", "inter"},
               .unusual = {"input"},
               .usual = usual,
               .without = {"chain_fused_sum", "chain_sorted_sum"}},  // rows added by bf16 atomics
});

int multiple_of_group(const Case& c, const std::string& name) {
  const auto value = static_cast<int>(c.get_int(name, 1, 1 << 16));
  if (value % kMoeGroup != 0) {
    usage_error("{}: {} = {} is not a multiple of {}, the group of fp8 scale factors", c.where(),
                name, value, kMoeGroup);
  }
  return value;
}

/// Multiply-adds of a routed row.
double products(const FusedMoeShape& s) {
  return 3.0 * s.inter * s.hidden;
}

}  // namespace

FusedMoeShape FusedMoeShape::of(const Case& c) {
  FusedMoeShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  const ExpertRank rank = ExpertRank::of(c);
  s.experts = rank.local();
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, rank.experts)));
  s.hidden = multiple_of_group(c, "hidden");
  s.inter = multiple_of_group(c, "inter");
  s.block = std::stoi(kBlocks[c.get_choice("block", kBlocks)]);
  if (s.block == 0) s.block = moe_gemm::default_block(DType::e4m3, s.tokens);
  return s;
}

DType FusedMoe::input_of(const Case& c) {
  return c.get_choice("input", kInputs) == 0 ? DType::e4m3 : DType::bf16;
}

void FusedMoe::validate(const Case& c) {
  input_of(c);
  const auto s = FusedMoeShape::of(moe_gemm::tiles::without_tuned_block(c));
  const int experts = ExpertRank::of(c).experts;
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), experts, s.topk}, 0);
}

FusedMoe::FusedMoe(Device& device, const Case& c, double most_products)
    : Problem(device),
      shape(FusedMoeShape::of(c)),
      input(input_of(c)),
      rank_(ExpertRank::of(c)),
      x_(make_tensor("x", Role::activation, input, {shape.tokens, shape.hidden})),
      x_scales_(input == DType::bf16 ? nullptr
                                     : &make_tensor("x_scales", Role::activation, DType::f32,
                                                    {shape.tokens, shape.hidden / kMoeGroup})),
      topk_ids_(make_tensor("topk_ids", Role::activation, DType::i32, {shape.tokens, shape.topk})),
      topk_weights_(
          make_tensor("topk_weights", Role::activation, DType::f32, {shape.tokens, shape.topk})),
      w1_(make_tensor("w1", Role::weight, DType::e4m3,
                      {shape.experts, 2 * shape.inter, shape.hidden})),
      w1_scales_(
          make_tensor("w1_scales", Role::weight, DType::f32,
                      {shape.experts, 2 * shape.inter / kMoeGroup, shape.hidden / kMoeGroup})),
      w2_(make_tensor("w2", Role::weight, DType::e4m3, {shape.experts, shape.hidden, shape.inter})),
      w2_scales_(make_tensor("w2_scales", Role::weight, DType::f32,
                             {shape.experts, shape.hidden / kMoeGroup, shape.inter / kMoeGroup})),
      out_(make_tensor("out", Role::output, DType::bf16, {shape.tokens, shape.hidden})),
      drawn_experts_(shape.tokens, seed_of(c),
                     [s = shape, all = rank_.experts, routing = c.get("routing")](uint64_t seed,
                                                                                  int64_t first) {
                       return routed_experts(routing, {s.tokens, all, s.topk, first}, seed);
                     }) {
  rank_.find(drawn_experts_.first());
  const uint64_t seed = seed_of(c);
  fill_operands(seed);
  redraw(0);
  const double each = products(shape) * shape.topk;  // at most
  const auto sample = std::max<int64_t>(2, static_cast<int64_t>(kSampleProducts / each));
  tokens_ = check::sampled_rows(shape.tokens,
                                each * shape.tokens <= most_products ? shape.tokens : sample, seed);
  if (c.truth) find_truth();
}

bool FusedMoe::redraw(uint64_t change) {
  experts_ = rank_.own(drawn_experts_.of(change, first_token()));
  topk_ids_.upload(experts_);
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return experts_ != rank_.own(drawn_experts_.first());
}

bool FusedMoe::find_truth() {
  if (truth_.empty()) truth_ = truth(Fault::none, tokens_);
  return true;
}

/// Outputs of unit size: activations and weights are sized as in MoeGemm, so that h has unit size,
/// too; silu(gate) * up of such is 0.6 on average, and routing weights make up for that and for the
/// sum of k rows. An expert's weights are those of its number in the layer.
void FusedMoe::fill_operands(uint64_t seed) {
  constexpr float kCodeSize = 129.3f;  // of RandomFill::Kind::e4m3_normal
  const auto first = [&](const Tensor& of) {
    return of.role() != Role::weight ? uint64_t{0}
                                     : static_cast<uint64_t>(of.size() / shape.experts) *
                                           static_cast<uint64_t>(rank_.first());
  };
  const auto codes = [&](Tensor& to, Stream stream) {
    to.fill_random({.kind = RandomFill::Kind::e4m3_normal,
                    .seed = seed,
                    .stream = stream,
                    .dtype = DType::e4m3,
                    .first = first(to) / 2});  // two codes per unit
  };
  const auto around = [&](Tensor& to, Stream stream, float middle, float spread) {
    to.fill_random({RandomFill::Kind::uniform, seed, stream, DType::f32, (1 - spread) * middle,
                    (1 + spread) * middle, first(to)});
  };
  if (x_scales_) {
    codes(x_, kXStream);
    around(*x_scales_, kXScaleStream, 1 / kCodeSize, 0.25f);
  } else {
    // No code then depends on how a kernel divides, so that the limits are those of input = fp8.
    const float edge = std::sqrt(3.0f);  // of a uniform distribution of variance 1
    x_.fill_random({RandomFill::Kind::uniform_odd, seed, kXStream, input, -edge, edge});
  }
  codes(w1_, kW1Stream);
  around(w1_scales_, kW1ScaleStream, 1 / (kCodeSize * std::sqrt(static_cast<float>(shape.hidden))),
         0.25f);
  codes(w2_, kW2Stream);
  around(w2_scales_, kW2ScaleStream, 1 / (kCodeSize * std::sqrt(static_cast<float>(shape.inter))),
         0.25f);
  around(topk_weights_, kRoutingStream, 1 / (0.6f * std::sqrt(static_cast<float>(shape.topk))),
         0.5f);
}

FusedMoeArgs FusedMoe::args() {
  return {.x = x_scales_ ? x_.data<uint8_t>() : nullptr,
          .x_scales = x_scales_ ? x_scales_->data<float>() : nullptr,
          .topk_ids = topk_ids_.data<int32_t>(),
          .topk_weights = topk_weights_.data<float>(),
          .w1 = w1_.data<uint8_t>(),
          .w1_scales = w1_scales_.data<float>(),
          .w2 = w2_.data<uint8_t>(),
          .w2_scales = w2_scales_.data<float>(),
          .out = out_.data<uint16_t>(),
          .shape = shape};
}

const uint16_t* FusedMoe::x_bf16() {
  return x_scales_ ? nullptr : x_.data<uint16_t>();
}

Tolerance FusedMoe::own_ceilings() const {
  Tolerance tolerance = kTolerance;
  const int rows = rank_.is_whole() ? shape.topk : 1;  // a token has one of a rank's at least
  tolerance.by_chance = kGroupAnew / std::sqrt(static_cast<double>(rows) * shape.inter);
  // Of a short row one such group, or one of unusual values, is a larger share; of few tokens, too.
  tolerance.row = std::max(tolerance.row, 2 * tolerance.by_chance);
  const auto has_rows = std::ranges::count_if(tokens_, [&](int64_t token) {
    const auto first = experts_.begin() + token * shape.topk;
    return std::any_of(first, first + shape.topk, [](int32_t expert) { return expert >= 0; });
  });
  const double tokens = std::sqrt(std::max(1.0, static_cast<double>(has_rows)));
  tolerance.rel_l2 = std::max(tolerance.rel_l2, 2 * tolerance.by_chance / tokens);
  return ceilings(tolerance);
}

Checked FusedMoe::check() const {
  return check::check_bf16_rows(out_, shape.hidden, tokens_, truth_, own_ceilings(),
                                check::token_name);
}

std::vector<TokenRows> FusedMoe::rows_of(int64_t place) const {
  return {{&out_, shape.hidden, {place}}};
}

std::vector<SampledOutput> FusedMoe::sampled_outputs() const {
  if (static_cast<int>(tokens_.size()) == shape.tokens) return {};
  return {{&out_, shape.tokens, shape.hidden, {}, own_ceilings()}};
}

std::vector<Accuracy> FusedMoe::check_rows(const std::vector<int64_t>& tokens) {
  const auto& expected = row_truth_.of(tokens, [&] { return truth(Fault::none, tokens); });
  return {check::compare_bf16_rows(device(), out_, shape.hidden, tokens, {}, expected,
                                   own_ceilings(), check::token_name)};
}

Corruptions FusedMoe::corruptions() {
  return {.experts_swapped = Corruption([this] { spoil(Fault::experts_swapped); }),
          .token_dropped = Corruption([this] { spoil(Fault::token_dropped); }),
          .scales_transposed = Corruption([this] { spoil(Fault::scales_transposed); })};
}

/// Makes the output what it were with the fault, where that changes it.
void FusedMoe::spoil(Fault fault) {
  check::spoil_bf16(out_, shape.hidden, tokens_, moe_gemm::all_below(shape.hidden), truth_,
                    truth(fault, tokens_));
}

Cost FusedMoe::cost() const {
  // The operands; what stands between the parts need not be memory. Weights of the experts that
  // have rows, once each; x of the tokens that have rows.
  const double active = skew_of(experts_, shape.experts).active_experts;
  const std::vector<int32_t> own = rows_of_rank(experts_);
  const auto rows = static_cast<double>(own.size());
  double sources = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    sources += i == 0 || own[i] / shape.topk != own[i - 1] / shape.topk;
  }
  const auto weight_bytes =
      static_cast<double>(w1_.bytes() + w1_scales_.bytes() + w2_.bytes() + w2_scales_.bytes());
  Cost cost;
  cost.flops = 2 * products(shape) * rows;
  const double x_bytes =
      static_cast<double>(x_.bytes() + (x_scales_ ? x_scales_->bytes() : 0)) / shape.tokens;
  cost.read_bytes = active / shape.experts * weight_bytes +
                    (sources * x_bytes + static_cast<double>(topk_ids_.bytes()) + 4 * rows);
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> FusedMoe::facts() const {
  return moe_gemm::routing_facts(
      experts_, shape.experts,
      moe_gemm::align_rows(experts_, shape.experts, shape.block).padded_rows);
}

}  // namespace moegate::fused_moe
