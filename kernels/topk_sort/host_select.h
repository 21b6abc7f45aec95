// SPDX-License-Identifier: Apache-2.0
// Selecting a token's experts on the CPU: shared by the host variants, which differ in what
// surrounds it, as the GPU variants do.
#pragma once

#include <array>

#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {

constexpr int kMaxExperts = 1024;
constexpr int kMaxTopk = 16;

struct Choice {
  std::array<int, kMaxTopk> experts;
  std::array<float, kMaxTopk> weights;
};

/// Experts and weights of one token. Not inline: variants must differ in what is around it, not in
/// what the compiler made of it.
Choice select(const TopkSortArgs& args, int token);

}  // namespace moegate::topk_sort
