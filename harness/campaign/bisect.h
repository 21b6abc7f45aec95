// SPDX-License-Identifier: Apache-2.0
// Which commit made a case slower: git bisect, whose every step is an A/B of the good commit
// against the one at hand.
#pragma once

#include <string>
#include <vector>

namespace moegate {

struct BisectQuery {
  std::string good, bad;              // what the user calls them
  std::string ab;                     // script; empty: ci/ab of the repository
  std::vector<std::string> ab_flags;  // after its two commits
};

struct Culprit {
  std::string commit;   // hash and subject
  std::string details;  // author and date
  std::string log;      // of git bisect
};

constexpr int kBisectGiveUp = 128;  // git bisect run stops

/// What `git bisect run` is told for an exit code of the A/B (README.md): 0 good, 1 bad, 125 cannot
/// be tested (it does not build, crashes, or is inconclusive), 128 give up.
int bisect_code(int exit);

/// Unsets what ties git to a repository other than that of a folder it is given (GIT_DIR and so
/// on): a hook sets it, and git bisect for its steps, whose A/B builds in other worktrees.
void forget_git_environment();

/// Bisects in a worktree of its own below .cache/ of the repository around the current folder; the
/// user's checkout, index and branches are not touched, and the worktree is removed on every way
/// out. `step`: a command that is run in the worktree with the commit checked out and exits as
/// bisect_code says; the script, the good commit and the flags are appended. Throws Error(usage)
/// when there is no repository, script or such commits, or the bad commit shows no regression;
/// Error(inconclusive) when the A/B cannot tell; Error(interrupted) after Ctrl-C.
Culprit bisect(const BisectQuery& query, const std::vector<std::string>& step);

}  // namespace moegate
