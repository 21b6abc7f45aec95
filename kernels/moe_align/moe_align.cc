// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_align/moe_align.h"

#include <algorithm>
#include <limits>

#include "harness/kernel/check.h"
#include "harness/kernel/random_fill.h"

namespace moegate::moe_align {
namespace {

const std::vector<std::string> kIdData = {"valid", "some_skipped"};

enum Stream : uint64_t { kSkipStream = 301 };  // of the counter-based generator

const Op<MoeAlign> op({
    .help = "rows grouped by expert, each group padded to whole blocks (moe_align_block_size)",
    .params = {{"tokens", "", "T, 1 to 2^20"},
               {"experts", "", "E, 1 to 1024"},
               {"topk", "", "k, 1 to 64"},
               {"block", "", "BM, rows per block, 1 to 1024"},
               {"ids", "valid", "valid, or some_skipped: one in eight is -1, E or beyond"},
               {"routing", "uniform", kRoutingHelp},
               rank_param()},
    .yardstick = "counting_sort",
    .before = {.cuda = {{"count_scan_scatter"}}},
});

/// Never the first row, so that something is left to group.
void skip_some(int experts, uint64_t seed, std::vector<int32_t>& ids) {
  const int32_t foreign[] = {-1, experts, experts + 1, std::numeric_limits<int32_t>::max()};
  for (size_t row = 1; row < ids.size(); ++row) {
    const uint64_t bits = random_bits(seed, kSkipStream, row);
    if (bits % 8 == 0) ids[row] = foreign[bits / 8 % std::size(foreign)];
  }
}

std::vector<int32_t> head(const Tensor& tensor, size_t n) {
  auto values = tensor.download<int32_t>();
  values.resize(n);
  return values;
}

}  // namespace

MoeAlignShape MoeAlignShape::of(const Case& c) {
  MoeAlignShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 20));
  const ExpertRank rank = ExpertRank::of(c);
  s.experts = rank.local();
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(64, rank.experts)));
  s.block = static_cast<int>(c.get_int("block", 1, 1024));
  s.data = static_cast<IdData>(c.get_choice("ids", kIdData));
  return s;
}

void MoeAlign::validate(const Case& c) {
  const auto s = MoeAlignShape::of(c);
  const int experts = ExpertRank::of(c).experts;
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), experts, s.topk}, 0);
}

MoeAlign::MoeAlign(Device& device, const Case& c)
    : Problem(device),
      shape(MoeAlignShape::of(c)),
      rank_(ExpertRank::of(c)),
      topk_ids_(make_tensor("topk_ids", Role::activation, DType::i32, {shape.tokens, shape.topk})),
      sorted_token_ids_(
          make_tensor("sorted_token_ids", Role::output, DType::i32, {shape.capacity()})),
      expert_ids_(make_tensor("expert_ids", Role::output, DType::i32, {shape.blocks()})),
      num_tokens_post_padded_(make_tensor("num_tokens_post_padded", Role::output, DType::i32, {1})),
      drawn_ids_(shape.tokens, seed_of(c),
                 [s = shape, all = rank_.experts, routing = c.get("routing")](uint64_t seed) {
                   auto ids = routed_experts(routing, {s.tokens, all, s.topk}, seed);
                   if (s.data == IdData::some_skipped) skip_some(all, seed, ids);
                   return ids;
                 }) {
  rank_.find(drawn_ids_.first());
  redraw(0);
  skew_ = skew_of(ids_now_, shape.experts);
  find_truth();
}

bool MoeAlign::redraw(uint64_t change) {
  ids_now_ = rank_.own(drawn_ids_.of(change));
  topk_ids_.upload(ids_now_);
  truths_.turn(change, truth_);
  return ids_now_ != rank_.own(drawn_ids_.first());
}

bool MoeAlign::find_truth() {
  if (truth_.empty()) truth_ = moe_align_truth(shape, ids_now_);
  return true;
}

MoeAlignArgs MoeAlign::args() {
  return {.topk_ids = topk_ids_.data<int32_t>(),
          .sorted_token_ids = sorted_token_ids_.data<int32_t>(),
          .expert_ids = expert_ids_.data<int32_t>(),
          .num_tokens_post_padded = num_tokens_post_padded_.data<int32_t>(),
          .shape = shape};
}

std::vector<int32_t> MoeAlign::sorted_within_experts(std::vector<int32_t> rows) const {
  const auto& experts = truth_.expert_ids;
  for (auto begin = experts.begin(); begin != experts.end();) {
    const auto end = std::upper_bound(begin, experts.end(), *begin);
    std::sort(rows.begin() + (begin - experts.begin()) * shape.block,
              rows.begin() + (end - experts.begin()) * shape.block);
    begin = end;
  }
  return rows;
}

Checked MoeAlign::check() const {
  const auto padded = num_tokens_post_padded_.download<int32_t>();
  const auto rows = sorted_within_experts(head(sorted_token_ids_, truth_.sorted_token_ids.size()));
  const auto experts = head(expert_ids_, truth_.expert_ids.size());
  uint64_t hash = hash_bytes(padded.data(), padded.size() * sizeof(int32_t));
  hash = hash_bytes(rows.data(), rows.size() * sizeof(int32_t), hash);
  hash = hash_bytes(experts.data(), experts.size() * sizeof(int32_t), hash);
  return {{compare_exact("num_tokens_post_padded", padded, truth_.num_tokens_post_padded),
           compare_exact("sorted_token_ids", rows, truth_.sorted_token_ids),
           compare_exact("expert_ids", experts, truth_.expert_ids)},
          hash};
}

Corruptions MoeAlign::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_experts(); }),
          .token_dropped = Corruption([this] { drop_first_token(); }),
          .scales_transposed = Corruption::not_applicable("ids carry no scale factors")};
}

/// The first block changes places with the last, which belongs to another expert unless one has
/// all rows.
void MoeAlign::swap_experts() {
  if (truth_.expert_ids.empty()) return;  // no row is of this rank
  if (truth_.expert_ids.front() == truth_.expert_ids.back()) return;
  auto rows = sorted_token_ids_.download<int32_t>();
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(truth_.sorted_token_ids.size());
  std::swap_ranges(rows.begin(), rows.begin() + shape.block, end - shape.block);
  sorted_token_ids_.upload(rows);
}

/// The rows of the first token that has any become padding.
void MoeAlign::drop_first_token() {
  auto rows = sorted_token_ids_.download<int32_t>();
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(truth_.sorted_token_ids.size());
  if (end == rows.begin()) return;
  const int first = *std::min_element(rows.begin(), end) / shape.topk;
  std::replace_if(
      rows.begin(), end, [&](int32_t row) { return row / shape.topk == first; }, shape.rows());
  sorted_token_ids_.upload(rows);
}

Cost MoeAlign::cost() const {
  // Nothing is computed. Blocks that exist are written once, with their padding.
  Cost cost;
  cost.read_bytes = static_cast<double>(topk_ids_.bytes());
  cost.write_bytes =
      static_cast<double>(sizeof(int32_t)) *
      static_cast<double>(truth_.sorted_token_ids.size() + truth_.expert_ids.size() + 1);
  return cost;
}

std::vector<Fact> MoeAlign::facts() const {
  return {{"active_experts", static_cast<double>(skew_.active_experts)},
          {"max_over_mean", skew_.max_over_mean},
          {"padded_rows", static_cast<double>(truth_.sorted_token_ids.size())}};
}

}  // namespace moegate::moe_align
