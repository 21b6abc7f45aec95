// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/worker/worker.h"

namespace moegate {

namespace fs = std::filesystem;

std::string program_hash(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(size_t{1} << 20);
  uint64_t low = 0, high = 1;  // two seeds: 64 bits are few for a name that must be unique
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    const auto bytes = static_cast<size_t>(in.gcount());
    low = hash_bytes(block.data(), bytes, low);
    high = hash_bytes(block.data(), bytes, high);
  }
  if (!in.eof()) usage_error("{}: cannot be read; give the path of a moegate program", path);
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string keep_program(const std::string& folder) {
  const fs::path self = fs::canonical(own_program());
  const fs::path kept = fs::path(folder) / program_hash(self.string());
  const fs::path copy = kept / "bin" / "moegate";
  std::error_code error;
  if (fs::exists(copy, error)) return copy.string();
  // Filled under another name: a copy that was interrupted must not pass for one.
  const fs::path filling = kept.string() + fmt::format(".{}.tmp", getpid());
  fs::create_directories(filling / "bin", error);
  if (!error) fs::copy_file(self, filling / "bin" / "moegate", error);
  const fs::path libraries = self.parent_path().parent_path() / "lib";
  if (!error && fs::is_directory(libraries)) {
    fs::copy(libraries, filling / "lib", fs::copy_options::recursive, error);
  }
  if (!error) fs::rename(filling, kept, error);
  if (error && !fs::exists(copy)) {  // another process may have been first
    usage_error("{}: the program cannot be kept there: {}", folder, error.message());
  }
  std::error_code ignored;
  fs::remove_all(filling, ignored);
  return copy.string();
}

std::string program_of(const BaselineHeader& baseline, const std::vector<fs::path>& artifacts,
                       const BuildCommit& build, double seconds) {
  for (const std::string& name : {baseline.program, baseline.git_sha}) {
    for (const fs::path& folder : artifacts) {
      const fs::path kept = folder / name / "bin" / "moegate";
      if (!name.empty() && access(kept.c_str(), X_OK) == 0) return kept.string();
    }
  }
  std::string built;
  if (!baseline.git_sha.empty()) {
    say("suite {}: the baseline's program is not in {}; building it from {}\n", baseline.suite,
        artifacts.front().string(), baseline.git_sha);
    built = build(baseline.git_sha, seconds);
  }
  if (built.empty()) {
    say("suite {}: without its baseline's program, the stored numbers decide\n", baseline.suite);
  }
  return built;
}

void prune_programs(const fs::path& artifacts, size_t keep) {
  std::error_code ignored;  // what is gone already need not be removed
  std::vector<std::pair<fs::file_time_type, fs::path>> kept;
  for (const auto& entry : fs::directory_iterator(artifacts, ignored)) {
    if (entry.is_directory(ignored)) kept.emplace_back(entry.last_write_time(ignored), entry);
  }
  std::sort(kept.rbegin(), kept.rend());
  for (size_t i = keep; i < kept.size(); ++i) fs::remove_all(kept[i].second, ignored);
}

}  // namespace moegate
