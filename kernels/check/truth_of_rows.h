// SPDX-License-Identifier: Apache-2.0
// What an operator that samples keeps between two calls of Problem::check_rows().
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace moegate::check {

/// The truth of the rows that were asked for last: a problem is asked for the same ones for every
/// variant.
template <class Truth>
class TruthOfRows {
 public:
  bool empty() const { return rows_.empty(); }
  const Truth& of(const std::vector<int64_t>& rows, const std::function<Truth()>& make) {
    if (rows != rows_) truth_ = make();
    rows_ = rows;
    return truth_;
  }

 private:
  std::vector<int64_t> rows_;
  Truth truth_;
};

}  // namespace moegate::check
