// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/stream_plan.h"

#include <algorithm>

#include "kernels/qmoe/stream_layout.h"

namespace moegate::qmoe {
namespace {

/// `tiles`: of a block.
template <class C>
StreamPlan divided(StreamForm form, const QmoeShape& shape, int tiles) {
  const int steps = StreamLayout::of(shape).steps;
  int parts = (steps + C::kSteps - 1) / C::kSteps;
  // Shorter parts where that gives every tile a team of its own. A tile that one warp has on its
  // way at once stays whole: nobody waits for sums of others.
  while (parts > 1 && C::kWarps / (parts + 1) >= tiles && steps / (parts + 1) >= 2) ++parts;
  // No team without a tile, or a row of x to split.
  return {form, parts, std::clamp(C::kWarps / parts, 1, std::max(tiles, shape.rows()))};
}

}  // namespace

StreamPlan stream_plan(const QmoeShape& shape, int processors) {
  // If every routed row is of another expert.
  const int all = shape.rows() * StreamLayout::of(shape).tiles;
  const int tiles = (all + processors - 1) / processors;
  // Each row of x has a team that splits it before it asks for weights.
  const auto fits_one_token = [&](const StreamPlan& plan) {
    return shape.tokens == 1 && shape.source_rows() <= plan.teams;
  };
  const StreamPlan wide = divided<OneToken>(StreamForm::one_token, shape, tiles);
  const StreamPlan narrow = divided<OneTokenNarrow>(StreamForm::one_token_narrow, shape, tiles);
  if (fits_one_token(narrow) && narrow.teams >= tiles && wide.teams < tiles) return narrow;
  if (fits_one_token(wide)) return wide;
  return divided<ManyTokens>(StreamForm::many_tokens, shape, tiles);
}

}  // namespace moegate::qmoe
