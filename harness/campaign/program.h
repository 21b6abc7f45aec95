// SPDX-License-Identifier: Apache-2.0
// Program files as artifacts: what their content is called, where they are kept and found.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/campaign/kept_kernels.h"
#include "harness/values/run.h"

namespace moegate {

/// Content hash of a file, 32 hex digits. Throws Error(usage) naming the path when it cannot be
/// read.
std::string program_hash(const std::string& path);

/// The same of a program with kernels from elsewhere: all that they were made of once they were loaded counts.
std::string program_hash(const std::string& path, const KernelFiles& kernels);

/// Copies the program that measures (own_program()), the shared libraries that were installed with it
/// and kernels from elsewhere (kept_kernels.h, with python/ of the tool) to FOLDER/<content hash>/, once;
/// returns the path of the copy, which can be replayed later. Throws Error(usage) when the folder cannot
/// be written.
std::string keep_program(const std::string& folder, const KernelFiles& kernels = {});

/// Loads the kernels that were kept with a program, in a worker of it, unless an earlier call did. Where they cannot be loaded,
/// or are not what was measured, it is removed, and the sentence says why; empty: it can be replayed.
std::string try_kept(const std::string& program, WorkerOptions options, WorkerSource& source);

/// What the kernels that were kept with a program need from elsewhere and is not what it was, in a sentence; empty:
/// nothing.
std::string lost_kernels(const std::string& program);

/// The files of kernels that were kept with a program; none where there are none.
std::vector<std::string> kernels_kept_with(const std::string& program);

/// Throws Error(usage) where a program FOLDER/<content hash>/bin/moegate, with its kernels, is not what
/// its folder is named by: it is about to be run.
void check_kept(const std::string& program);

/// Builds the program of a commit; returns its path, or nothing when that cannot be done in so many
/// seconds.
using BuildCommit = std::function<std::string(const std::string& commit, double seconds)>;

/// The program that a baseline was measured with: kept in one of the folders `artifacts` by its hash
/// or its commit, else built again from its commit. With kernels from elsewhere only by its hash, which
/// they are part of. Says on stderr what it lacks; empty when it is
/// not to be had in so many seconds. Throws Error(usage) where what is kept by its hash has another
/// hash.
std::string program_of(const BaselineHeader& baseline,
                       const std::vector<std::filesystem::path>& artifacts,
                       const BuildCommit& build, double seconds, bool has_kernels = false);

/// Removes all but the `keep` programs that were kept last.
void prune_programs(const std::filesystem::path& artifacts, size_t keep);

}  // namespace moegate
