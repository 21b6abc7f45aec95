// SPDX-License-Identifier: Apache-2.0
// Kernels from elsewhere that are kept with the program that measured them, for replays: the files of their checkout
// by their paths in it; what else they are made of by its content.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/worker/worker.h"

namespace moegate {

/// As a run measured them.
struct KernelFiles {
  std::vector<std::string> given;  // --module
  std::vector<LoadedFile>
      imported;  // what they are made of once they are loaded; part of their program's name
  std::vector<LoadedFile> loaded;  // what they are made of once all rows are measured
};

/// Copies the files of their checkouts that are no installed package into a folder, and describes the others there.
/// Throws std::filesystem::filesystem_error and Error(usage).
void keep_kernels(const KernelFiles& files, const std::filesystem::path& folder);

/// What was kept in a folder; nothing where there is none. The files given are those of the folder.
KernelFiles kept_kernels(const std::filesystem::path& folder);

/// A file of a folder that is not what was kept there; empty: there is none.
std::string changed_file(const std::filesystem::path& folder);

/// A file that was imported from elsewhere and is not what it was; empty: there is none. Such kernels are no longer
/// those that were measured.
std::string lost_file(const std::filesystem::path& folder);

/// To be told what a process of the kept kernels is made of once they are loaded. Returns a file that it lacks, or has
/// another content; empty: it is what was measured. What it took from elsewhere is no longer taken for kept.
/// It is asked once: see is_settled().
std::string settle_kept(const std::filesystem::path& folder,
                        const std::vector<LoadedFile>& imported);

/// Whether settle_kept() has found what was measured.
bool is_settled(const std::filesystem::path& folder);

}  // namespace moegate
