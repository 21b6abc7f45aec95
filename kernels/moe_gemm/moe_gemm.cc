// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/moe_gemm.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/routing.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm {
namespace {

const std::vector<std::string> kDtypes = {"fp8", "bf16", "int8"};
constexpr DType kDtypeOf[] = {DType::e4m3, DType::bf16, DType::i8};
const std::vector<std::string> kScalings = {"block", "channel", "tensor"};  // as ScaledBy

// Streams of the counter-based generator, one per tensor.
enum Stream : uint64_t {
  kXStream = 301,
  kXScaleStream,
  kWeightStream,
  kWeightScaleStream,
  kRoutingStream,
  kBiasStream
};

std::vector<Param> params(std::vector<Param> more = {}) {
  std::vector<Param> all = {
      {"tokens", "", "T, 1 to 65536"},
      {"experts", "", "E, 1 to 1024"},
      {"topk", "", "k, 1 to 16"},
      {"hidden", "", "H"},
      {"inter", "", "I, the layer's inner width (of one rank)"},
      {"block", "0",
       "BM, rows that an expert's are padded to; 0: by T, as vLLM's defaults; tuned: as the "
       "shape's tile configuration (suites/tiles); shipped: as a variant of "
       "--module chooses"},
      {"dtype", "fp8", "of x and weights: fp8 or int8 (with scale factors), or bf16"},
      {"scaling", "block",
       "scale factors per 128 (block, fp8 alone), per row of x and column (channel), or one of x "
       "and one per expert, in gate_up of gates and of ups (tensor)"},
      {"bias", "0", "1: a bias per column, in bf16, after scale factors (not of blocks)"},
      {"routing", "uniform", kRoutingHelp},
      rank_param()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

template <class P>
void resolve(Case& c, const DeviceFacts& device) {
  tiles::resolve_tuned_block(c, device, P::shape_of);
}

const Op<MoeGateUp> gate_up({
    .help = "grouped GEMM x * W1 per routed row, fp8, int8 or bf16 (Triton fused MoE)",
    .params = params(),
    .yardstick = "gather",
    .before = {.cuda = {{"gather"}}},
    .resolve = resolve<MoeGateUp>,
});

const Op<MoeDown> down({
    .help = "grouped GEMM activations * W2 per routed row, times its routing weight",
    .params = params({{"weighted", "1", "0: routing weights are multiplied elsewhere"}}),
    .yardstick = "gather",
    .before = {.cuda = {{"gather"}}},
    .resolve = resolve<MoeDown>,
});

/// Whether one factor of all rows of x is known before them.
bool one_of_all(const MoeGemmShape& s) {
  return s.scaled_by == ScaledBy::tensor;
}
Role x_scales_role(const MoeGemmShape& s) {
  return one_of_all(s) ? Role::weight : Role::activation;
}
std::vector<int64_t> x_scales_shape(const MoeGemmShape& s) {
  if (one_of_all(s)) return {1};
  return {s.source_rows(), s.x_factors()};
}
std::vector<int64_t> weight_scales_shape(const MoeGemmShape& s) {
  if (s.scaled_once()) return {s.experts, s.weight_factors()};
  return {s.experts, s.n_groups(), s.k_groups()};
}

void require_fitting_scales(const MoeGemmShape& s, const Case& c) {
  constexpr int kCopied = 16;  // bytes, by every kernel
  if (!s.scaled() && s.scaled_by != ScaledBy::block) {
    usage_error("{}: scaling = {} is for dtype = fp8 or int8; leave it out", c.where(),
                c.get("scaling"));
  }
  if (s.dtype == DType::i8 && s.scaled_by == ScaledBy::block) {
    usage_error(
        "{}: scaling = block is for dtype = fp8; int8 needs scaling = channel (a factor per row "
        "of x and per column) or tensor",
        c.where());
  }
  if (s.biased && s.scaled() && !s.scaled_once()) {
    usage_error("{}: bias = 1 is not for fp8 with scaling = block; use channel or tensor, or bf16",
                c.where());
  }
  if (s.scaled_once() && s.k % kCopied != 0) {
    usage_error("{}: K = {} is not a multiple of {}", c.where(), s.k, kCopied);
  }
  if (s.scaled() && !s.scaled_once() && s.k % kMoeGroup != 0) {
    usage_error("{}: K = {} is not a multiple of {}, the group of fp8 scale factors", c.where(),
                s.k, kMoeGroup);
  }
}

MoeGemmShape shape_for(const Case& c, bool down) {
  MoeGemmShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  const ExpertRank rank = ExpertRank::of(c);
  s.experts = rank.local();
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, rank.experts)));
  s.dtype = kDtypeOf[c.get_choice("dtype", kDtypes)];
  const auto hidden = static_cast<int>(c.get_int("hidden", 1, 1 << 16));
  const auto inter = static_cast<int>(c.get_int("inter", 1, 1 << 16));
  s.k = down ? inter : hidden;
  s.n = down ? hidden : 2 * inter;
  s.down = down;
  s.unweighted = down && c.get_int("weighted", 0, 1) == 0;
  s.biased = c.get_int("bias", 0, 1) != 0;
  s.block = static_cast<int>(c.get_int("block", 0, 256));
  if (s.block == 0) s.block = default_block(s.dtype, s.tokens);
  s.scaled_by = static_cast<ScaledBy>(c.get_choice("scaling", kScalings));
  require_fitting_scales(s, c);
  return s;
}

template <class P>
void validate_case(const Case& c) {
  const MoeGemmShape s = P::shape_of(tiles::without_tuned_block(c));
  const std::string& routing = c.get("routing");
  // What is recorded may be wrong in any row; what is drawn is refused for the first one or
  // for none.
  const int looked_at = routing.find("replay") == std::string::npos ? 1 : 64;
  routing_scores(routing, {std::min(s.tokens, looked_at), ExpertRank::of(c).experts, s.topk}, 0);
}

}  // namespace

int default_block(DType dtype, int tokens) {
  if (dtype == DType::e4m3) return tokens <= 64 ? 16 : 64;
  if (tokens <= 32) return 16;
  if (tokens <= 96) return 32;
  return tokens <= 512 ? 64 : 128;
}

MoeGemmShape MoeGateUp::shape_of(const Case& c) {
  return shape_for(c, false);
}
void MoeGateUp::validate(const Case& c) {
  validate_case<MoeGateUp>(c);
}
MoeGemmShape MoeDown::shape_of(const Case& c) {
  return shape_for(c, true);
}
void MoeDown::validate(const Case& c) {
  validate_case<MoeDown>(c);
}

MoeGemm::MoeGemm(Device& device, const Case& c, const MoeGemmShape& s, double most_products)
    : Problem(device),
      shape(s),
      rank_(ExpertRank::of(c)),
      seed_(seed_of(c)),
      most_products_(most_products),
      x_(make_tensor("x", Role::activation, s.dtype, {s.source_rows(), s.k})),
      x_scales_(s.scaled()
                    ? &make_tensor("x_scales", x_scales_role(s), DType::f32, x_scales_shape(s))
                    : nullptr),
      weights_(make_tensor("weights", Role::weight, s.dtype, {s.experts, s.n, s.k})),
      weight_scales_(s.scaled() ? &make_tensor("weight_scales", Role::weight, DType::f32,
                                               weight_scales_shape(s))
                                : nullptr),
      bias_(s.biased ? &make_tensor("bias", Role::weight, DType::bf16, {s.experts, s.n}) : nullptr),
      routing_weights_(s.down && !s.unweighted ? &make_tensor("routing_weights", Role::activation,
                                                              DType::f32, {s.rows()})
                                               : nullptr),
      sorted_token_ids_(
          make_tensor("sorted_token_ids", Role::activation, DType::i32, {s.capacity()})),
      expert_ids_(make_tensor("expert_ids", Role::activation, DType::i32,
                              {(s.capacity() + s.block - 1) / s.block})),
      padded_rows_(make_tensor("num_tokens_post_padded", Role::activation, DType::i32, {1})),
      out_(make_tensor("out", Role::output, DType::bf16, {s.rows(), s.n})),
      drawn_experts_(
          s.tokens, seed_of(c),
          [s, all = rank_.experts, routing = c.get("routing")](uint64_t seed, int64_t first) {
            return routed_experts(routing, {s.tokens, all, s.topk, first}, seed);
          }) {
  rank_.find(drawn_experts_.first());
  fill_operands();
  redraw(0);
  sample_ = moe_gemm_sample(shape, experts_, seed_, most_products_);
  if (c.truth) find_truth();
}

bool MoeGemm::find_truth() {
  if (truth_.empty()) truth_ = truth(Slip::none, sample_);
  return true;
}

/// Activations of unit size and weights of variance 1/K keep outputs of unit size, too; scale
/// factors vary by a quarter as the largest of 128 normal values does. An expert's weights are
/// those of its number in the layer. A bias has the size of the sums, so that its absence shows.
void MoeGemm::fill_operands() {
  const auto first_of_rank = [&](const Tensor& of) {
    return static_cast<uint64_t>(of.size() / shape.experts) * static_cast<uint64_t>(rank_.first());
  };
  const auto uniform = [&](Tensor& to, Stream stream, float low, float high) {
    const uint64_t first = to.role() == Role::weight ? first_of_rank(to) : 0;
    to.fill_random({RandomFill::Kind::uniform, seed_, stream, to.dtype(), low, high, first});
  };
  const float weight_size = 1 / std::sqrt(static_cast<float>(shape.k));
  const float edge = std::sqrt(3.0f);  // of a uniform distribution of variance 1
  if (shape.scaled()) {
    const bool fp8 = shape.dtype == DType::e4m3;
    const auto kind = fp8 ? RandomFill::Kind::e4m3_normal : RandomFill::Kind::int8_normal;
    const float code_size = fp8 ? 129.3f : 36.9f;  // of that kind
    x_.fill_random({kind, seed_, kXStream, shape.dtype});
    // Of channels and tensors by a factor of 4, so that another expert's or row's show.
    const float low = shape.scaled_once() ? 0.4f : 0.75f, high = 2 - low;
    uniform(*x_scales_, kXScaleStream, low / code_size, high / code_size);
    weights_.fill_random({.kind = kind,
                          .seed = seed_,
                          .stream = kWeightStream,
                          .dtype = shape.dtype,
                          .first = first_of_rank(weights_) / 2});  // two codes per unit
    uniform(*weight_scales_, kWeightScaleStream, low * weight_size / code_size,
            high * weight_size / code_size);
  } else {
    uniform(x_, kXStream, -edge, edge);
    uniform(weights_, kWeightStream, -edge * weight_size, edge * weight_size);
  }
  if (bias_) uniform(*bias_, kBiasStream, -edge, edge);
  if (routing_weights_) uniform(*routing_weights_, kRoutingStream, 0.5f, 1.5f);
}

BiasedArgs MoeGemm::args(RowOrder x, RowOrder out) {
  const bool reordered = x != RowOrder::tokens;
  if (reordered && !in(x).x) {
    throw Error(Exit::internal, "activations are not sorted; prepare() has to");
  }
  if (out != RowOrder::tokens && !in(out).out) {
    throw Error(Exit::internal, "there is no sorted output; prepare() has to make it");
  }
  out_order_ = out;
  const Tensor* x_scales = reordered && in(x).x_scales ? in(x).x_scales : x_scales_;
  return {{.x = reordered ? in(x).x->data() : x_.data(),
           .x_scales = x_scales ? x_scales->data<float>() : nullptr,
           .weights = weights_.data(),
           .weight_scales = weight_scales_ ? weight_scales_->data<float>() : nullptr,
           .routing_weights = routing_weights_ ? routing_weights_->data<float>() : nullptr,
           .sorted_token_ids = sorted_token_ids_.data<int32_t>(),
           .expert_ids = expert_ids_.data<int32_t>(),
           .padded_rows = padded_rows_.data<int32_t>(),
           .out = this->out().data<uint16_t>(),
           .shape = shape},
          bias_ ? bias_->data<uint16_t>() : nullptr};
}

void MoeGemm::sort_activations() {
  reorder_activations(RowOrder::sorted);
}

void MoeGemm::sort_output() {
  reorder_output(RowOrder::sorted);
}

void MoeGemm::reorder_activations(RowOrder order) {
  if (in(order).x) return;
  in(order).x = make_reordered(x_, order);
  if (x_scales_ && x_scales_->role() == Role::activation)
    in(order).x_scales = make_reordered(*x_scales_, order);
  copy_reordered(order);
}

void MoeGemm::reorder_output(RowOrder order) {
  if (!in(order).out) in(order).out = make_reordered(out_, order);
}

Tensor* MoeGemm::make_reordered(const Tensor& like, RowOrder order) {
  const bool masked = order == RowOrder::masked;
  std::vector<int64_t> extents = {shape.capacity(), like.shape().back()};
  // The first activations': the tensor's place and extents stay when they are replaced.
  if (masked) {
    extents.front() =
        masked_capacity(rank_.own(drawn_experts_.first()), shape.experts, shape.tokens);
    extents.insert(extents.begin(), shape.experts);
  }
  return &make_tensor((masked ? "masked " : "sorted ") + like.name(), like.role(), like.dtype(),
                      extents);
}

/// Where there are such activations: to their places, poison in the rows of padding.
void MoeGemm::copy_reordered(RowOrder order) {
  const auto copy = [&](const Tensor& from, Tensor& to) {
    const auto row_bytes = static_cast<std::ptrdiff_t>(from.bytes()) / shape.source_rows();
    std::vector<uint8_t> rows(from.bytes()), reordered(to.bytes(), Tensor::kPoisonByte);
    device().download(rows.data(), from.data(), rows.size());
    const auto at = places(order);
    for (const int32_t r : rows_) {
      std::copy_n(rows.begin() + shape.source(r) * row_bytes, row_bytes,
                  reordered.begin() + at[static_cast<size_t>(r)] * row_bytes);
    }
    device().upload(to.data(), reordered.data(), reordered.size());
  };
  if (in(order).x) copy(x_, *in(order).x);
  if (in(order).x_scales) copy(*x_scales_, *in(order).x_scales);
}

std::vector<int32_t> MoeGemm::places(RowOrder order) const {
  if (order == RowOrder::tokens) return {};
  if (order == RowOrder::sorted) return sorted_places(aligned_, shape.rows());
  const auto rows = static_cast<int>(reordered_.at(1).x->shape()[1]);
  return masked_places(experts_, shape.experts, rows);
}

void MoeGemm::lay_out(const std::string& rows) {
  const std::vector<std::string> names = {"", "listed", "sorted", "masked"};
  if (std::ranges::count(names, rows) == 0) return Problem::lay_out(rows);
  out_order_ = rows == "sorted"   ? RowOrder::sorted
               : rows == "masked" ? RowOrder::masked
                                  : RowOrder::tokens;
  if (out_order_ != RowOrder::tokens) {
    reorder_activations(out_order_);
    reorder_output(out_order_);
  }
  if (rows != "" && !expert_rows_) {
    expert_rows_ = &make_tensor("expert_rows", Role::activation, DType::i32, {shape.experts});
    rows_by_expert_ = &make_tensor("rows_by_expert", Role::activation, DType::i32, {shape.rows()});
    topk_ids_ = &make_tensor("topk_ids", Role::activation, DType::i32, {shape.tokens, shape.topk});
    upload_lists();
  }
}

void MoeGemm::upload_lists() {
  const ListedRows listed = list_rows(experts_, shape.experts);
  expert_rows_->upload(listed.expert_rows);
  rows_by_expert_->upload(listed.rows);
  topk_ids_->upload(experts_);
}

bool MoeGemm::redraw(uint64_t change) {
  experts_ = rank_.own(drawn_experts_.of(change, first_token()));
  rows_ = rows_of_rank(experts_);
  // Which rows are the rank's, the activations say; rows of all ranks are the same ones always.
  if (!rank_.is_whole()) sample_ = moe_gemm_sample(shape, experts_, seed_, most_products_);
  aligned_ = align_rows(experts_, shape.experts, shape.block);
  sorted_token_ids_.upload(aligned_.sorted_token_ids);
  expert_ids_.upload(aligned_.expert_ids);
  padded_rows_.upload(std::vector<int32_t>{aligned_.padded_rows});
  if (expert_rows_) upload_lists();
  for (const RowOrder order : {RowOrder::sorted, RowOrder::masked}) copy_reordered(order);
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return experts_ != rank_.own(drawn_experts_.first());
}

Cost MoeGemm::cost() const {
  // Weights of the experts that have rows, once each; ids of padded rows and of their blocks; rows
  // of x that some row reads.
  const double experts = skew_of(experts_, shape.experts).active_experts;
  const double expert_bytes =
      static_cast<double>(shape.expert_elements()) * static_cast<double>(size_of(shape.dtype)) +
      (shape.scaled() ? 4.0 * static_cast<double>(shape.weight_factors()) : 0) +
      (bias_ ? 2.0 * shape.n : 0);
  const double padded = aligned_.padded_rows;
  const auto rows = static_cast<double>(rows_.size());
  double sources = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    sources += i == 0 || shape.source(rows_[i]) != shape.source(rows_[i - 1]);
  }
  Cost cost;
  cost.flops = 2.0 * rows * shape.n * shape.k;
  cost.read_bytes = experts * expert_bytes + sources * shape.row_bytes() +
                    (x_scales_ ? 4 * (one_of_all(shape) ? 1 : sources * shape.x_factors()) : 0) +
                    (routing_weights_ ? 4 * rows : 0) + 4 * (padded + padded / shape.block);
  cost.write_bytes = 2.0 * rows * shape.n;
  return cost;
}

std::vector<Fact> MoeGemm::facts() const {
  return routing_facts(experts_, shape.experts, aligned_.padded_rows);
}

std::vector<Fact> routing_facts(std::span<const int32_t> row_expert, int experts,
                                double padded_rows) {
  const Skew skew = skew_of(row_expert, experts);
  const auto rows = static_cast<double>(row_expert.size()) -
                    static_cast<double>(std::ranges::count(row_expert, -1));
  return {{"active_experts", static_cast<double>(skew.active_experts)},
          {"max_over_mean", skew.max_over_mean},
          {"rows", rows},
          {"padded_rows", padded_rows},
          {"tile_efficiency", rows / std::max(padded_rows, 1.0)}};  // a rank may have no row
}

}  // namespace moegate::moe_gemm
