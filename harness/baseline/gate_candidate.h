// SPDX-License-Identifier: Apache-2.0
// What a run is judged against, read from files: a blessed baseline, or a candidate. A candidate
// stands in for a baseline that nobody blessed yet. The gate records it itself, and only rows that
// are fit for a baseline enter it.
#pragma once

#include <filesystem>
#include <string>

#include "harness/judge/gate.h"
#include "harness/values/run.h"

namespace moegate {

/// A baseline as read from `path`, which has to be blessed. Throws Error when it is not, is that of
/// another suite, or does not compare.
Expectation expect_baseline(const Baseline& baseline, const std::filesystem::path& path,
                            const RunInfo& run, const std::string& suite);

/// The rows that earlier runs left in the candidate file at `path`, as read from it; of a file that is
/// not there, none. This run's fit rows that the file lacks are written to it; a row that is there stays as it is. Each row names its run in
/// `by`, so no run is judged against its own rows. Without rows of other runs there is nothing to
/// compare with, and the note says what was recorded or why not. An incomplete run, a run with a
/// failed result, and another GPU of the class add nothing. Of a run that only its time ended (`cut`)
/// the rows of at least two processes are added, so that the candidate grows from night to night; what
/// was begun without any is a file without rows, and a next such run is Expectation::stalled. Throws
/// Error like expect_baseline().
Expectation expect_candidate(Baseline candidate, const std::filesystem::path& path,
                             const RunInfo& run, const std::string& suite, const Sides& sides,
                             bool cut = false);

}  // namespace moegate
