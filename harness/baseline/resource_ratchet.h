// SPDX-License-Identifier: Apache-2.0
// What a program's kernels take of an SM, against what was blessed: without a GPU, so before
// anything is measured; and how many modules files of Python load, as runs counted them. Both ways:
// what got better has to be blessed, too, or the next loss of it would pass.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/values/resources.h"

namespace moegate {

// The file of a device class that says what its kernels take of an SM:
// baselines/CLASS/resources.tsv. Sorted text, a line per kernel and shape of its launches:
//
//   #moegate-resources 1
//   #class nvidia-h200  compiler 13.0.88
//   #file kernel registers local_bytes static_shared threads dynamic_shared blocks_per_sm
//   kernels/topk_sort/chain_sort.cu moegate::topk_sort::place_kernel(int) 32 0 0 1024 8320 2
//
// with a tab between fields. The shape is that of launches on a GPU, since no compiler knows it;
// "-" where no run launched the kernel. Threads are then those that __launch_bounds__ allows, and
// the blocks are an upper bound. After these a line for each suite and variant of a file of Python:
//
//   modules deepseek-r1 triton_rows 17 6 triton 3.5.1, ptxas 12.8.93

/// How a kernel is launched, as far as it counts here.
struct LaunchShape {
  std::optional<int> threads;             // of a block
  std::optional<int64_t> dynamic_shared;  // bytes
  bool operator==(const LaunchShape&) const = default;
};

struct ResourceRow {
  KernelResources kernel;  // without what the file does not hold
  LaunchShape shape;
  std::optional<int> blocks_per_sm;
};

/// How many modules of machine code the first launches of a suite's cases load. It does not depend
/// on what the compiler's caches hold, nor on time.
struct ModuleRow {
  std::string suite, variant;
  int cases = 0, modules = 0;
  std::string compiler;  // "triton 3.5.1, ptxas 12.8.93"; empty: unknown
};

struct ResourceFile {
  std::string klass, compiler;          // device class; version of ptxas
  std::vector<ResourceRow> rows;        // by file, kernel, shape
  std::vector<ModuleRow> modules = {};  // by suite, variant
};

/// Throws Error(usage) naming file and line for anything that it does not know.
ResourceFile read_resources(const std::filesystem::path& path);
std::string format_resources(const ResourceFile& file);

/// Shapes by kernel (demangled): those of launches on a GPU.
using LaunchShapes = std::map<std::string, std::vector<LaunchShape>>;

/// A program's kernels in the shapes that `launched` has for them, else in those of `before`, else
/// as __launch_bounds__ allows. Of shapes with as many threads and as many blocks per SM only the
/// one with the most shared memory is kept. `before` may be empty.
std::vector<ResourceRow> in_shapes(const std::vector<KernelResources>& kernels,
                                   const LaunchShapes& launched, const ResourceFile& before,
                                   int arch);

struct ResourceChange {
  enum class Kind { worse, better, added, removed };
  Kind kind;
  std::string file, kernel;  // of modules: suite, variant
  std::string what;          // "local memory 0 -> 24 B/thread (spills, indexed arrays or calls)"
};
const char* name_of(ResourceChange::Kind kind);
/// For people, indented.
std::string line_of(const ResourceChange& change);

/// What changed from `before` to kernels of now, in the shapes of `before`. More local memory and
/// fewer blocks per SM are worse, less and more are better. Registers and static shared memory
/// count by the blocks that they cost.
std::vector<ResourceChange> changes_of(const ResourceFile& before,
                                       const std::vector<KernelResources>& kernels, int arch);

/// The same of modules. Where the number of cases is another one, the file lacks the row.
std::vector<ResourceChange> changes_of(const std::vector<ModuleRow>& before,
                                       const std::vector<ModuleRow>& now);

/// All of them, each once: "triton 3.5.1, ptxas 12.8.93".
std::string compilers_of(const std::vector<ModuleRow>& rows);

struct ResourceVerdict {
  Exit exit;
  std::string text;  // the first line says how it went, then a line each; ends in a line end
};

/// Worse is Exit::latency; else whatever else changed is Exit::coverage, since the file then lacks
/// what the program has. Of another compiler than the file's, `known_compiler`, what changed may be
/// the compiler's: Exit::inconclusive. `path` and `judged` ("2 kernels") are for the text.
ResourceVerdict verdict_of(std::vector<ResourceChange> changes, const std::string& known_compiler,
                           const std::string& compiler, const std::string& judged,
                           const std::filesystem::path& path);

}  // namespace moegate
