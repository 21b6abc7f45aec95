// SPDX-License-Identifier: Apache-2.0
#include "kernels/topk_sort/topk_sort.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernel/check.h"
#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"

namespace moegate::topk_sort {
namespace {

const std::vector<std::string> kScorings = {"softmax", "topk_softmax", "noaux_tc"};
const std::vector<std::string> kLogitData = {"normal", "ties", "few_finite", "nan"};

// Streams of the counter-based generator, one per use.
enum Stream : uint64_t { kBiasStream = 101, kHoleStream = 102 };

const Op<TopkSort> op({
    .help = "routing: scores -> top-k -> tokens sorted by expert, padded to blocks; zeroed output "
            "buffer",
    .params = {{"tokens", "", "T, 1 to 2^24 - 1"},
               {"experts", "", "E, 2 to 1024"},
               {"topk", "", "k, 1 to 16"},
               {"hidden", "", "H, row length of moe_buf [T, H] bf16"},
               {"unit", "32", "U, rows per block that every expert's tokens are padded to"},
               {"scoring", "softmax", "softmax, topk_softmax or noaux_tc"},
               {"renorm", "1", "1: weights divided by the sum of the chosen"},
               {"groups", "1", "noaux_tc: expert groups"},
               {"topk-groups", "1", "noaux_tc: groups kept"},
               {"scale", "1", "factor on every weight"},
               {"dtype", "fp32", "of the logits: fp32, fp16 or bf16"},
               {"logits", "normal", "normal, ties, few_finite or nan"},
               {"routing", "uniform", kRoutingHelp}},
    .yardstick = "chain",
    .before = {.cuda = {{"chain3"}}},
});

float through(DType dtype, float value) {
  if (dtype == DType::f16) return f16_to_float(float_to_f16(value));
  if (dtype == DType::bf16) return bf16_to_float(float_to_bf16(value));
  return value;
}

/// Four levels whose sigmoids and sums of two sigmoids are all well apart, so that every tie is
/// exact.
float tie_level(double score) {
  return static_cast<float>(std::clamp(std::floor(score) + 1, 0.0, 3.0));
}

/// Rows with fewer than k finite logits (every second row), or NaN among the logits: one in eight,
/// and the whole last row.
void punch_holes(const TopkSortShape& shape, uint64_t seed, std::vector<float>& logits) {
  for (int t = 0; t < shape.tokens; ++t) {
    float* row = logits.data() + static_cast<std::ptrdiff_t>(t) * shape.experts;
    for (int e = 0; e < shape.experts; ++e) {
      const auto index = static_cast<uint64_t>(t) * static_cast<uint64_t>(shape.experts) +
                         static_cast<uint64_t>(e);
      const uint64_t bits = random_bits(seed, kHoleStream, index);
      if (shape.data == LogitData::nan && (bits % 8 == 0 || t == shape.tokens - 1)) {
        row[e] = std::numeric_limits<float>::quiet_NaN();
      }
      // A stride keeps the finite ones away from expert 0, which faulty code falls back to.
      const bool survives = e % 3 == 2 && e / 3 < t % shape.topk;
      if (shape.data == LogitData::few_finite && t % 2 == 0 && !survives) {
        row[e] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

std::vector<float> make_bias(const TopkSortShape& shape, uint64_t seed) {
  std::vector<float> bias(static_cast<size_t>(shape.experts));
  for (size_t e = 0; e < bias.size(); ++e) {
    const double u = random_uniform(seed, kBiasStream, e);
    bias[e] = shape.data == LogitData::ties ? 0.25f : static_cast<float>(0.2 * u - 0.1);
  }
  return bias;
}

std::vector<float> make_logits(const TopkSortShape& shape, const std::string& routing,
                               uint64_t seed, const std::vector<float>& bias) {
  const auto scores = routing_scores(routing, {shape.tokens, shape.experts, shape.topk}, seed);
  std::vector<float> logits(scores.size());
  const auto width = static_cast<size_t>(shape.experts);
  for (size_t start = 0; start < scores.size(); start += width) {
    // A row whose selection is too close to call is stretched a little and looked at again; that
    // leaves the order of its scores, and so its routing, as it was.
    for (int attempt = 0;; ++attempt) {
      const double stretch = 1 + attempt / 64.0;
      for (size_t e = 0; e < width; ++e) {
        const double score = scores[start + e] * stretch;
        logits[start + e] =
            through(shape.dtype,
                    shape.data == LogitData::ties ? tie_level(score) : static_cast<float>(score));
      }
      if (!selection_is_ambiguous(shape, logits.data() + start, bias.data())) break;
      if (attempt == 64) {
        throw Error(Exit::internal, "topk_sort: found no unambiguous logits for a row");
      }
    }
  }
  if (shape.data == LogitData::few_finite || shape.data == LogitData::nan) {
    punch_holes(shape, seed, logits);
  }
  return logits;
}

void upload_logits(Tensor& tensor, const std::vector<float>& logits) {
  if (tensor.dtype() == DType::f32) return tensor.upload(logits);
  std::vector<uint16_t> narrow(logits.size());
  std::transform(logits.begin(), logits.end(), narrow.begin(),
                 tensor.dtype() == DType::f16 ? float_to_f16 : float_to_bf16);
  tensor.upload(narrow);
}

template <class T>
std::vector<T> head(const Tensor& tensor, size_t n) {
  auto values = tensor.download<T>();
  values.resize(n);
  return values;
}

}  // namespace

TopkSortShape TopkSortShape::of(const Case& c) {
  TopkSortShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, (1 << 24) - 1));
  s.experts = static_cast<int>(c.get_int("experts", 2, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  s.hidden = static_cast<int>(c.get_int("hidden", 1, 1 << 20));
  s.unit = static_cast<int>(c.get_int("unit", 1, 1024));
  s.scoring = static_cast<Scoring>(c.get_choice("scoring", kScorings));
  s.renorm = c.get_int("renorm", 0, 1) != 0;
  s.groups = static_cast<int>(c.get_int("groups", 1, s.experts / 2));
  s.topk_groups = static_cast<int>(c.get_int("topk-groups", 1, s.groups));
  s.scale = static_cast<float>(c.get_double("scale", 1e-6, 1e6));
  s.dtype = parse_float_dtype(c.get("dtype"));
  s.data = static_cast<LogitData>(c.get_choice("logits", kLogitData));
  const bool grouped = s.scoring == Scoring::noaux_tc;
  if (!grouped && s.groups != 1) {
    usage_error("{}: groups = {} goes with scoring = noaux_tc only", c.where(), s.groups);
  }
  if (s.experts % s.groups != 0) {
    usage_error("{}: groups = {} does not divide experts = {}", c.where(), s.groups, s.experts);
  }
  if (s.topk > s.topk_groups * (s.experts / s.groups)) {
    usage_error("{}: topk = {} exceeds the {} experts of topk-groups = {} groups", c.where(),
                s.topk, s.topk_groups * (s.experts / s.groups), s.topk_groups);
  }
  if (grouped && s.data != LogitData::normal && s.data != LogitData::ties) {
    usage_error("{}: logits = {} is defined for softmax and topk_softmax only, not noaux_tc",
                c.where(), c.get("logits"));
  }
  return s;
}

void TopkSort::validate(const Case& c) {
  const auto shape = TopkSortShape::of(c);
  const std::string& routing = c.get("routing");
  // What is recorded may be wrong in any row; what is drawn is refused for the first one or
  // for none.
  const int looked_at = routing.find("replay") == std::string::npos ? 1 : 64;
  routing_scores(routing, {std::min(shape.tokens, looked_at), shape.experts, shape.topk}, 0);
}

TopkSort::TopkSort(Device& device, const Case& c)
    : Problem(device),
      shape(TopkSortShape::of(c)),
      logits_(make_tensor("logits", Role::activation, shape.dtype, {shape.tokens, shape.experts})),
      bias_(shape.scoring == Scoring::noaux_tc
                ? &make_tensor("bias", Role::weight, DType::f32, {shape.experts})
                : nullptr),
      sorted_ids_(make_tensor("sorted_ids", Role::output, DType::i32, {shape.capacity()})),
      sorted_weights_(make_tensor("sorted_weights", Role::output, DType::f32, {shape.capacity()})),
      sorted_expert_ids_(
          make_tensor("sorted_expert_ids", Role::output, DType::i32, {shape.blocks()})),
      num_valid_(make_tensor("num_valid", Role::output, DType::i32, {2})),
      moe_buf_(make_tensor("moe_buf", Role::output, DType::bf16, {shape.tokens, shape.hidden})),
      biases_(make_bias(shape, seed_of(c))),
      drawn_logits_(shape.tokens, seed_of(c), [this, routing = c.get("routing")](uint64_t seed) {
        return make_logits(shape, routing, seed, biases_);
      }) {
  if (bias_) bias_->upload(biases_);
  redraw(0);
  find_truth();
}

bool TopkSort::redraw(uint64_t change) {
  logits_now_ = drawn_logits_.of(change);
  upload_logits(logits_, logits_now_);
  truths_.turn(change, truth_);
  return logits_now_ != drawn_logits_.first();
}

bool TopkSort::find_truth() {
  if (truth_.empty()) truth_ = topk_sort_truth(shape, logits_now_, biases_);
  return true;
}

TopkSortArgs TopkSort::args() {
  return {.logits = logits_.data(),
          .bias = bias_ ? bias_->data<float>() : nullptr,
          .sorted_ids = sorted_ids_.data<int32_t>(),
          .sorted_weights = sorted_weights_.data<float>(),
          .sorted_expert_ids = sorted_expert_ids_.data<int32_t>(),
          .num_valid = num_valid_.data<int32_t>(),
          .moe_buf = moe_buf_.data(),
          .moe_buf_bytes = static_cast<int64_t>(moe_buf_.bytes()),
          .shape = shape};
}

Checked TopkSort::check() const {
  const size_t rows = truth_.sorted_ids.size();
  const auto ids = head<int32_t>(sorted_ids_, rows);
  const auto weights = head<float>(sorted_weights_, rows);
  const auto experts = head<int32_t>(sorted_expert_ids_, truth_.sorted_expert_ids.size());
  const auto valid = num_valid_.download<int32_t>();
  std::vector<uint8_t> zeros(moe_buf_.bytes());
  device().download(zeros.data(), moe_buf_.data(), zeros.size());

  Checked checked;
  checked.accuracy = {compare_exact("num_valid", valid, truth_.num_valid),
                      compare_exact("sorted_ids", ids, truth_.sorted_ids),
                      compare_floats("sorted_weights", weights, truth_.sorted_weights, shape.unit,
                                     ceilings(kTolerance), kFp32),
                      compare_exact("sorted_expert_ids", experts, truth_.sorted_expert_ids),
                      compare_zero("moe_buf", zeros)};
  uint64_t hash = hash_bytes(valid.data(), valid.size() * sizeof(int32_t));
  hash = hash_bytes(ids.data(), ids.size() * sizeof(int32_t), hash);
  hash = hash_bytes(weights.data(), weights.size() * sizeof(float), hash);
  hash = hash_bytes(experts.data(), experts.size() * sizeof(int32_t), hash);
  // A buffer that is all zero adds nothing that tells two launches apart.
  if (!checked.accuracy.back().ok) hash = hash_bytes(zeros.data(), zeros.size(), hash);
  checked.hash = hash;
  return checked;
}

Corruptions TopkSort::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_experts(); }),
          .token_dropped = Corruption([this] { drop_token(shape.tokens - 1); }),
          .scales_transposed = Corruption::not_applicable("logits carry no scale factors")};
}

/// The first block of the first expert changes places with the first block of the last one.
void TopkSort::swap_experts() {
  const auto& experts = truth_.sorted_expert_ids;
  const auto last = std::find(experts.begin(), experts.end(), experts.back());
  const auto start = (last - experts.begin()) * shape.unit;
  if (start == 0) return;  // one expert has all tokens
  const auto swap_blocks = [&](auto values, Tensor& tensor) {
    std::swap_ranges(values.begin(), values.begin() + shape.unit, values.begin() + start);
    tensor.upload(values);
  };
  swap_blocks(sorted_ids_.download<int32_t>(), sorted_ids_);
  swap_blocks(sorted_weights_.download<float>(), sorted_weights_);
}

/// Its rows become padding.
void TopkSort::drop_token(int32_t token) {
  auto ids = sorted_ids_.download<int32_t>();
  auto weights = sorted_weights_.download<float>();
  for (size_t row = 0; row < truth_.sorted_ids.size(); ++row) {
    if ((ids[row] & 0xffffff) != token) continue;
    ids[row] = shape.topk << 24 | shape.tokens;
    weights[row] = 0;
  }
  sorted_ids_.upload(ids);
  sorted_weights_.upload(weights);
}

Cost TopkSort::cost() const {
  // Every input read once, every output written once. Padded rows carry an id and a weight.
  const auto rows = static_cast<double>(truth_.sorted_ids.size());
  const double logits = static_cast<double>(shape.tokens) * shape.experts;
  Cost cost;
  cost.flops = logits * (shape.topk + 3);
  cost.read_bytes = static_cast<double>(logits_.bytes()) + (bias_ ? 4.0 * shape.experts : 0);
  cost.write_bytes = 8 * rows + 4 * rows / shape.unit + 8 + static_cast<double>(moe_buf_.bytes());
  return cost;
}

std::vector<Fact> TopkSort::facts() const {
  const Skew skew = skew_of(truth_.topk_ids, shape.experts);
  return {{"active_experts", static_cast<double>(skew.active_experts)},
          {"max_over_mean", skew.max_over_mean},
          {"padded_rows", static_cast<double>(truth_.sorted_ids.size())}};
}

}  // namespace moegate::topk_sort
