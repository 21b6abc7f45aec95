// SPDX-License-Identifier: Apache-2.0
// Repositories: commits by their names, and checkouts of them that are built once and kept.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace moegate {

/// Runs git in a folder; what it prints comes without the last line's end. Throws Error(environment)
/// where there is no git.
Finished git(const std::string& folder, const std::vector<std::string>& arguments);

/// Unsets what ties git to a repository other than that of a folder it is given (GIT_DIR and so
/// on): a hook sets it, and git bisect for its steps, whose A/B builds in other worktrees.
void forget_git_environment();

/// The start of a commit's hash, as people are shown it.
std::string short_commit(const std::string& commit);

/// The root of the checkout that a folder is in; empty where it is in none.
std::string checkout_around(const std::string& folder);

/// The hash of a commit, branch or tag. Throws Error(usage) naming the flag that gave it.
std::string commit_of(const std::string& root, const char* flag, const std::string& name);

/// The repository that a file is in and what is checked out there, as tags of a run: repository, commit
/// ("…-dirty": with uncommitted changes). Empty where it is in none, or there is no git.
std::map<std::string, std::string> repository_tags(const std::string& file);

/// Where checkouts of a repository are kept: in the user's cache ($XDG_CACHE_HOME, ~/.cache); made when
/// missing. Throws Error(usage) where it cannot be.
std::filesystem::path cache_of_repository(const std::string& root);

/// A commit, checked out in a folder of its own.
struct Checkout {
  std::string commit;  // of uncommitted changes: one made of the tree as it is, on no branch
  std::filesystem::path folder;
  std::string name;  // in messages: "--base 'main' (0123456789ab)"
};

/// Checks a commit out and runs `build` (sh) in its folder, once: the newest twelve are kept
/// in cache_of_repository(), in folders whose paths are equally long, because the length shows in
/// timings. `name` empty: the working tree, uncommitted changes and new files included. Throws
/// Error(usage) for a name that is no commit, Error(environment) where it does not build, with the last
/// lines of its output told.
Checkout check_out(const std::string& root, const char* flag, const std::string& name,
                   const std::string& build);

}  // namespace moegate
