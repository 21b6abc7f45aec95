// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/worker/worker.h"

namespace moegate {

namespace fs = std::filesystem;

namespace {

constexpr const char* kKernels = "kernels";  // folder of a kept program

fs::path folder_of(const std::string& program) {
  return fs::absolute(program).parent_path().parent_path();
}

std::string joined_hash(const std::string& all) {
  return fmt::format("{:016x}{:016x}", hash_bytes(all.data(), all.size(), 1),
                     hash_bytes(all.data(), all.size()));
}

}  // namespace

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

std::string program_hash(const std::string& path, const KernelFiles& kernels) {
  std::string all = program_hash(path);
  if (kernels.given.empty()) return all;
  std::vector<std::string> parts;
  for (const LoadedFile& file : kernels.imported) parts.push_back(file.name + "=" + file.hash);
  if (parts.empty()) {  // a worker that does not tell
    for (const std::string& file : kernels.given) parts.push_back(program_hash(file));
  }
  std::ranges::sort(parts);
  for (const std::string& part : parts) all += part + "\n";
  return joined_hash(all);
}

void check_kept(const std::string& program) {
  const fs::path folder = folder_of(program);
  const std::string is = program_hash(program, kept_kernels(folder / kKernels));
  const std::string changed = changed_file(folder / kKernels);
  if (is == folder.filename() && changed.empty()) return;
  usage_error("{}: somebody has changed {}; remove {}", program,
              changed.empty() ? "it, or the list of its kernels" : changed, folder.string());
}

std::string lost_kernels(const std::string& program) {
  const std::string lost = lost_file(folder_of(program) / kKernels);
  return lost.empty() ? ""
                      : fmt::format(
                            "{} has changed since its kernels were measured with it: bless "
                            "a run with what it is now",
                            lost);
}

std::vector<std::string> kernels_kept_with(const std::string& program) {
  return kept_kernels(folder_of(program) / kKernels).given;
}

std::string keep_program(const std::string& folder, const KernelFiles& kernels) {
  const fs::path self = fs::canonical(own_program());
  const fs::path kept = fs::path(folder) / program_hash(self.string(), kernels);
  const fs::path copy = kept / "bin" / "moegate";
  std::error_code error;
  if (fs::exists(copy, error)) return copy.string();
  // Filled under another name: a copy that was interrupted must not pass for one.
  const fs::path filling = fmt::format("{}.{}.tmp", kept.string(), random_name());
  try {
    fs::create_directories(filling / "bin");
    fs::copy_file(self, filling / "bin" / "moegate");
    const fs::path installed = self.parent_path().parent_path();
    if (fs::is_directory(installed / "lib")) {
      fs::copy(installed / "lib", filling / "lib", fs::copy_options::recursive);
    }
    if (!kernels.given.empty()) {
      if (fs::is_directory(installed / "python")) {
        fs::copy(installed / "python", filling / "python", fs::copy_options::recursive);
      }
      keep_kernels(kernels, filling / kKernels);
    }
    fs::rename(filling, kept);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(filling, error);
    if (fs::exists(copy, error)) return copy.string();  // another process was first
    usage_error("{}: the program cannot be kept there: {}", folder, e.code().message());
  }
  return copy.string();
}

std::string try_kept(const std::string& program, WorkerOptions options, WorkerSource& source) {
  const fs::path folder = folder_of(program);
  const KernelFiles kept = kept_kernels(folder / kKernels);
  // Once: a baseline may rest on it, and a later trial may fail for what is not its doing.
  if (kept.given.empty() || is_settled(folder / kKernels)) return "";
  options.program = program;
  options.kernels = kept.given;
  std::string why;
  try {
    const std::string lacks = settle_kept(folder / kKernels, source.start(options)->loaded());
    if (!lacks.empty()) why = lacks + " is not what it was";
  } catch (const Error& e) {
    why = e.what();
  }
  if (why.empty()) return "";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return fmt::format("kernels from elsewhere cannot be kept, so that no replay will have them: {}",
                     why);
}

std::string program_of(const BaselineHeader& baseline, const std::vector<fs::path>& artifacts,
                       const BuildCommit& build, double seconds, bool has_kernels) {
  const std::string commit = has_kernels ? "" : baseline.git_sha;
  for (const std::string& name : {baseline.program, commit}) {
    for (const fs::path& folder : artifacts) {
      const fs::path kept = folder / name / "bin" / "moegate";
      if (name.empty() || access(kept.c_str(), X_OK) != 0) continue;
      if (name == baseline.program) check_kept(kept.string());
      const std::string lost = lost_kernels(kept.string());
      if (lost.empty()) return kept.string();
      say("{}: {}\n", kept.string(), lost);
    }
  }
  std::string built;
  if (!commit.empty()) {
    say("suite {}: the baseline's program is not in {}; building it from {}\n", baseline.suite,
        artifacts.front().string(), commit);
    built = build(commit, seconds);
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
