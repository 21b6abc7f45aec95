// SPDX-License-Identifier: Apache-2.0
// Makes what a program's kernels take the file of their device class: like a baseline, with a reason
// and a line in the ledger.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/baseline/resource_ratchet.h"

namespace moegate {

/// What stands where a suite's name does: in the ledger, and in the file's name.
constexpr const char* kResources = "resources";

/// The file of a class, as blessed. Throws Error(usage) for one that the ledger beside it does not
/// state; Error(no_baseline) where there is none.
ResourceFile blessed_resources(const std::filesystem::path& baselines, const std::string& klass);

struct ResourceBlessing {
  std::string reason, author;
  std::string run;               // or runs, whose launches gave shapes; empty: none
  std::string git_sha, program;  // of the kernels; empty: unknown
};

/// Writes CLASS/resources.tsv and the ledger; returns what changed, for people. Throws Error(usage),
/// and changes nothing, for an empty reason and a file that the ledger does not state.
std::string bless_resources(const ResourceFile& now, const std::vector<ResourceChange>& changes,
                            const std::filesystem::path& baselines,
                            const ResourceBlessing& blessing);

}  // namespace moegate
