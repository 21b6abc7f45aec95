// SPDX-License-Identifier: Apache-2.0
// Checkouts of commits: where they are kept, what files a build adds to them, and the home of their
// own that a program of them has.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "harness/worker/worker.h"

namespace moegate {

/// By path: Recording::loaded().
using Loads = std::map<std::string, LoadedFile>;

/// Where checkouts of a repository are kept: in the user's cache ($XDG_CACHE_HOME, ~/.cache); made
/// when missing. Throws Error(usage) where it cannot be.
std::filesystem::path cache_of_repository(const std::string& root);

/// A commit, checked out in a folder of its own.
struct Checkout {
  std::string commit;  // of uncommitted changes: one made of the tree as it is, on no branch
  std::filesystem::path folder;
  std::string name;                  // in messages: "--base 'main' (0123456789ab)"
  std::filesystem::path repository;  // that it is a commit of
  /// Of the environment of what is built and run there: HOME, TMPDIR and the caches of compilers,
  /// below a folder of this commit's, with what else the user's home has linked into that.
  std::map<std::string, std::string> variables;
};

/// A flag and its commit; an empty name: the working tree with uncommitted changes and new files.
using NamedCommit = std::pair<const char*, std::string>;

/// Checks two commits out and runs `build` (sh) in their folders, once: the newest twelve are kept
/// in cache_of_repository(), in folders whose paths are equally long, because the length shows in
/// timings. A folder whose files are not as its own build left them is made anew. Throws
/// Error(usage) for a name that is no commit, and for a working tree whose submodules have
/// uncommitted changes; Error(environment) where a commit does not build, with the last lines of
/// its output told, or where each build changes the other's folder.
std::pair<Checkout, Checkout> check_out(const std::string& root, const NamedCommit& base,
                                        const NamedCommit& head, const std::string& build);

/// Of the files that both sides' processes loaded or read, one that is not what its side's commit
/// says: of the other's checkout or home, of the working tree where the side has its own, or one
/// outside of both that a build wrote. In a sentence with its remedy; empty: there is none.
std::string foreign_file_loaded(const std::pair<Checkout, Checkout>& sides, const Loads& base,
                                const Loads& head);

/// Takes files that were added while it was measured for its build's: a kernel may compile there.
void keep_added_files(const Checkout& checkout);

// Whether the files of a folder are those that were left there, without reading them.

/// The files below a folder, a line each: size, time of the last change in nanoseconds (of the
/// inode: nobody can set it), and path. Without what git and Python keep for themselves.
std::string list_files(const std::filesystem::path& folder);

/// A path that only one of two lists has, or that changed between them; empty: they are the same.
std::string first_difference(const std::string& before, const std::string& now);

/// `before`, and the lines of `now` with paths that it does not have.
std::string with_added(const std::string& before, const std::string& now);

}  // namespace moegate
