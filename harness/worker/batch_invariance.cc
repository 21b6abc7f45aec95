// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/batch_invariance.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "harness/kernel/expert_rank.h"
#include "harness/kernel/object_code.h"
#include "harness/values/run.h"

namespace moegate {
namespace {

constexpr int64_t kTokens = 8;  // that are looked at
/// Sizes of batches, beside the case's own: around those by which kernels and engines choose
/// blocks, splits and variants.
constexpr int64_t kSizes[] = {1, 2, 7, 8, 9, 16, 33, 64, 128, 257, 512, 2048};
/// On both sides of the edges of blocks. Larger batches take long to draw.
constexpr int64_t kPlaces[] = {15, 16, 63, 64, 127, 128};
constexpr int64_t kManyTokens = 1024;

/// What a token's outputs are, and how long their elements.
struct TokenBits {
  std::vector<uint8_t> bytes;
  std::vector<std::pair<size_t, size_t>> parts;  // bytes of an output's rows, of an element

  /// Share of the elements that are not the other's; 1 where even their number differs.
  double differing(const TokenBits& other) const {
    if (parts != other.parts) return 1;
    size_t all = 0, differ = 0;
    const uint8_t *a = bytes.data(), *b = other.bytes.data();
    for (const auto& [size, element] : parts) {
      for (size_t at = 0; at < size; at += element) {
        ++all;
        differ += std::memcmp(a + at, b + at, element) != 0;
      }
      a += size;
      b += size;
    }
    return static_cast<double>(differ) / static_cast<double>(all);
  }
};

TokenBits bits_of(const Problem& problem, int64_t place) {
  TokenBits token;
  for (const TokenRows& output : problem.rows_of(place)) {
    const size_t element = size_of(output.tensor->dtype());
    const size_t row = static_cast<size_t>(output.width) * element;
    for (const int64_t at : output.rows) {
      const size_t end = token.bytes.size();
      token.bytes.resize(end + row);
      problem.device().download(token.bytes.data() + end,
                                output.tensor->data<char>() + static_cast<size_t>(at) * row, row);
    }
    token.parts.emplace_back(output.rows.size() * row, element);
  }
  return token;
}

class Question {
 public:
  Question(const Variant& variant, const Case& c, const Registry& registry, Device& device)
      : variant_(variant), case_(c), registry_(registry), device_(device) {}

  std::vector<Metric> ask(int64_t most) {
    if (!case_.params.contains("tokens")) return {};
    first_ = most + 1;  // no batch begins with token 0, which is the case's
    std::set<int64_t> sizes(std::begin(kSizes), std::end(kSizes));
    sizes.insert({case_.get_int("tokens", 1, std::numeric_limits<int64_t>::max()), most});
    sizes.erase(sizes.upper_bound(most), sizes.end());
    int batches = 0;
    for (auto size = sizes.begin(); size != sizes.end() && of_tokens_ && !broken_; ++size) {
      try {
        batches += launch_all(*size);
      } catch (const Error& e) {  // the operator has no such case, or its tokens were recorded
        if (e.code() != Exit::usage) throw;
      }
    }
    if (batches < 2) return {};
    if (!broken_) return {{kInvarianceMetric, "tokens", 0}};
    return {{kInvarianceMetric, "tokens", static_cast<double>(broken_->tokens)},
            {kBrokenPlaceMetric, "place", static_cast<double>(broken_->place)},
            {kBrokenShareMetric, "share", broken_->share}};
  }

 private:
  struct Broken {
    int64_t tokens, place;
    double share;
  };

  /// Whether the variant runs so many tokens and the operator says which rows are a token's. Throws
  /// Error(usage) where there is no such case.
  bool launch_all(int64_t tokens) {
    Case c = with_one_rank(case_);
    c.params["tokens"] = std::to_string(tokens);
    c.truth = false;
    const OpEntry& op = find_op(c.op, registry_);
    if (op.validate) op.validate(c);
    c = resolved(c, device_.facts(), registry_);
    if (!why_unsupported(variant_, c, device_.facts()).empty()) return false;
    const auto batch = op.make(device_, c);
    of_tokens_ = !batch->rows_of(0).empty();
    if (!of_tokens_) return false;
    const Launch launch{device_.stream(), device_.facts()};
    if (variant_.workspace) batch->reserve_workspace(variant_.workspace(c, device_.facts()));
    if (variant_.prepare) variant_.prepare(*batch, launch);
    batch->allow_packing(false);
    for (const int64_t first : first_tokens(tokens)) {
      batch->move_to(first, tokens);
      batch->poison();
      variant_.launch(*batch, launch);
      device_.synchronize();
      compare(*batch, first, tokens);
      if (broken_) break;
    }
    return true;
  }

  std::set<int64_t> first_tokens(int64_t tokens) const {
    std::set<int64_t> firsts = {first_ - (tokens - 1), first_ - tokens / 2};
    for (int64_t i = 0; i < kTokens; i += tokens) firsts.insert(first_ + i);
    for (const int64_t place : kPlaces) {
      if (place < tokens && tokens <= kManyTokens) firsts.insert(first_ - place);
    }
    return firsts;
  }

  void compare(const Problem& batch, int64_t first, int64_t tokens) {
    const int64_t end = std::min(first_ + kTokens, first + tokens);
    for (int64_t token = std::max(first_, first); token < end; ++token) {
      const int64_t place = token - first;
      TokenBits now = bits_of(batch, place);
      const auto [seen, is_first] = seen_.try_emplace(token, std::move(now));
      if (is_first) continue;
      const double share = seen->second.differing(now);
      if (share > 0) {
        broken_ = {tokens, place, share};
        return;
      }
    }
  }

  const Variant& variant_;
  const Case& case_;
  const Registry& registry_;
  Device& device_;
  int64_t first_ = 0;                  // number of the first token that is looked at
  std::map<int64_t, TokenBits> seen_;  // by number: what it was in the smallest batch
  std::optional<Broken> broken_;
  bool of_tokens_ = true;  // the operator says which rows are a token's
};

}  // namespace

std::vector<Metric> ask_batch_invariance(const Variant& variant, const Case& c, int64_t most,
                                         const Registry& registry, Device& device) {
  return Question(variant, c, registry, device).ask(most);
}

}  // namespace moegate
