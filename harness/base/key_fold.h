// SPDX-License-Identifier: Apache-2.0
// Keys of parts, "topk_sort/tokens=8,topk=2", without the parts that all of them share.
#pragma once

#include <string>
#include <vector>

namespace moegate {

struct FoldedKeys {
  std::vector<std::string> keys;  // "…tokens=8…": each run of shared parts is one ellipsis
  std::string shared;  // "topk_sort/tokens=…,topk=2": the first key without what differs
};

/// Nothing to fold (`shared` is empty) where fewer than two keys are given, one of them has no part
/// NAME=VALUE, or they share no part.
FoldedKeys fold_keys(const std::vector<std::string>& keys);

}  // namespace moegate
