// SPDX-License-Identifier: Apache-2.0
// Token-to-expert assignments: seeded synthetic skews and recorded ones. Knows no operator: it
// hands out scores whose top-k per token is the assignment, and measures the skew that came of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moegate {

struct RoutingShape {
  int tokens;
  int experts;
  int topk;
  int64_t first = 0;  // which of an endless row of tokens the first one is
};

/// Help of an operator's parameter `routing`, which routing_scores() reads.
constexpr const char* kRoutingHelp =
    "uniform, balanced, zipf:S, hot:N:F, replay:FILE.npy or shared:ROUTING";

/// Scores [tokens, experts], row-major: the k largest of a row, in descending order, are the
/// token's experts. `spec` is one of
/// - uniform: every expert alike: Gumbel noise, so k distinct experts without replacement
/// - balanced: slot i of token t goes to expert (t + i*floor(E/k)) mod E
/// - zipf:S: Gumbel top-k over log-weights -S*ln(rank), ranks permuted over the experts by the
///   seed; S = 0.67 reproduces the skew that TensorRT-LLM published for DeepSeek-R1
/// - hot:N:F: as uniform, but a fraction F of the tokens ranks N hot experts, chosen by the seed,
///   above all others (FlashInfer's skew test: 8 added to their logits)
/// - replay:FILE: recorded ids [rows, k] from a .npy file of int16, int32 or int64, first `tokens`
///   rows; a relative FILE is looked up from the current folder, then from home()
/// - shared:ROUTING: the last expert for every token, in its first slot, and ROUTING of k - 1 of
///   the others: a shared expert that is computed as one more routed one (DeepSeek-R1: 257 and 9)
///
/// A token's scores depend on its number alone, counted from shape.first, and not on `tokens`;
/// replay has no other tokens than the first ones.
///
/// Scores stay within [-8, 8], so that neither bf16 nor a sigmoid merges them.
/// Throws Error(usage) that names the spec, what is wrong with it, and what is accepted.
std::vector<double> routing_scores(const std::string& spec, const RoutingShape& shape,
                                   uint64_t seed);

/// The experts [tokens, topk] that routing_scores() assigns, each token's in descending order of
/// score.
std::vector<int32_t> routed_experts(const std::string& spec, const RoutingShape& shape,
                                    uint64_t seed);

/// How uneven an assignment came out. Ids that are no expert do not count.
struct Skew {
  int active_experts = 0;    // experts with at least one token
  double max_over_mean = 0;  // largest load over the mean over all experts
};
Skew skew_of(std::span<const int32_t> ids, int experts);

}  // namespace moegate
