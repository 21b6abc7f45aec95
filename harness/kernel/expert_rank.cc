// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/expert_rank.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/kernel/recorded_routing.h"

namespace moegate {
namespace {

constexpr const char* kWhole = "0/1";
constexpr std::string_view kBusiestWord = "busiest/";
constexpr int kMostExperts = 1024;

/// Without a look at the number of experts.
std::optional<ExpertRank> parsed(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {};
  const bool busiest = text.starts_with(kBusiestWord);
  const auto ranks = parse_number<int>(text.substr(slash + 1));
  const auto rank = busiest ? ExpertRank::kBusiest : parse_number<int>(text.substr(0, slash));
  if (!ranks || !rank || *ranks < (busiest ? 2 : 1) || *rank >= *ranks) return {};
  if (!busiest && *rank < 0) return {};
  return ExpertRank{.ranks = *ranks, .rank = *rank};
}

std::vector<int32_t> numbers_by_map(const std::string& path, int experts, int ranks) {
  const std::vector<int> rank_of = recorded_ranks(path, experts, ranks);
  std::vector<int32_t> next, numbers;  // of each rank, of each expert
  for (int rank = 0; rank < ranks; ++rank) next.push_back(rank * (experts / ranks));
  for (const int rank : rank_of) numbers.push_back(next[static_cast<size_t>(rank)]++);
  return numbers;
}

}  // namespace

Param rank_param() {
  return {
      "rank", kWhole,
      "r/N: expert parallelism, rank r of N, which holds E/N experts and sees their rows alone; "
      "busiest/N: the rank with most rows; r/N@FILE.npy: the file has the rank of each expert"};
}

ExpertRank ExpertRank::of(const Case& c) {
  const auto experts = static_cast<int>(c.get_int("experts", 1, kMostExperts));
  if (!c.params.contains("rank")) return {.experts = experts};
  const std::string& text = c.get("rank");
  const size_t at = std::min(text.find('@'), text.size());
  std::optional<ExpertRank> rank = parsed(text.substr(0, at));
  if (!rank) {
    usage_error(
        "{}: rank = {} is no rank; use r/N with r from 0 to N - 1, or busiest/N from N = 2, each "
        "with @FILE.npy behind it for another placement",
        c.where(), text);
  }
  if (experts % rank->ranks != 0) {
    std::vector<int> fit;
    for (int n = 1; n <= experts; ++n) {
      if (experts % n == 0) fit.push_back(n);
    }
    usage_error("{}: rank = {}: experts = {} does not split over {} ranks; ranks that work: {}",
                c.where(), text, experts, rank->ranks, fmt::join(fit, ", "));
  }
  rank->experts = experts;
  if (at < text.size()) rank->numbers = numbers_by_map(text.substr(at + 1), experts, rank->ranks);
  return *rank;
}

int32_t ExpertRank::number_of(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < numbers.size() ? numbers[static_cast<size_t>(id)]
                                                             : id;
}

void ExpertRank::find(const std::vector<int32_t>& ids) {
  if (rank != kBusiest) return;
  std::vector<int64_t> rows(static_cast<size_t>(ranks));
  for (const int32_t id : ids) {
    if (id >= 0 && id < experts) ++rows[static_cast<size_t>(number_of(id) / local())];
  }
  rank = static_cast<int>(std::ranges::max_element(rows) - rows.begin());
}

std::vector<int32_t> ExpertRank::own(std::vector<int32_t> ids) const {
  if (is_whole()) return ids;
  for (int32_t& id : ids) {
    const int64_t own = int64_t{number_of(id)} - first();
    id = own >= 0 && own < local() ? static_cast<int32_t>(own) : -1;
  }
  return ids;
}

std::vector<int32_t> rows_of_rank(const std::vector<int32_t>& own_ids) {
  std::vector<int32_t> rows;
  for (size_t row = 0; row < own_ids.size(); ++row) {
    if (own_ids[row] >= 0) rows.push_back(static_cast<int32_t>(row));
  }
  return rows;
}

Case even_share(Case c) {
  if (!c.params.contains("rank")) return c;
  const ExpertRank rank = ExpertRank::of(c);
  if (rank.is_whole()) return c;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const int64_t topk = c.get_int("topk", 1, kMost);
  const int64_t rows = c.get_int("tokens", 1, kMost) * topk / rank.ranks;
  const int64_t own_topk = std::max<int64_t>(1, topk / rank.ranks);
  c.params["experts"] = std::to_string(rank.local());
  c.params["topk"] = std::to_string(own_topk);
  c.params["tokens"] = std::to_string(std::max<int64_t>(1, rows / own_topk));
  c.params["rank"] = kWhole;
  return c;
}

Case with_one_rank(Case c) {
  const auto rank = c.params.find("rank");
  if (rank == c.params.end() || !rank->second.starts_with(kBusiestWord)) return c;
  rank->second.replace(0, kBusiestWord.size() - 1, "0");
  return c;
}

}  // namespace moegate
