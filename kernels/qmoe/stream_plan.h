// SPDX-License-Identifier: Apache-2.0
// How stream_imma divides a shape among the warps of a block. Plain host code; the kernel is in
// stream_imma.cu.
#pragma once

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

/// What a kernel is compiled for: kWarps of a block, and kSteps of a part, whose weights a warp
/// asks for at once.
struct ManyTokens {
  static constexpr int kWarps = 20, kSteps = 9;  // leaves 96 registers for each thread
  static constexpr bool kOneToken = false;
  static constexpr bool kDependent = false;  // on the launch before, behind which it starts early
};
/// Rows of one token are segments: its weights can be asked for before these are found.
struct OneToken : ManyTokens {
  static constexpr bool kOneToken = true;
};
/// Of a K that is narrow: more tiles of a block have a team of their own.
struct OneTokenNarrow : OneToken {
  static constexpr int kWarps = 24, kSteps = 6;
};

enum class StreamForm { many_tokens, one_token, one_token_narrow };

struct StreamPlan {
  StreamForm form;
  int parts, teams;  // parts of a tile along K, a warp each; teams of so many warps

  bool operator==(const StreamPlan&) const = default;
};

/// For a GPU of so many SMs, with a block each. A plan of more parts than ManyTokens::kWarps cannot
/// be launched: K is too long.
StreamPlan stream_plan(const QmoeShape& shape, int processors);

}  // namespace moegate::qmoe
