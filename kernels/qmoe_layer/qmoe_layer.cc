// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe_layer/qmoe_layer.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/check.h"
#include "harness/kernel/routing.h"
#include "kernels/check/sampled_rows.h"
#include "kernels/qmoe/qmoe_params.h"

namespace moegate::qmoe_layer {
namespace {

// fc1's weights are those of qmoe_fc1_swiglu.
constexpr qmoe::WeightStreams kFc1{.codes = 202, .scales = 203, .bias = 204, .edges = 205};
constexpr qmoe::WeightStreams kFc2{.codes = 212, .scales = 213, .bias = 214, .edges = 215};

std::vector<std::string> usual(const Case& /*c*/, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"expert_rows"};
  return {"stream", "single_fp32_acc"};
}

const Op<QmoeLayer> op({
    .help = "a whole int4 MoE layer at decode: top-k of the logits, FC1 with SwiGLU, FC2, weighted "
            "sum (ONNX Runtime QMoE)",
    .params = qmoe::fc1_params(),
    .yardstick = "chain",
    .before = qmoe::befores(),
    .parts = {"topk_sort", "qmoe_fc1_swiglu"},
    .tuning = qmoe::tuning(usual),
});

/// At the edges whole numbers, most of which several experts share: the lower one must win.
std::vector<uint16_t> drawn_logits(const QmoeLayerShape& shape, const std::string& routing,
                                   uint64_t seed, int64_t first) {
  auto scores =
      routing_scores(routing, {shape.tokens(), shape.experts(), shape.topk(), first}, seed);
  if (shape.fc1.data == qmoe::QmoeData::edges) {
    for (double& score : scores) score = std::floor(score);
  }
  return qmoe::narrowed(shape.dtype(), scores);
}

}  // namespace

QmoeLayerShape QmoeLayerShape::of(const Case& c) {
  return {qmoe::QmoeFc1::shape_of(c), qmoe::QmoeFc2::shape_of(c)};
}

topk_sort::TopkSortShape QmoeLayerShape::routing() const {
  topk_sort::TopkSortShape s{};
  s.tokens = tokens();
  s.experts = experts();
  s.topk = topk();
  s.unit = s.groups = s.topk_groups = 1;
  s.scoring = topk_sort::Scoring::topk_softmax;
  s.renorm = true;
  s.scale = 1;
  s.dtype = dtype();
  return s;
}

void QmoeLayer::validate(const Case& c) {
  const auto s = QmoeLayerShape::of(c);
  routing_scores(c.get("routing"), {std::min(s.tokens(), 64), s.experts(), s.topk()}, 0);
}

QmoeLayer::QmoeLayer(Device& device, const Case& c)
    : Problem(device),
      shape(QmoeLayerShape::of(c)),
      x_(make_tensor("x", Role::activation, shape.dtype(), {shape.tokens(), shape.hidden()})),
      logits_(make_tensor("logits", Role::activation, shape.dtype(),
                          {shape.tokens(), shape.experts()})),
      fc1_(weights_of("fc1", shape.fc1)),
      fc2_(weights_of("fc2", shape.fc2)),
      out_(make_tensor("out", Role::output, shape.dtype(), {shape.tokens(), shape.hidden()})),
      drawn_logits_(shape.tokens(), seed_of(c),
                    [s = shape, routing = c.get("routing")](uint64_t seed, int64_t first) {
                      return drawn_logits(s, routing, seed, first);
                    }),
      drawn_x_(shape.tokens(), seed_of(c), [s = shape](uint64_t seed, int64_t first) {
        return qmoe::drawn_x(s.fc1, seed, first);
      }) {
  fc1_.draw(seed_of(c), kFc1);
  fc2_.draw(seed_of(c), kFc2);
  redraw(0);
  if (c.truth) find_truth();
}

qmoe::ExpertWeights QmoeLayer::weights_of(const std::string& name, const qmoe::QmoeShape& s) {
  Tensor& codes =
      make_tensor(name + "_weights", Role::weight, DType::u8, {s.experts, s.n, s.k / 2});
  Tensor& scales =
      make_tensor(name + "_scales", Role::weight, s.dtype, {s.experts, s.n, s.groups()});
  if (!s.has_bias) return {s, codes, scales, nullptr};
  return {s, codes, scales, &make_tensor(name + "_bias", Role::weight, s.dtype, {s.experts, s.n})};
}

bool QmoeLayer::redraw(uint64_t change) {
  const auto logits = drawn_logits_.of(change, first_token());
  logits_.upload(logits);
  x_.upload(drawn_x_.of(change, first_token()));
  assignment_ = assigned(shape, qmoe::widened(shape.dtype(), logits));
  truths_.turn(change, truth_);
  return true;
}

bool QmoeLayer::find_truth() {
  if (truth_.empty()) truth_ = qmoe_layer_truth(shape, inputs(Fault::none));
  return true;
}

QmoeLayerArgs QmoeLayer::args() {
  QmoeLayerArgs args{};
  args.logits = logits_.data<uint16_t>();
  args.fc1.x = x_.data<uint16_t>();
  fc1_.put_into(args.fc1);
  args.fc1.shape = shape.fc1;
  fc2_.put_into(args.fc2);
  args.fc2.shape = shape.fc2;
  args.out = out_.data<uint16_t>();
  args.shape = shape;
  return args;
}

QmoeLayerInputs QmoeLayer::inputs(Fault fault) const {
  QmoeLayerInputs in;
  in.x = qmoe::widened(shape.dtype(), x_.download<uint16_t>());
  in.assignment = assignment_;
  auto& [experts, weights] = in.assignment;
  if (fault == Fault::token_dropped) weights[0] = 0;
  if (fault == Fault::experts_swapped) {
    // The first row changes experts with the first row, slot by slot, that has another one.
    const auto k = static_cast<size_t>(shape.topk());
    for (size_t i = 0; i < experts.size(); ++i) {
      const size_t tokens = experts.size() / k, other = i % tokens * k + i / tokens;
      if (experts[other] == experts[0]) continue;
      std::swap(experts[other], experts[0]);
      break;
    }
  }
  const bool transposed = fault == Fault::scales_transposed;
  for (const int32_t e : experts) {
    if (in.fc1.contains(e)) continue;
    in.fc1[e] = fc1_.of(device(), e, transposed);
    in.fc2[e] = fc2_.of(device(), e, transposed);
  }
  return in;
}

Tolerance QmoeLayer::own_ceilings() const {
  Tolerance tolerance = shape.dtype() == DType::f16 ? kTolerance16 : kToleranceBf16;
  tolerance.by_chance = kActivationAnew * float_type(shape.dtype()).unit() /
                        std::sqrt(static_cast<double>(shape.topk()) * shape.inter());
  if (shape.fc1.data == qmoe::QmoeData::edges) {
    tolerance.atol = kEdgeAnew * float_type(shape.dtype()).unit();
  }
  return ceilings(tolerance);
}

Checked QmoeLayer::check() const {
  const auto bits = out_.download<uint16_t>();
  return {{compare_floats("out", qmoe::widened(shape.dtype(), bits), truth_, shape.hidden(),
                          own_ceilings(), float_type(shape.dtype()), {.name = check::token_name})},
          hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

std::vector<TokenRows> QmoeLayer::rows_of(int64_t place) const {
  return {{&out_, shape.hidden(), {place}}};
}

Corruptions QmoeLayer::corruptions() {
  return {.experts_swapped = Corruption([this] { spoil(Fault::experts_swapped); }),
          .token_dropped = Corruption([this] { spoil(Fault::token_dropped); }),
          .scales_transposed = Corruption([this] { spoil(Fault::scales_transposed); })};
}

/// Makes the output what it were with the fault, where that changes it.
void QmoeLayer::spoil(Fault fault) {
  const auto wrong = qmoe_layer_truth(shape, inputs(fault));
  const auto bits = qmoe::narrowed(shape.dtype(), wrong);
  auto out = out_.download<uint16_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    if (wrong[i] != truth_[i]) out[i] = bits[i];
  }
  out_.upload(out);
}

Cost QmoeLayer::cost() const {
  // The operands; what stands between the parts need not be memory. Weights of the experts that
  // have rows, once each.
  const double active = skew_of(assignment_.experts, shape.experts()).active_experts;
  const double products = 3.0 * shape.rows() * shape.inter() * shape.hidden();
  Cost cost;
  cost.flops = 2 * products;
  cost.read_bytes =
      active * (fc1_.bytes() + fc2_.bytes()) + static_cast<double>(x_.bytes() + logits_.bytes());
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> QmoeLayer::facts() const {
  const Skew skew = skew_of(assignment_.experts, shape.experts());
  return {{"active_experts", static_cast<double>(skew.active_experts)},
          {"max_over_mean", skew.max_over_mean}};
}

}  // namespace moegate::qmoe_layer
