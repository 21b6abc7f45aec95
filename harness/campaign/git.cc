// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/git.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/file_lock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// As git(), for what must not fail.
std::string git_output(const std::string& root, const Words& arguments) {
  const Finished finished = git(root, arguments);
  if (finished.exit == 0) return finished.out;
  throw Error(Exit::environment,
              fmt::format("git {} fails in {}", fmt::join(arguments, " "), root));
}

/// A commit object of the tree as it is: the same content is the same commit, so that it is built once.
/// No branch and no index of the user's is touched.
std::string commit_of_tree(const std::string& root) {
  const std::string head = commit_of(root, "HEAD", "HEAD");
  if (git_output(root, {"status", "--porcelain"}).empty()) return head;
  const fs::path index = cache_of_repository(root) / fmt::format("index.{}", getpid());
  const fs::path own =
      git_output(root, {"rev-parse", "--path-format=absolute", "--git-path", "index"});
  std::error_code ignored;
  fs::copy_file(own, index, fs::copy_options::overwrite_existing, ignored);
  const auto with_index = [&](const Words& arguments) {
    Words words = {"env", "GIT_INDEX_FILE=" + index.string(), "git", "-C", root};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_program(words, Output::capture);
  };
  with_index({"add", "-A"});
  std::string tree = with_index({"write-tree"}).out;
  fs::remove(index, ignored);
  tree = tree.substr(0, tree.find('\n'));
  const std::string date = git_output(root, {"show", "-s", "--format=%cI", "HEAD"});
  Words words = {"env"};
  for (const char* who : {"AUTHOR", "COMMITTER"}) {
    words.push_back(fmt::format("GIT_{}_NAME=moegate", who));
    words.push_back(fmt::format("GIT_{}_EMAIL=moegate@localhost", who));
    words.push_back(fmt::format("GIT_{}_DATE={}", who, date));
  }
  for (const char* word : {"git", "-C", root.c_str(), "commit-tree", tree.c_str(), "-p",
                           head.c_str(), "-m", "uncommitted changes"}) {
    words.emplace_back(word);
  }
  const std::string commit = run_program(words, Output::capture).out;
  if (commit.empty()) {
    throw Error(Exit::environment, fmt::format("git cannot make a tree of {} as it is", root));
  }
  return commit.substr(0, commit.find('\n'));
}

/// Runs the build, unless this one has been run there. Its output goes to a file beside the folder.
void build_once(const Checkout& checkout, const std::string& build) {
  const fs::path& folder = checkout.folder;
  const fs::path log = folder.string() + ".log", built = folder.string() + ".built";
  std::error_code absent;
  if (fs::exists(built, absent) && read_file(built) == build + "\n") {
    fs::last_write_time(built, fs::file_time_type::clock::now(), absent);  // used, so not old
    return;
  }
  if (!build.empty()) {
    say("building {}\n", folder.string());
    const std::string script = R"(cd "$1" && exec sh -c "$2" >"$3" 2>&1)";
    const int exit =
        run_interruptible({"sh", "-c", script, "build", folder.string(), build, log.string()});
    if (exit != 0) {
      run_program({"tail", "-n", "40", log.string()}, Output::show);
      throw Error(Exit::environment,
                  fmt::format("{} does not build: --build '{}' exits with {}; all it said is in {}",
                              checkout.name, build, exit, log.string()));
    }
  }
  write_file_atomically(built, build + "\n");
}

void keep_newest(const std::string& root, const fs::path& cache) {
  constexpr size_t kKept = 12;
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> built;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (entry.path().extension() == ".built") built.emplace_back(entry.last_write_time(), entry);
  }
  std::sort(built.rbegin(), built.rend());
  for (size_t i = kKept; i < built.size(); ++i) {
    const fs::path folder = fs::path(built[i].second).replace_extension();
    git(root, {"worktree", "remove", "--force", folder.string()});
    fs::remove_all(folder, ignored);
    for (const char* beside : {".built", ".whole", ".log"}) {
      fs::remove(folder.string() + beside, ignored);
    }
  }
}

}  // namespace

Finished git(const std::string& folder, const Words& arguments) {
  Words words = {"git", "-C", folder};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Finished finished = run_program(words, Output::capture);
  while (!finished.out.empty() && finished.out.back() == '\n') finished.out.pop_back();
  return finished;
}

void forget_git_environment() {
  std::istringstream names(
      run_program({"git", "rev-parse", "--local-env-vars"}, Output::capture).out);
  for (std::string name; std::getline(names, name);) {
    // Configuration is not a repository; containers pass safe.directory in it.
    if (!name.starts_with("GIT_CONFIG")) unsetenv(name.c_str());
  }
}

std::string short_commit(const std::string& commit) {
  return commit.substr(0, 12);
}

std::string checkout_around(const std::string& folder) {
  const Finished top = git(folder, {"rev-parse", "--show-toplevel"});
  return top.exit == 0 ? top.out : "";
}

std::string commit_of(const std::string& root, const char* flag, const std::string& name) {
  const Finished found =
      git(root, {"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"});
  if (found.exit != 0) {
    usage_error("{} '{}' is no commit of {}; give a hash, branch or tag", flag, name, root);
  }
  return found.out;
}

std::map<std::string, std::string> repository_tags(const std::string& file) try {
  const std::string root = checkout_around(fs::path(file).parent_path().string());
  if (root.empty()) return {};
  const Finished head = git(root, {"rev-parse", "HEAD"});
  if (head.exit != 0) return {};
  const bool dirty = !git(root, {"status", "--porcelain"}).out.empty();
  return {{"repository", fs::path(root).filename()},
          {"commit", head.out + (dirty ? "-dirty" : "")}};
} catch (const Error&) {
  return {};
}

fs::path cache_of_repository(const std::string& root) {
  fs::path cache = environment("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = environment("HOME");
    cache = fs::path(home.empty() ? "/tmp" : home) / ".cache";
  }
  cache /= fmt::format("moegate/{:016x}", hash_bytes(root.data(), root.size()));
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) usage_error("{}: {}; set XDG_CACHE_HOME", cache.string(), error.message());
  return cache;
}

Checkout check_out(const std::string& root, const char* flag, const std::string& name,
                   const std::string& build) {
  const fs::path cache = cache_of_repository(root);
  const FileLock lock(cache / "lock", FileLock::Wait::yes);
  std::error_code error;
  const std::string commit = name.empty() ? commit_of_tree(root) : commit_of(root, flag, name);
  const fs::path folder = cache / commit, whole = folder.string() + ".whole";
  // A checkout that was killed has some files, and no mark that it is whole.
  if (!fs::exists(whole) || !fs::exists(folder)) {
    fs::remove_all(folder, error);
    git(root, {"worktree", "prune"});
    git_output(root,
               {"worktree", "add", "--force", "--detach", "--quiet", folder.string(), commit});
    write_file_atomically(whole, "");
  }
  const Checkout checkout = {
      .commit = commit,
      .folder = folder,
      .name = fmt::format("{} ({})", name.empty() ? "the working tree" : flag + (" '" + name + "'"),
                          short_commit(commit))};
  build_once(checkout, build);
  keep_newest(root, cache);
  return checkout;
}

}  // namespace moegate
