// SPDX-License-Identifier: Apache-2.0
// Repositories: commits by their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace moegate {

/// Its output comes without the last line's end. Throws Error(environment) where there is no git.
Finished git(const std::string& folder, const std::vector<std::string>& arguments);

/// The same, for what must not fail: what it prints. Throws Error(environment).
std::string git_output(const std::string& folder, const std::vector<std::string>& arguments);

/// Unsets what ties git to a repository other than that of a folder it is given (GIT_DIR and so
/// on): a hook sets it, and git bisect for its steps, whose A/B builds in other worktrees.
void forget_git_environment();

/// The start of a commit's hash, as people are shown it.
inline std::string short_commit(const std::string& commit) {
  return commit.substr(0, 12);
}

/// The root of the checkout that a folder is in; empty where it is in none.
std::string checkout_around(const std::string& folder);

/// The hash of a commit, branch or tag. Throws Error(usage) naming the flag that gave it.
std::string commit_of(const std::string& root, const char* flag, const std::string& name);

/// A commit object of the working tree as it is, HEAD where nothing was changed: the same content
/// is the same commit, and built once. No branch or index of the user's is touched; `index` is a
/// path for its own. Throws Error(usage) where a submodule has uncommitted changes.
std::string commit_of_tree(const std::string& root, const std::string& index);

/// The repository that a file is in and what is checked out there, as tags of a run: repository,
/// commit ("…-dirty": with uncommitted changes). Empty where it is in none, or there is no git.
std::map<std::string, std::string> repository_tags(const std::string& file);

}  // namespace moegate
