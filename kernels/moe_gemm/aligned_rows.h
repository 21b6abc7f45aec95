// SPDX-License-Identifier: Apache-2.0
// Routed rows in the order of moe_align_block_size (vLLM, SGLang, aphrodite): grouped by expert,
// each group padded to whole blocks. Plain host code; what every grouped GEMM here starts from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moegate::moe_gemm {

/// Row r = t * topk + j is token t's j-th expert.
struct AlignedRows {
  std::vector<int32_t> sorted_token_ids;  // [capacity]: r, ascending within an expert; padding is R
  std::vector<int32_t> expert_ids;        // per block of sorted_token_ids; -1 beyond the last used
  int32_t padded_rows;                    // used part of sorted_token_ids, whole blocks
};

/// The same without padding.
struct ListedRows {
  std::vector<int32_t> expert_rows;  // [E]: how many rows an expert has
  std::vector<int32_t> rows;         // [R]: r by expert, ascending within an expert
};

/// `ids` [R] holds the expert of every row; -1: no expert of this rank, so that the row is in none
/// of the lists, whose end is then padding (R).
ListedRows list_rows(std::span<const int32_t> ids, int experts);

/// Most padded rows that R rows over so many experts can need; buffers have this length.
int64_t aligned_capacity(int64_t rows, int experts, int block);

/// Likewise. Experts without rows get no block.
AlignedRows align_rows(std::span<const int32_t> ids, int experts, int block);

/// Where each of so many rows r stands in sorted_token_ids; -1 where it is not there.
std::vector<int32_t> sorted_places(const AlignedRows& aligned, int64_t rows);

/// What masked rows per expert are rounded up to: a tile of rows of DeepGEMM, which stores whole
/// ones.
constexpr int kMaskedRows = 128;
/// Rows that every expert has room for in masked order: twice as many as the fullest one has now,
/// as other activations are routed otherwise, at most a row per token, rounded up to kMaskedRows.
int masked_capacity(std::span<const int32_t> ids, int experts, int tokens);
/// Where each row stands there: an expert's rows one after the other, ascending, from place
/// expert * capacity on; -1 where the id is. Throws Error(environment) where an expert has more.
std::vector<int32_t> masked_places(std::span<const int32_t> ids, int experts, int capacity);

}  // namespace moegate::moe_gemm
