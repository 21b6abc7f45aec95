// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <utility>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/values/json_fields.h"

namespace moegate {

namespace fs = std::filesystem;

namespace {

constexpr const char* kKernels = "kernels";  // folder of a kept program

fs::path folder_of(const std::string& program) {
  return fs::absolute(program).parent_path().parent_path();
}

constexpr const char* kList = "files.json";
/// Marks the folder below which files have their names (root_of() in plugin/loaded_files.h).
constexpr const char* kRootMark = ".git";

/// A line of the list.
struct KeptFile : LoadedFile {
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
  return parse_json(path.string(), read_file(path)).get<KeptList>();
}

void write_list(const fs::path& folder, const KeptList& list) {
  write_file_atomically(folder / kList, nlohmann::json(list).dump(1) + "\n");
}

/// The folders that the given files are named below, with a final slash, each once.
std::vector<std::string> roots_of(const KernelFiles& files) {
  std::vector<std::string> roots;
  for (const std::string& given : files.given) {
    const fs::path real = fs::weakly_canonical(given);
    std::string root = real.parent_path().string() + "/";
    for (const LoadedFile& file : files.imported) {
      const bool is_below = file.path == real && file.path.ends_with("/" + file.name);
      if (is_below) root = file.path.substr(0, file.path.size() - file.name.size());
    }
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  return roots;
}

/// Among what is kept: "0/bench/kernels.py"; empty: of no checkout, or an installed package.
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
  return fmt::format("{:016x}{:016x}", hash_bytes(all.data(), all.size(), 1),
                     hash_bytes(all.data(), all.size()));
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
  if (lost.empty()) return "";
  return lost + " has changed since the kernels were measured: bless a run of its present state";
}

std::vector<std::string> kernels_kept_with(const std::string& program) {
  return kept_kernels(folder_of(program) / kKernels).given;
}

std::string keep_program(const std::string& folder, const KernelFiles& kernels) {
  const fs::path self = own_program();  // which can be read after it was replaced, too
  const fs::path kept = fs::path(folder) / program_hash(self.string(), kernels);
  const fs::path copy = kept / "bin" / "moegate";
  std::error_code error;
  if (fs::exists(copy, error)) return copy.string();
  // Filled under another name: a copy that was interrupted must not pass for one.
  const fs::path filling = fmt::format("{}.{}.tmp", kept.string(), random_name());
  try {
    fs::create_directories(filling / "bin");
    fs::copy_file(self, filling / "bin" / "moegate");
    const fs::path installed = place_of(self).parent_path().parent_path();
    const auto keep = [&](const char* name) {
      if (!fs::is_directory(installed / name)) return;
      fs::copy(installed / name, filling / name, fs::copy_options::recursive);
    };
    keep("lib");
    if (!kernels.given.empty()) {
      keep("python");
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
  options.modules = kept.given;
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
  return fmt::format("the files of --module cannot be kept, so no replay will have them: {}", why);
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
    say("suite {}: the baseline's program is missing, so the stored numbers decide\n",
        baseline.suite);
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

void keep_kernels(const KernelFiles& files, const fs::path& folder) {
  const std::vector<std::string> roots = roots_of(files);
  for (size_t i = 0; i < roots.size(); ++i) {
    fs::create_directories(folder / std::to_string(i));
    std::ofstream(folder / std::to_string(i) / kRootMark).flush();
  }
  const auto copy = [&](const fs::path& file, const std::string& kept) {
    fs::create_directories((folder / kept).parent_path());
    fs::copy_file(file, folder / kept, fs::copy_options::skip_existing);
  };
  KeptList list;
  for (const LoadedFile& file : files.loaded) {
    KeptFile entry{file, kept_name(file.path, roots)};
    entry.imported = std::ranges::count(files.imported, file.path, &LoadedFile::path) > 0;
    if (!is_file(file.path)) entry.kept.clear();
    if (!entry.kept.empty()) {
      copy(file.path, entry.kept);
      if (!file.as.empty()) keep_link(file.as, roots, folder);
    }
    list.files.push_back(std::move(entry));
  }
  for (const std::string& given : files.given) {
    const fs::path real = fs::weakly_canonical(given);
    list.given.push_back(kept_name(real.string(), roots));
    copy(real, list.given.back());
  }
  write_list(folder, list);
}

KernelFiles kept_kernels(const fs::path& folder) {
  const KeptList list = read_list(folder);
  KernelFiles files;
  for (const std::string& given : list.given) files.given.push_back((folder / given).string());
  for (const KeptFile& e : list.files) {
    files.loaded.push_back(e);
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
