// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/checkout.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/campaign/git.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// A list: by path, size and time.
using FileList = std::map<std::string, std::string>;

FileList by_path(const std::string& list) {
  FileList files;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find(' ', line.find(' ') + 1);
    if (end != std::string::npos) files[line.substr(end + 1)] = line.substr(0, end);
  }
  return files;
}

std::string text_of(const FileList& files) {
  std::string list;
  for (const auto& [path, said] : files) list += said + ' ' + path + '\n';
  return list;
}

int64_t changed_ns(const struct stat& facts) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return facts.st_ctim.tv_sec * kNanoseconds + facts.st_ctim.tv_nsec;
}

// A home folder of its own for each checkout: caches, temporary files and packages that are
// installed for the user go there, and what else the user's home has is linked into it.

constexpr size_t kNameDigits = 12;

/// Where what is compiled, tuned or installed is kept, below the own home.
constexpr std::array<std::pair<const char*, const char*>, 17> kOwn = {{
    {"HOME", ""},
    {"TMPDIR", ".tmp"},
    {"XDG_CACHE_HOME", ".cache"},
    {"PYTHONUSERBASE", ".local"},
    {"PYTHONPYCACHEPREFIX", ".cache/pycache"},
    {"TRITON_HOME", ""},
    {"TRITON_CACHE_DIR", ".triton/cache"},
    {"TORCHINDUCTOR_CACHE_DIR", ".cache/torchinductor"},
    {"TORCH_EXTENSIONS_DIR", ".cache/torch_extensions"},
    {"CUDA_CACHE_PATH", ".nv/ComputeCache"},
    {"NUMBA_CACHE_DIR", ".cache/numba"},
    {"CUPY_CACHE_DIR", ".cupy/kernel_cache"},
    {"DG_JIT_CACHE_DIR", ".deep_gemm"},
    {"DG_CACHE_DIR", ".deep_gemm"},
    {"FLASHINFER_WORKSPACE_BASE", ""},
    {"TVM_FFI_CACHE_DIR", ".cache/tvm-ffi"},
    {"VLLM_CACHE_ROOT", ".cache/vllm"},
}};

/// Of the user's home: caches, which are every side's own, and what has such parts.
constexpr auto kNotLinked =
    std::to_array<std::string_view>({".cache", ".local", ".triton", ".nv", ".cupy", ".deep_gemm",
                                     ".tvm", ".aiter", ".numba", ".keras"});

/// Files there that tools read their settings from. Others may be what a kernel has tuned.
constexpr auto kSettings = std::to_array<std::string_view>(
    {".gitconfig", ".git-credentials", ".netrc", ".condarc", ".pypirc", ".npmrc"});

/// In a cache, what is kept by its content, or has no kernels: packages, compiled objects, models.
constexpr std::array kSharedCaches = {"pip", "uv", "ccache", "huggingface", "bazel"};

void link(const fs::path& from, const fs::path& to) {
  std::error_code there;
  if (fs::exists(from, there)) fs::create_symlink(from, to, there);
}

void link_entries(const fs::path& from, const fs::path& to,
                  std::span<const std::string_view> without) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(from, ignored)) {
    const std::string name = entry.path().filename();
    if (std::ranges::count(without, name) > 0) continue;
    const bool is_linked = entry.is_directory(ignored) || std::ranges::count(kSettings, name) > 0;
    if (is_linked) link(entry.path(), to / name);
  }
}

/// Packages that the user installed stay where they are and are found behind those of the checkout.
void link_packages(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(from, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("python")) {
      link(entry.path(), to / name);
      continue;
    }
    const fs::path packages = entry.path() / "site-packages", own = to / name / "site-packages";
    if (!fs::is_directory(packages, ignored)) continue;
    fs::create_directories(own, ignored);
    // Read in the order of their names: the checkout's own come first.
    write_file_atomically(own / "zzz_of_the_user.pth",
                          fmt::format("import site; site.addsitedir({})\n",
                                      nlohmann::json(packages.string()).dump()));
  }
}

fs::path users(const char* variable, const fs::path& otherwise) {
  const std::string set = environment(variable);
  return set.empty() ? otherwise : fs::path(set);
}

/// Its home and temporary files: beside it by a short name; a socket's path has at most 107 bytes.
fs::path own_folder(const fs::path& checkout) {
  return checkout.parent_path() / (checkout.filename().string().substr(0, kNameDigits) + ".own");
}

/// The variables that have the processes of a checkout use it. Their lengths are those of any other
/// checkout in the same folder: they lie on the stack, and its alignment shows in timings.
std::map<std::string, std::string> own_variables(const fs::path& checkout) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, below] : kOwn) {
    const fs::path home = own_folder(checkout);
    variables[name] = *below == 0 ? home : home / below;
  }
  return variables;
}

/// Makes it, or links what is new in the user's home. Throws Error(usage) where it cannot.
void make_own_home(const fs::path& checkout) {
  const fs::path home = own_folder(checkout);
  std::error_code error;
  for (const auto& [name, below] : kOwn) {
    if (!error) fs::create_directories(home / below, error);
  }
  if (!error) fs::create_directories(home / ".local" / "lib", error);
  if (error) usage_error("{}: {}; set XDG_CACHE_HOME", home.string(), error.message());
  const fs::path theirs = environment("HOME");
  if (theirs.empty()) return;
  link_entries(theirs, home, kNotLinked);
  link_entries(theirs / ".local", home / ".local",
               std::to_array<std::string_view>({"lib", "state"}));
  const fs::path packages = users("PYTHONUSERBASE", theirs / ".local");
  link_packages(packages / "lib", home / ".local" / "lib");
  const fs::path cache = users("XDG_CACHE_HOME", theirs / ".cache");
  for (const char* shared : kSharedCaches) link(cache / shared, home / ".cache" / shared);
}

using Words = std::vector<std::string>;

/// A file beside it that says how far it is: whole; which build was run; the files that this left.
fs::path beside(const fs::path& folder, const char* what) {
  return folder.string() + what;
}
constexpr const char *kWhole = ".whole", *kBuilt = ".built", *kFiles = ".files", *kLog = ".log",
                     *kWhen = ".when";

int64_t now_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

bool written_by_build(const Checkout& checkout, const std::string& file) {
  struct stat facts {};
  const fs::path when = beside(checkout.folder, kWhen);
  if (stat(file.c_str(), &facts) != 0 || !is_file(when)) return false;
  int64_t first = 0, last = 0;
  std::istringstream(read_file(when)) >> first >> last;
  constexpr int64_t kTick = 10'000'000;  // the clock of files is that much behind
  return first - kTick <= changed_ns(facts) && changed_ns(facts) <= last;
}

/// Runs the build, unless this one has been run there. Its output goes to a file beside the folder.
void build_once(const Checkout& checkout, const std::string& build) {
  const fs::path& folder = checkout.folder;
  const fs::path log = beside(folder, kLog), built = beside(folder, kBuilt);
  std::error_code absent;
  if (fs::exists(built, absent) && read_file(built) == build + "\n") {
    fs::last_write_time(built, fs::file_time_type::clock::now(), absent);  // used, so not old
    return;
  }
  fs::remove(built, absent);
  const int64_t begin = now_ns();
  if (!build.empty()) {
    say("building {}\n", folder.string());
    const std::string script = R"(cd "$1" && exec sh -c "$2" >"$3" 2>&1)";
    Words words = {"env"};
    // So that CMake's find_package(moegate) finds the moegate that will load what is built.
    if (environment("moegate_ROOT").empty()) words.push_back("moegate_ROOT=" + home().string());
    for (const auto& [name, value] : checkout.variables) words.push_back(name + "=" + value);
    words.insert(words.end(), {"sh", "-c", script, "build", folder.string(), build, log.string()});
    const int exit = run_interruptible(words);
    if (exit != 0) {
      run_program({"tail", "-n", "40", log.string()}, Output::show);
      give_up(Exit::environment,
              "{} does not build: --build '{}' exits with {}; its output is in {}", checkout.name,
              build, exit, log.string());
    }
  }
  write_file_atomically(beside(folder, kWhen), fmt::format("{} {}\n", begin, now_ns()));
  write_file_atomically(beside(folder, kFiles), list_files(folder));
  write_file_atomically(built, build + "\n");
}

void remove_checkout(const std::string& root, const fs::path& folder) {
  std::error_code ignored;
  git(root, {"worktree", "remove", "--force", folder.string()});
  fs::remove_all(folder, ignored);
  fs::remove_all(own_folder(folder), ignored);
  for (const char* what : {kBuilt, kWhole, kLog, kFiles, kWhen})
    fs::remove(beside(folder, what), ignored);
}

void keep_newest(const std::string& root, const fs::path& cache) {
  constexpr size_t kKept = 12;
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> built;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (entry.path().extension() == kBuilt) built.emplace_back(entry.last_write_time(), entry);
  }
  std::sort(built.rbegin(), built.rend());
  for (size_t i = kKept; i < built.size(); ++i) {
    remove_checkout(root, fs::path(built[i].second).replace_extension());
  }
}

std::string own_files(const fs::path& folder) {
  constexpr size_t kLongest = size_t{1} << 30;
  return read_file(beside(folder, kFiles), kLongest);
}

/// A file that is not as its own build left it, as none is before a build; empty: all are.
std::string foreign_file(const fs::path& folder) {
  if (!is_file(beside(folder, kFiles))) return "the list of its files";
  return first_difference(own_files(folder), list_files(folder));
}

/// As long as its files are its own; else anew.
void make(const std::string& root, const Checkout& checkout, const std::string& build) {
  const fs::path& folder = checkout.folder;
  // A checkout that was killed has some files, and no mark that it is whole.
  const bool whole = is_file(beside(folder, kWhole)) && fs::exists(folder);
  const bool built = whole && is_file(beside(folder, kBuilt));
  const std::string foreign = built ? foreign_file(folder) : "";
  if (!foreign.empty()) {
    say("{}: {} changed after the build; the checkout is made again\n", checkout.name, foreign);
  }
  if (!built || !foreign.empty()) {
    remove_checkout(root, folder);
    git(root, {"worktree", "prune"});
    git_output(root, {"worktree", "add", "--force", "--detach", "--quiet", folder.string(),
                      checkout.commit});
    write_file_atomically(beside(folder, kWhole), "");
  }
  make_own_home(folder);
  build_once(checkout, build);
}

Checkout checkout_of(const std::string& root, const fs::path& cache, const NamedCommit& named) {
  const auto& [flag, name] = named;
  const std::string commit = name.empty()
                                 ? commit_of_tree(root, cache / fmt::format("index.{}", getpid()))
                                 : commit_of(root, flag, name);
  const fs::path folder = cache / commit;
  return {
      .commit = commit,
      .folder = folder,
      .name = fmt::format("{} ({})", name.empty() ? "the working tree" : flag + (" '" + name + "'"),
                          short_commit(commit)),
      .repository = root,
      .variables = own_variables(folder)};
}

bool is_below(const std::string& file, const fs::path& folder) {
  return file.starts_with(fs::weakly_canonical(folder).string() + "/");
}

/// A side's file that is the other's, or the repository's though the side has its own.
std::string of_others(const Checkout& own, const Checkout& other, const Loads& loads) {
  for (const auto& [file, loaded] : loads) {
    if (is_below(file, other.folder) || is_below(file, own_folder(other.folder))) {
      return fmt::format(
          "{} was measured with {}, which belongs to {}; let --build install only below its own "
          "folder or home",
          own.name, file, other.name);
    }
    if (!is_below(file, own.repository) || is_below(file, own.folder)) continue;
    const fs::path there = fs::path(file).lexically_relative(fs::weakly_canonical(own.repository));
    if (!is_file(own.folder / there)) continue;
    return fmt::format(
        "{} was measured with {} of the working tree instead of its own file, because an installed "
        "package points there; uninstall that package, or let --build install the package of the "
        "checkout",
        own.name, file);
  }
  return "";
}

}  // namespace

std::string list_files(const fs::path& folder) {
  FileList files;
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
    std::ranges::replace(path, '\n', '?');
    files[path] = fmt::format("{} {}", facts.st_size, changed_ns(facts));
  }
  return text_of(files);
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
  FileList all = by_path(before);
  all.merge(by_path(now));
  return text_of(all);
}

fs::path cache_of_repository(const std::string& root) {
  const fs::path home = environment("HOME");
  fs::path cache = users("XDG_CACHE_HOME", home.empty() ? home : home / ".cache");
  // Not in /tmp: whoever made the folder there first could change what is built in it.
  if (cache.empty()) {
    usage_error(
        "{}: HOME and XDG_CACHE_HOME are not set, so there is no folder for checkouts; set one "
        "of them to a folder of your own",
        root);
  }
  cache /= fmt::format("moegate/{:016x}", hash_bytes(root.data(), root.size()));
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) usage_error("{}: {}; set XDG_CACHE_HOME", cache.string(), error.message());
  return cache;
}

std::pair<Checkout, Checkout> check_out(const std::string& root, const NamedCommit& base,
                                        const NamedCommit& head, const std::string& build) {
  const fs::path cache = cache_of_repository(root);
  const FileLock lock(cache / "lock", FileLock::Wait::yes);
  std::pair<Checkout, Checkout> both{checkout_of(root, cache, base),
                                     checkout_of(root, cache, head)};
  const auto& [b, h] = both;
  make(root, b, build);
  if (h.commit != b.commit) {
    make(root, h, build);
    make(root, b, build);  // where the head's build has changed it
    const std::string foreign = foreign_file(h.folder);
    if (!foreign.empty()) {
      give_up(Exit::environment,
              "{}: the build of {} changes {} there, too, so the two sides are no longer their "
              "commits; let --build '{}' write only below its own folder",
              h.name, b.name, foreign, build);
    }
  }
  keep_newest(root, cache);
  return both;
}

std::string foreign_file_loaded(const std::pair<Checkout, Checkout>& sides, const Loads& base,
                                const Loads& head) {
  const auto& [b, h] = sides;
  if (b.commit == h.commit) return "";
  for (const std::string& why : {of_others(b, h, base), of_others(h, b, head)}) {
    if (!why.empty()) return why;
  }
  for (const auto& [file, loaded] : base) {
    if (!head.contains(file)) continue;
    for (const Checkout* built : {&b, &h}) {
      if (!written_by_build(*built, file)) continue;
      return fmt::format(
          "both sides were measured with {}, which the build of {} wrote; let --build write only "
          "below its own folder or home",
          file, built->name);
    }
  }
  return "";
}

void keep_added_files(const Checkout& checkout) {
  const fs::path files = beside(checkout.folder, kFiles);
  const FileLock lock(checkout.folder.parent_path() / "lock", FileLock::Wait::yes);
  if (!is_file(files)) return;
  write_file_atomically(files, with_added(own_files(checkout.folder), list_files(checkout.folder)));
}

}  // namespace moegate
