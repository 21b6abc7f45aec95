// SPDX-License-Identifier: Apache-2.0
// moegate.ini, the file in which a repository says once what to judge. A key is the name of a flag
// and means what the flag means; a flag that is typed wins. Here too: where results, baselines and
// waivers lie, with and without the file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moegate {

constexpr const char* kProjectFile = "moegate.ini";

/// A line of the file. A list is one setting for each of its parts.
struct ProjectSetting {
  std::string key;
  std::string value;  // a path is absolute
  bool of_pull_request = false;

  bool operator==(const ProjectSetting&) const = default;
};

struct Project {
  std::filesystem::path file;  // empty: there is none
  std::filesystem::path root;  // its folder; without a file the current folder
  std::vector<ProjectSetting> settings;

  bool is_there() const { return !file.empty(); }
  /// Whether it names no module, so that the tool's own kernels are judged.
  bool judges_own_kernels() const { return values("module").empty(); }
  /// Of a key; for `ab` those of [pull-request] replace those of [project]. Empty: not set.
  std::vector<std::string> values(std::string_view key, std::string_view verb = "") const;
  /// The settings that a verb takes for flags that nobody typed: flag and values.
  std::vector<std::pair<std::string, std::vector<std::string>>> flags_of(
      std::string_view verb) const;

  // Paths that start at the current folder where they lie below it.

  /// Folder of what is measured; default: out.
  std::filesystem::path out() const { return folder("out"); }
  /// Folder of baselines that are written; default: baselines.
  std::filesystem::path baselines() const { return folder("baselines"); }
  /// baselines(), but the tool's own where that is no folder and its own kernels are judged.
  std::filesystem::path baselines_to_read(bool own_kernels) const;
  /// The file of waivers; default: waivers.ini, but the tool's own as above. Empty: there is none.
  std::filesystem::path waivers(bool own_kernels) const;
  /// A folder by its key, which is what it is called where nobody sets it.
  std::filesystem::path folder(const char* key) const;
};

/// The nearest moegate.ini of `folder` and above. Throws Error(usage) where it cannot be read.
Project find_project(const std::filesystem::path& folder = std::filesystem::current_path());
/// Throws Error(usage) naming the file, the section and the key for what is unknown, empty, or
/// given twice where one value is taken.
Project parse_project(const std::string& text, const std::filesystem::path& file);

/// Sets MOEGATE_PYTHON to the project's interpreter where nobody set it.
void use_python(const Project& project);

/// What judges a head that may say something else: the base's file, with the head's suites beside
/// its own and the head's way to build. A pull request cannot drop a suite or loosen a limit.
Project judged_by(const Project& base, const Project& head);

/// Of the project's repository on the web, for links to its commits: the key `repository`, else
/// git's remote "origin"; empty: none.
std::string repository_address(const Project& project);

struct ProjectKey {
  const char* name;
  const char* about;
  /// What its value is. A command may be one of PATH, a suite one that is known by its name.
  enum class Form { text, command, path, paths, suites } form;
  const char* verbs;             // that take it as a flag
  bool of_pull_request = false;  // may stand in that section, too
};
std::span<const ProjectKey> project_keys();

// The store that is meant where no --db names one.

inline constexpr const char* kDefaultStore = "results.sqlite";
/// Of a project's A/Bs, whose runs are no nights.
inline constexpr const char* kAbStore = "ab.sqlite";

struct WhichStore {
  std::string path;
  std::string why;  // it is not kDefaultStore; empty where it is
};

/// For what reads a store: MOEGATE_DB, else the project's, else results.sqlite of this folder, else
/// out/results.sqlite, where a night keeps its store.
WhichStore nearest_store();
/// For what makes a store: MOEGATE_DB, else this file in the project's folder of results, else
/// results.sqlite, so that a night's store gets no runs of anybody else.
WhichStore new_store(const char* file = kDefaultStore);

/// Its path; says on standard error which it is and why, unless it is kDefaultStore.
std::string announced(const WhichStore& store);

/// Makes the folder of a project's results; a .gitignore in it keeps them out of the repository.
void make_results_folder(const std::filesystem::path& folder);

}  // namespace moegate
