// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/git.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "harness/base/error.h"
#include "harness/values/run.h"

namespace moegate {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

/// What runs leave in a checkout, as patterns of .gitignore: stores and their locks, a night's
/// folder, Python's compiled files. Untracked, these are no change of it.
constexpr const char* kLeftByRuns[] = {"*.sqlite", "*.sqlite[.-]*", "/out/", "__pycache__/"};

/// A repository's commit names one of its submodule, and cannot hold what is uncommitted there.
void refuse_dirty_submodules(const std::string& root) {
  // "1 XY SCMU … PATH" with C, M, U where its commit, tracked files, untracked files changed.
  std::istringstream lines(
      git_output(root, {"-c", "core.quotePath=false", "status", "--porcelain=v2",
                        "--ignore-submodules=none", "--no-renames"}));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, state, sub, word, path;
    words >> kind >> state >> sub;
    if (kind != "1" || sub.size() != 4 || sub[0] != 'S') continue;
    if (sub[2] == '.' && sub[3] == '.') continue;
    for (int modes_and_hashes = 0; modes_and_hashes < 5; ++modes_and_hashes) words >> word;
    std::getline(words >> std::ws, path);
    usage_error(
        "--repo {}: submodule {} has uncommitted changes, which would not be measured; commit them "
        "in the submodule, or give --head HEAD",
        root, path);
  }
}

/// Whether a checkout has uncommitted changes or new files, but for what runs leave there.
bool is_changed(const std::string& root) {
  if (!git_output(root, {"status", "--porcelain", "--untracked-files=no"}).empty()) return true;
  Words untracked = {"ls-files", "--others", "--exclude-standard"};
  for (const char* pattern : kLeftByRuns) untracked.push_back(fmt::format("--exclude={}", pattern));
  return !git_output(root, untracked).empty();
}

}  // namespace

Finished git(const std::string& folder, const Words& arguments) {
  Words words = {"git", "-C", folder};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Finished finished = run_program(words, Output::capture);
  while (!finished.out.empty() && finished.out.back() == '\n') finished.out.pop_back();
  return finished;
}

std::string git_output(const std::string& folder, const Words& arguments) {
  const Finished finished = git(folder, arguments);
  if (finished.exit == 0) return finished.out;
  give_up(Exit::environment, "git {} fails in {}", fmt::join(arguments, " "), folder);
}

void forget_git_environment() {
  std::istringstream names(
      run_program({"git", "rev-parse", "--local-env-vars"}, Output::capture).out);
  for (std::string name; std::getline(names, name);) {
    // Configuration is not a repository; containers pass safe.directory in it.
    if (!name.starts_with("GIT_CONFIG")) unsetenv(name.c_str());
  }
}

std::string checkout_around(const std::string& folder) {
  const Finished top = git(folder, {"rev-parse", "--show-toplevel"});
  return top.exit == 0 ? top.out : "";
}

std::string commit_of(const std::string& root, const char* flag, const std::string& name) {
  const Finished found =
      git(root, {"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"});
  if (found.exit != 0) {
    usage_error("{} '{}' is not a commit of {}; give a hash, branch or tag", flag, name, root);
  }
  return found.out;
}

std::string commit_of_tree(const std::string& root, const std::string& index) {
  refuse_dirty_submodules(root);
  const std::string head = commit_of(root, "HEAD", "HEAD");
  if (!is_changed(root)) return head;
  const fs::path own =
      git_output(root, {"rev-parse", "--path-format=absolute", "--git-path", "index"});
  std::error_code ignored;
  fs::copy_file(own, index, fs::copy_options::overwrite_existing, ignored);
  const auto with_index = [&](const Words& arguments) {
    Words words = {"env", "GIT_INDEX_FILE=" + index, "git", "-C", root};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_program(words, Output::capture);
  };
  with_index({"add", "--update"});
  with_index({"add", "--all", "--", ":/", ":(top,exclude)out",
              ":(top,exclude,glob)**/__pycache__/**", ":(top,exclude,glob)**/*.sqlite",
              ":(top,exclude,glob)**/*.sqlite[.-]*"});
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
    give_up(Exit::environment, "git cannot make a tree of {} as it is", root);
  }
  return commit.substr(0, commit.find('\n'));
}

std::map<std::string, std::string> repository_tags(const std::string& file) try {
  const std::string root = checkout_around(fs::path(file).parent_path().string());
  if (root.empty()) return {};
  const Finished head = git(root, {"rev-parse", "HEAD"});
  if (head.exit != 0) return {};
  return {{kRepositoryTag, fs::path(root).filename()},
          {kCommitTag, head.out + (is_changed(root) ? "-dirty" : "")}};
} catch (const Error&) {
  return {};
}

}  // namespace moegate
