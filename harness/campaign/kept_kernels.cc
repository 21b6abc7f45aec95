// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/kept_kernels.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/hash.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kList = "files.json";
/// Files of a checkout are named by their paths below the folder that has this (root_of() in plugin/loaded_files.h).
constexpr const char* kRootMark = ".git";

/// A line of the list.
struct KeptFile {
  std::string path;       // where it was
  std::string name;       // in an identity
  std::string hash;       // of its content
  std::string kept;       // its path in the folder; empty: only its content is known
  bool imported = false;  // before the first row
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KeptFile, path, name, hash, kept, imported)

struct KeptList {
  std::vector<std::string> given;  // paths in the folder
  std::vector<KeptFile> files;
  bool settled = false;  // they were loaded from here
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KeptList, given, files, settled)

KeptList read_list(const fs::path& folder) {
  const fs::path path = folder / kList;
  if (!is_file(path)) return {};
  constexpr size_t kLongest = size_t{64} << 20;
  return parse_json(path.string(), read_file(path, kLongest)).get<KeptList>();
}

void write_list(const fs::path& folder, const KeptList& list) {
  write_file_atomically(folder / kList, json(list).dump(1) + "\n");
}

/// With its final slash; empty where the path does not end with the name.
std::string checkout_root(const LoadedFile& file) {
  return file.path.ends_with("/" + file.name)
             ? file.path.substr(0, file.path.size() - file.name.size())
             : "";
}

const LoadedFile* find_file(const std::vector<LoadedFile>& files, const fs::path& path) {
  const std::string real = fs::weakly_canonical(path).string();
  const auto at = std::ranges::find(files, real, &LoadedFile::path);
  return at == files.end() ? nullptr : &*at;
}

/// The folders that the given files are named below, each once.
std::vector<std::string> roots_of(const KernelFiles& files) {
  std::vector<std::string> roots;
  for (const std::string& given : files.given) {
    const LoadedFile* file = find_file(files.imported, given);
    std::string root = file ? checkout_root(*file) : "";
    if (root.empty()) root = fs::weakly_canonical(given).parent_path().string() + "/";
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  return roots;
}

/// Its path among what is kept, "0/bench/kernels.py"; empty: it is of no checkout, or an installed package.
std::string kept_name(const std::string& path, const std::vector<std::string>& roots) {
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!path.starts_with(roots[i])) continue;
    const std::string name = path.substr(roots[i].size());
    const bool is_package = ("/" + name).find("/site-packages/") != std::string::npos;
    return is_package ? "" : std::to_string(i) + "/" + name;
  }
  return "";
}

/// A package may be a link to a folder of the same checkout, by which its files have their names.
void keep_link(const std::string& as, const std::vector<std::string>& roots,
               const fs::path& folder) {
  const std::string name = kept_name(as, roots);
  if (name.empty()) return;
  const fs::path root = as.substr(0, as.size() - (name.size() - name.find('/') - 1));
  fs::path link = root;
  for (const fs::path& part : fs::path(as).lexically_relative(root)) {
    link /= part;
    if (!fs::is_symlink(link)) continue;
    const fs::path to = fs::weakly_canonical(link), copy = folder / kept_name(link.string(), roots);
    if (kept_name(to.string(), roots).empty() || fs::is_symlink(copy)) return;
    fs::create_directories(copy.parent_path());
    fs::create_symlink(to.lexically_relative(fs::weakly_canonical(link.parent_path())), copy);
    return;
  }
}

}  // namespace

void keep_kernels(const KernelFiles& files, const fs::path& folder) {
  const std::vector<std::string> roots = roots_of(files);
  for (size_t i = 0; i < roots.size(); ++i) {
    fs::create_directories(folder / std::to_string(i));
    std::ofstream(folder / std::to_string(i) / kRootMark).flush();
  }
  KeptList list;
  for (const LoadedFile& file : files.loaded) {
    KeptFile entry{file.path, file.name, file.hash, kept_name(file.path, roots)};
    entry.imported = find_file(files.imported, file.path) != nullptr;
    if (!is_file(file.path)) entry.kept.clear();
    if (!entry.kept.empty()) {
      fs::create_directories((folder / entry.kept).parent_path());
      fs::copy_file(file.path, folder / entry.kept, fs::copy_options::skip_existing);
      if (!file.as.empty()) keep_link(file.as, roots, folder);
    }
    list.files.push_back(std::move(entry));
  }
  for (const std::string& given : files.given) {
    const fs::path real = fs::weakly_canonical(given);
    const std::string kept = kept_name(real.string(), roots);
    fs::create_directories((folder / kept).parent_path());
    fs::copy_file(real, folder / kept, fs::copy_options::skip_existing);
    list.given.push_back(kept);
  }
  write_list(folder, list);
}

KernelFiles kept_kernels(const fs::path& folder) {
  const KeptList list = read_list(folder);
  KernelFiles files;
  for (const std::string& given : list.given) files.given.push_back((folder / given).string());
  for (const KeptFile& e : list.files) {
    files.loaded.push_back({.path = e.path, .as = "", .name = e.name, .hash = e.hash});
    if (e.imported) files.imported.push_back(files.loaded.back());
  }
  return files;
}

std::string changed_file(const fs::path& folder) {
  for (const KeptFile& e : read_list(folder).files) {
    if (!e.kept.empty() && content_hash((folder / e.kept).string()) != e.hash) return e.kept;
  }
  return "";
}

std::string lost_file(const fs::path& folder) {
  for (const KeptFile& e : read_list(folder).files) {
    if (e.imported && e.kept.empty() && content_hash(e.path) != e.hash) return e.path;
  }
  return "";
}

bool is_settled(const fs::path& folder) {
  return read_list(folder).settled;
}

std::string settle_kept(const fs::path& folder, const std::vector<LoadedFile>& imported) {
  KeptList list = read_list(folder);
  const std::string own = fs::weakly_canonical(folder).string() + "/";
  for (KeptFile& e : list.files) {
    if (!e.imported) continue;
    const auto same = [&](const LoadedFile& f) {
      return f.hash == e.hash && (f.name == e.name || f.path == e.path);
    };
    const auto at = std::ranges::find_if(imported, same);
    if (at == imported.end()) return e.name;
    if (!at->path.starts_with(own)) e.kept.clear();
  }
  list.settled = true;
  write_list(folder, list);
  return "";
}

}  // namespace moegate
