// SPDX-License-Identifier: Apache-2.0
// The program of a run as an artifact: its hash, the copy that a later replay starts, and what is
// kept of kernels from elsewhere.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/values/run.h"
#include "harness/worker/worker.h"

namespace moegate {

// Kernels from elsewhere that are kept with the program that measured them, for replays: the files
// of their checkout by their paths in it; what else they are made of by its content.

/// As a run measured them.
struct KernelFiles {
  std::vector<std::string> given;  // --module
  std::vector<LoadedFile>
      imported;  // what they are made of once they are loaded; part of their program's name
  std::vector<LoadedFile> loaded;  // what they are made of once all rows are measured
};

/// Copies the files of their checkouts that are no installed package into a folder, and describes
/// the others there. Throws std::filesystem::filesystem_error and Error(usage).
void keep_kernels(const KernelFiles& files, const std::filesystem::path& folder);

/// What was kept in a folder; nothing where there is none. The files given are those of the folder.
KernelFiles kept_kernels(const std::filesystem::path& folder);

/// A file of a folder that is not what was kept there; empty: there is none.
std::string changed_file(const std::filesystem::path& folder);

/// A file that was imported from elsewhere and is not what it was; empty: there is none. Such
/// kernels are no longer those that were measured.
std::string lost_file(const std::filesystem::path& folder);

/// To be told what a process of the kept kernels is made of once they are loaded. Returns a file
/// that it lacks, or has another content; empty: it is what was measured. What it took from
/// elsewhere is no longer taken for kept. It is asked once: see is_settled().
std::string settle_kept(const std::filesystem::path& folder,
                        const std::vector<LoadedFile>& imported);

/// Whether settle_kept() has found what was measured.
bool is_settled(const std::filesystem::path& folder);

/// Content hash of a file, 32 hex digits. Throws Error(usage) naming the path.
std::string program_hash(const std::string& path);

/// The same with kernels from elsewhere: all that they are made of once they are loaded counts.
std::string program_hash(const std::string& path, const KernelFiles& kernels);

/// Copies the program that measures (own_program()), the shared libraries that were installed with
/// it and kernels from elsewhere (with python/ of the tool) to FOLDER/<content hash>/, once;
/// returns the path of the copy, for later replays. Throws Error(usage) where it cannot be written.
std::string keep_program(const std::string& folder, const KernelFiles& kernels = {});

/// Loads the kernels that were kept with a program, in a worker of it, unless an earlier call did.
/// Where they cannot be loaded, or are not what was measured, it is removed, and the sentence says
/// why; empty: it can be replayed.
std::string try_kept(const std::string& program, WorkerOptions options, WorkerSource& source);

/// A sentence on what its kept kernels need from elsewhere and is not what it was; empty: nothing.
std::string lost_kernels(const std::string& program);

/// The files of kernels that were kept with a program; none where there are none.
std::vector<std::string> kernels_kept_with(const std::string& program);

/// Throws Error(usage) where a program FOLDER/<content hash>/bin/moegate, with its kernels, is not
/// what its folder is named by: it is about to be run.
void check_kept(const std::string& program);

/// Builds a commit's program and returns its path; nothing where so many seconds are too few.
using BuildCommit = std::function<std::string(const std::string& commit, double seconds)>;

/// The program that a baseline was measured with: kept in one of the folders `artifacts` by its
/// hash or its commit, else built again from its commit. With kernels from elsewhere only by its
/// hash, which they are part of. Says on stderr what it lacks; empty when it is not to be had in so
/// many seconds. Throws Error(usage) where what is kept by its hash has another hash.
std::string program_of(const BaselineHeader& baseline,
                       const std::vector<std::filesystem::path>& artifacts,
                       const BuildCommit& build, double seconds, bool has_kernels = false);

/// Removes all but the `keep` programs that were kept last.
void prune_programs(const std::filesystem::path& artifacts, size_t keep);

}  // namespace moegate
