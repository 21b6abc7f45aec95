// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/variables.h"

namespace moegate {

const std::vector<Variable>& variables() {
  static const std::vector<Variable> all = {
      {"MOEGATE_DB", "the store that is meant without `--db`"},
      {"MOEGATE_HOME",
       "the folder with `suites/`, `reports/` and `baselines/`; default: the nearest above the "
       "program"},
      {"MOEGATE_TILES", "the folder of tile files without `--tiles`"},
      {"MOEGATE_WHY",
       "the default of `--why`, through scripts that do not know the flag; `bisect` sets it "
       "for its steps"},
      {"MOEGATE_COMMAND",
       "what `ci/ab` was called with: the command that an A/B's report tells readers to repeat"},
      {"MOEGATE_PYTHON", "the interpreter of `.py` files of kernels; default `python3`"},
      {"CUDA_HOME", "a CUDA toolkit, for its libraries and `nvdisasm`; then `/usr/local/cuda`"},
      {"XDG_CACHE_HOME", "where checkouts are kept; default `~/.cache`"},
      {"GITHUB_WORKSPACE, GITHUB_STEP_SUMMARY",
       "what `--github` paths are relative to; the file that gets the summary"},
      {"SLURM_ARRAY_*, SLURM_CLUSTER_NAME",
       "the task and its job array, for `--shard slurm` and `--campaign slurm`"},
      {"COLUMNS, NO_COLOR, CLICOLOR_FORCE, TERM",
       "the width and the colours of text on a terminal"}};
  return all;
}

}  // namespace moegate
