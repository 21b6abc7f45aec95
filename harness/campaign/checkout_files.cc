// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/checkout_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <sstream>

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// Of a list, by path: what is said of it.
std::map<std::string, std::string> by_path(const std::string& list) {
  std::map<std::string, std::string> files;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const size_t size = line.find(' ');
    const size_t time = size == std::string::npos ? size : line.find(' ', size + 1);
    if (time != std::string::npos) files[line.substr(time + 1)] = line.substr(0, time);
  }
  return files;
}

std::string line_of(const std::string& path, const std::string& said) {
  return said + ' ' + path + '\n';
}

}  // namespace

std::string list_files(const fs::path& folder) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  std::map<std::string, std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (name == ".git" || name == "__pycache__") {
      at.disable_recursion_pending();
      continue;
    }
    struct stat facts {};
    if (lstat(at->path().c_str(), &facts) != 0 || S_ISDIR(facts.st_mode)) continue;
    std::string path = at->path().lexically_relative(folder);
    for (char& c : path) {
      if (c == '\n') c = '?';
    }
    files[path] = fmt::format("{} {}", facts.st_size,
                              facts.st_ctim.tv_sec * kNanoseconds + facts.st_ctim.tv_nsec);
  }
  std::string list;
  for (const auto& [path, said] : files) list += line_of(path, said);
  return list;
}

std::string first_difference(const std::string& before, const std::string& now) {
  if (before == now) return "";
  const auto old = by_path(before), files = by_path(now);
  for (const auto& [path, said] : files) {
    const auto known = old.find(path);
    if (known == old.end() || known->second != said) return path;
  }
  for (const auto& [path, said] : old) {
    if (!files.contains(path)) return path;
  }
  return "";
}

std::string with_added(const std::string& before, const std::string& now) {
  auto all = by_path(before);
  for (const auto& [path, said] : by_path(now)) all.try_emplace(path, said);
  std::string list;
  for (const auto& [path, said] : all) list += line_of(path, said);
  return list;
}

}  // namespace moegate
