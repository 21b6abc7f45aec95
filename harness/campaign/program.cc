// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/file_name.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/worker/worker.h"

namespace moegate {

namespace fs = std::filesystem;

namespace {

// Of a kept program: the folder of its kernels, and the file there that names them in their order.
constexpr const char *kKernels = "kernels", *kList = "list";

/// A file of kernels, and of Python what it may import from its folder.
std::vector<fs::path> parts_of(const fs::path& file) {
  if (file.extension() != ".py") return {file};
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(file.parent_path())) {
    if (entry.is_regular_file() && entry.path().extension() == ".py") parts.push_back(entry);
  }
  std::ranges::sort(parts);
  return parts;
}

/// A folder for each: two may have the same name.
void keep_kernels(const std::vector<std::string>& files, const fs::path& folder,
                  std::error_code& error) {
  fs::create_directories(folder, error);
  std::ofstream list(folder / kList);
  for (size_t i = 0; i < files.size() && !error; ++i) {
    const fs::path file = files[i], number = std::to_string(i);
    fs::create_directories(folder / number, error);
    for (const fs::path& part : parts_of(file)) {
      if (!error) fs::copy_file(part, folder / number / part.filename(), error);
    }
    list << (number / file.filename()).string() << '\n';
  }
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

std::string program_hash(const std::string& path, const std::vector<std::string>& kernels) {
  std::string all = program_hash(path);
  if (kernels.empty()) return all;
  for (const std::string& file : kernels) {
    for (const fs::path& part : parts_of(file)) all += program_hash(part.string());
  }
  return fmt::format("{:016x}{:016x}", hash_bytes(all.data(), all.size(), 1),
                     hash_bytes(all.data(), all.size()));
}

void check_kept(const std::string& program) {
  const fs::path folder = fs::absolute(program).parent_path().parent_path();
  const std::string is = program_hash(program, kernels_kept_with(program));
  if (is == folder.filename()) return;
  usage_error(
      "{}: its hash is {}, and its folder is named by another: somebody has changed it; remove {}",
      program, is, folder.string());
}

std::vector<std::string> kernels_kept_with(const std::string& program) {
  const fs::path folder = fs::path(program).parent_path().parent_path() / kKernels;
  std::vector<std::string> files;
  std::ifstream list(folder / kList);
  for (std::string name; std::getline(list, name);) files.push_back((folder / name).string());
  return files;
}

std::string keep_program(const std::string& folder, const std::vector<std::string>& kernels) {
  const fs::path self = fs::canonical(own_program());
  const fs::path kept = fs::path(folder) / program_hash(self.string(), kernels);
  const fs::path copy = kept / "bin" / "moegate";
  std::error_code error;
  if (fs::exists(copy, error)) return copy.string();
  // Filled under another name: a copy that was interrupted must not pass for one.
  const fs::path filling = fmt::format("{}.{}.tmp", kept.string(), random_name());
  fs::create_directories(filling / "bin", error);
  if (!error) fs::copy_file(self, filling / "bin" / "moegate", error);
  const fs::path libraries = self.parent_path().parent_path() / "lib";
  if (!error && fs::is_directory(libraries)) {
    fs::copy(libraries, filling / "lib", fs::copy_options::recursive, error);
  }
  if (!error && !kernels.empty()) {
    const fs::path python = self.parent_path().parent_path() / "python";
    if (fs::is_directory(python)) {
      fs::copy(python, filling / "python", fs::copy_options::recursive, error);
    }
    if (!error) keep_kernels(kernels, filling / kKernels, error);
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
                       const BuildCommit& build, double seconds, bool has_kernels) {
  const std::string commit = has_kernels ? "" : baseline.git_sha;
  for (const std::string& name : {baseline.program, commit}) {
    for (const fs::path& folder : artifacts) {
      const fs::path kept = folder / name / "bin" / "moegate";
      if (name.empty() || access(kept.c_str(), X_OK) != 0) continue;
      if (name == baseline.program) check_kept(kept.string());
      return kept.string();
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
