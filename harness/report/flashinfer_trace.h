// SPDX-License-Identifier: Apache-2.0
// The results of a run in FlashInfer-Bench's trace schema, for its data sets and leaderboards and for whoever compares
// with them. README.md says what becomes of a status; what the schema has no place for is in the notes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/store/store.h"
#include "harness/values/run.h"

namespace moegate {

struct FlashinferTraces {
  std::map<std::string, std::string>
      lines;  // by operator: for each result a JSON object and a line end
  size_t count = 0;
  std::vector<std::string> notes;  // what is not in the lines, one line each
};

/// `began`: when each round did, UTC, ISO 8601; a round that is missing began with the run.
FlashinferTraces flashinfer_traces(const RunInfo& run, const std::vector<Level>& levels,
                                   const std::map<int, std::string>& began);

/// The same from the store. Throws Error(store) for values that no run stores.
FlashinferTraces read_flashinfer_traces(Store& store, int64_t run);

}  // namespace moegate
