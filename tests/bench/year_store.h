// SPDX-License-Identifier: Apache-2.0
// A store as many nights on one GPU leave it, made up: for measuring what questions cost. The same
// options make the same store, but for uuids.
#pragma once

#include <cstdint>
#include <string>

#include "harness/store/store.h"

namespace moegate::test {

struct YearOptions {
  int cases = 10000, variants = 3, processes = 5, nights = 365;
  int samples = 200;         // of a result
  int sampled_nights = 365;  // newest nights that still have samples
};

/// Makes a store at `path`, where none may be. Each night is a complete run with verdicts against
/// `against`. Processes spread by 0.3 %; one row in fifty is 8 % slower from two thirds of the
/// nights on, with other code; one row in 32 is not deterministic.
Store make_year(const std::string& path, const YearOptions& options,
                const std::string& against = "baselines/nvidia-h200/nightly.tsv");

}  // namespace moegate::test
