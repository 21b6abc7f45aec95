// SPDX-License-Identifier: Apache-2.0
// Which commit made a case slower: git bisect, whose every step is an A/B of the good commit
// against the one at hand.
#pragma once

#include <string>
#include <vector>

namespace moegate {

struct BisectQuery {
  std::string good, bad;              // what the user calls them
  std::string repo;                   // empty: the one around the current folder
  std::vector<std::string> ab;        // command; empty: ci/ab of the repository
  std::vector<std::string> ab_flags;  // after its two commits; without --fail-on
  bool why = false;                   // ask at the end why the commit is slower than its parent
};

struct Culprit {
  std::string commit;   // hash and subject
  std::string details;  // author and date
  std::string log;      // of git bisect
  std::string why;      // a line for each case, or why it is not known; empty where nobody asked
};

constexpr int kBisectGiveUp = 128;  // git bisect run stops

/// What `git bisect run` is told for an exit code of the A/B (README.md): 0 good, 1 bad, 125 cannot
/// be tested (it does not build, crashes, or is inconclusive), 128 give up.
int bisect_code(int exit);

/// A line "case variant: sentence" for each row with a cause; empty: none, or no verdict.json.
std::string causes_in(const std::string& verdict);

/// Bisects in a worktree of its own in the user's cache; the user's checkout, index and branches
/// are not touched, and the worktree is removed on every way out. `step`: a command that is run in
/// the worktree with the commit checked out and exits as bisect_code says; the number of words of
/// the A/B's command, these, the good commit and the flags are appended. Throws Error(usage) when
/// there is no repository, script or such commits, or the bad commit shows no regression;
/// Error(inconclusive) when the A/B cannot tell; Error(interrupted) after Ctrl-C.
Culprit bisect(const BisectQuery& query, const std::vector<std::string>& step);

}  // namespace moegate
