// SPDX-License-Identifier: Apache-2.0
// What a program's kernels take of an SM, against what was blessed: without a GPU, so before anything
// is measured. Both ways: what got better has to be blessed, too, or the next loss of it would pass.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/baseline/resource_file.h"

namespace moegate {

/// Shapes by kernel (demangled): those of launches on a GPU.
using LaunchShapes = std::map<std::string, std::vector<LaunchShape>>;

/// A program's kernels in the shapes that `launched` has for them, else in those of `before`, else as
/// __launch_bounds__ allows. Of shapes with as many threads and as many blocks per SM only the one
/// with the most shared memory is kept. `before` may be empty.
std::vector<ResourceRow> in_shapes(const std::vector<KernelResources>& kernels,
                                   const LaunchShapes& launched, const ResourceFile& before,
                                   int arch);

struct ResourceChange {
  enum class Kind { worse, better, added, removed };
  Kind kind;
  std::string file, kernel;
  std::string what;  // "local memory 0 -> 24 B/thread (spills, indexed arrays or calls)"
};
const char* name_of(ResourceChange::Kind kind);

/// What changed from `before` to kernels of now, in the shapes of `before`. More local memory and
/// fewer blocks per SM are worse, less and more are better. Registers and static shared memory count
/// by the blocks that they cost.
std::vector<ResourceChange> changes_of(const ResourceFile& before,
                                       const std::vector<KernelResources>& kernels, int arch);

struct ResourceVerdict {
  Exit exit;
  std::string text;  // the first line says how it went, then a line each; ends in a line end
};

/// Worse is Exit::latency; else whatever else changed is Exit::coverage, since the file then lacks
/// what the program has. Where another compiler made the program, what changed may be the compiler's:
/// Exit::inconclusive. `path` and `kernels` are for the text.
ResourceVerdict verdict_of(const std::vector<ResourceChange>& changes, const ResourceFile& before,
                           const std::string& compiler, size_t kernels,
                           const std::filesystem::path& path);

}  // namespace moegate
