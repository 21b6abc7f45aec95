// SPDX-License-Identifier: Apache-2.0
// Measures every tile configuration at the shapes and token counts of a suite, into a store of its
// own, and writes the fastest into files that variant `tuned` reads. What it decides from the times
// is tune.h's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/campaign/recording.h"
#include "harness/campaign/tile_merge.h"
#include "harness/campaign/tune.h"

namespace moegate {

struct TuneOptions {
  RunOptions run;             // as tuning_run() made it
  int64_t resume = 0;         // the run to finish; 0: a new one
  std::filesystem::path out;  // folder of the files: OUT/CLASS/SHAPE.ini
};

/// Turns what the user selected into a run over every candidate: all tile variants, all blocks
/// unless he named some, cold. `ops`: operators to tune, empty for all that can be. Throws
/// Error(usage) for an operator that has nothing to tune.
RunOptions tuning_run(RunOptions run, const std::vector<std::string>& ops);

struct TunedFile {
  std::filesystem::path path;
  std::vector<TilePick> picks;
  MergedTiles merged;  // with what the file had
};

struct Tuned {
  Tally tally;
  std::vector<TunedFile> files;   // one per shape; none after an interruption
  std::vector<TileTask> missing;  // tasks that got no configuration
};

/// Measures and writes the files, keeping what they have for other operators and token counts. Throws
/// Error(usage) for folders that cannot be made and, before anything is measured, for files that
/// read_tile_text() refuses.
Tuned tune(const TuneOptions& options, WorkerSource& source);

/// A task without a configuration is Exit::coverage.
Exit tune_exit(const Tuned& tuned);

}  // namespace moegate
