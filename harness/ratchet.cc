// SPDX-License-Identifier: Apache-2.0
#include "harness/ratchet.h"

#include <algorithm>
#include <cmath>

namespace moegate {
namespace {

constexpr double kExact = 0x1p-60;  // an error of nothing, where a logarithm is taken of it

}  // namespace

std::optional<double> accuracy_change_bits(const Side& base, const Side& head) {
  double sum = 0;
  int seeds = 0;
  for (const SeedError& h : head.seeds) {
    const auto b = std::find_if(base.seeds.begin(), base.seeds.end(),
                                [&](const SeedError& e) { return e.seed == h.seed; });
    if (b == base.seeds.end()) continue;
    ++seeds;
    if (b->hash != h.hash)
      sum += std::log2(std::max(h.rel_l2, kExact) / std::max(b->rel_l2, kExact));
  }
  if (seeds == 0) return std::nullopt;
  return sum / seeds;
}

}  // namespace moegate
