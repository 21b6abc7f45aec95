// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/project.h"

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/git.h"
#include "harness/report/what_changed.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

using Form = ProjectKey::Form;

constexpr auto kKeys = std::to_array<ProjectKey>({
    {"module", "files of kernels: .py, and modules of C++ and CUDA (.so)", Form::paths,
     "run verify profile ab nightly gate bisect selftest list tune"},
    {"program", "a moegate that a checkout builds, with kernels of its own", Form::text, ""},
    {"suite", "files of cases, or names of suites", Form::suites,
     "run verify profile ab nightly bisect selftest list", true},
    {"build", "builds a checkout, in its folder", Form::text, "ab bisect"},
    {"python", "the interpreter of .py files", Form::command, ""},
    {"repository", "its address on the web, for links (default: that of origin)", Form::text, ""},
    {"device", "as --device", Form::text, "run verify profile ab nightly gate bisect selftest list",
     true},
    {"out", "folder of results (default: out)", Form::path, "nightly"},
    {"baselines", "folder of baselines (default: baselines)", Form::path,
     "nightly gate bless list"},
    {"waivers", "file of waivers (default: waivers.ini)", Form::path, "nightly gate list"},
    {"budget", "wall time of a night", Form::text, "nightly"},
    {"rounds", "as --rounds, of a night; of an A/B in [pull-request]", Form::text, "nightly", true},
    {"filter", "as --filter, of an A/B", Form::text, "ab", true},
    {"fail-on", "as --fail-on", Form::text, "nightly gate ab", true},
    {"margin", "as --margin", Form::text, "nightly gate ab", true},
    {"fail-at", "as --fail-at", Form::text, "nightly gate ab", true},
    {"why", "as --why", Form::text, "nightly gate ab", true},
    {"require-baseline", "true: a suite without a baseline fails", Form::text, "nightly gate"},
});

bool takes(const ProjectKey& key, std::string_view verb) {
  return fmt::format(" {} ", key.verbs).find(fmt::format(" {} ", verb)) != std::string::npos;
}

/// Shorter where it lies below the current folder.
fs::path shown(const fs::path& path) {
  std::error_code error;
  const fs::path near = fs::proximate(path, error);
  const bool below = !error && !near.empty() && *near.begin() != "..";
  return below ? near.lexically_normal() : path;
}

std::string value_of(const ProjectKey& key, const fs::path& root, const std::string& text) {
  const bool in_folder = text.find('/') != std::string::npos;
  const bool is_path = key.form == Form::path || key.form == Form::paths ||
                       (key.form == Form::command && in_folder) ||
                       (key.form == Form::suites && (in_folder || text.ends_with(".suite")));
  return is_path ? (root / text).lexically_normal().string() : text;
}

/// Adds what one line says.
void add(Project& project, const std::string& section, const std::string& name,
         const std::string& text) {
  const auto fail = [&](const std::string& what) {
    usage_error("{}: [{}] {}", project.file.string(), section, what);
  };
  const bool of_pull_request = section == "pull-request";
  if (section != "project" && !of_pull_request)
    fail("is no section; use [project] or [pull-request]");
  const auto key = std::ranges::find(kKeys, name, &ProjectKey::name);
  if (key == kKeys.end()) {
    std::vector<std::string> known;
    for (const ProjectKey& k : kKeys) known.emplace_back(k.name);
    fail(fmt::format("has no key '{}'{}; `moegate list project` shows the keys", name,
                     did_you_mean(name, known)));
  }
  if (of_pull_request && !key->of_pull_request)
    fail(fmt::format("cannot have '{}', which is the same for every A/B; move it to [project]",
                     name));
  const bool many = key->form == Form::paths || key->form == Form::suites;
  const auto same = [&](const ProjectSetting& s) {
    return s.key == name && s.of_pull_request == of_pull_request;
  };
  if (!many && std::ranges::any_of(project.settings, same))
    fail(fmt::format("has '{}' twice; keep one", name));
  for (const std::string& part : many ? split_list(text) : std::vector<std::string>{text}) {
    if (part.empty()) fail(fmt::format("'{}' has no value; give one or delete the line", name));
    project.settings.push_back({name, value_of(*key, project.root, part), of_pull_request});
  }
}

}  // namespace

std::span<const ProjectKey> project_keys() {
  return kKeys;
}

Project parse_project(const std::string& text, const fs::path& file) {
  namespace po = boost::program_options;
  Project project{file, file.parent_path(), {}};
  std::istringstream in(text);
  try {
    const auto parsed = po::parse_config_file(in, po::options_description(), true);
    for (const po::option& option : parsed.options) {
      const size_t dot = option.string_key.find('.');
      if (dot == std::string::npos)
        usage_error("{}: '{}' stands before the first section; begin with [project]", file.string(),
                    option.string_key);
      add(project, option.string_key.substr(0, dot), option.string_key.substr(dot + 1),
          option.value.at(0));
    }
  } catch (const po::error& e) {
    usage_error("{}: {}", file.string(), e.what());
  }
  return project;
}

Project find_project(const fs::path& folder) {
  for (fs::path at = fs::weakly_canonical(folder);; at = at.parent_path()) {
    const fs::path file = at / kProjectFile;
    if (is_file(file)) return parse_project(read_file(file), file);
    if (at == at.parent_path()) return {{}, folder, {}};
  }
}

std::vector<std::string> Project::values(std::string_view key, std::string_view verb) const {
  std::vector<std::string> of_project, of_pull_request;
  for (const ProjectSetting& s : settings) {
    if (s.key == key) (s.of_pull_request ? of_pull_request : of_project).push_back(s.value);
  }
  return verb == "ab" && !of_pull_request.empty() ? of_pull_request : of_project;
}

std::vector<std::pair<std::string, std::vector<std::string>>> Project::flags_of(
    std::string_view verb) const {
  std::vector<std::pair<std::string, std::vector<std::string>>> flags;
  for (const ProjectKey& key : kKeys) {
    const std::string name = key.name;
    std::vector<std::string> found = values(name, verb);
    const bool given_for_it = verb == "ab" && std::ranges::any_of(settings, [&](const auto& s) {
                                return s.key == name && s.of_pull_request;
                              });
    if (!found.empty() && (takes(key, verb) || given_for_it)) flags.emplace_back(name, found);
  }
  return flags;
}

fs::path Project::folder(const char* key) const {
  const auto set = values(key);
  return shown(set.empty() ? root / key : fs::path(set[0]));
}

fs::path Project::baselines_to_read(bool own_kernels) const {
  std::error_code ignored;
  const fs::path mine = baselines();
  return own_kernels && !fs::exists(mine, ignored) ? home() / "baselines" : mine;
}

fs::path Project::waivers(bool own_kernels) const {
  const auto set = values("waivers");
  if (!set.empty()) return shown(set[0]);
  std::error_code ignored;
  const fs::path mine = shown(root / "waivers.ini");
  if (fs::exists(mine, ignored)) return mine;
  const fs::path tools = home() / "ci" / "waivers.ini";
  return own_kernels && fs::exists(tools, ignored) ? tools : fs::path();
}

void use_python(const Project& project) {
  const auto python = project.values("python");
  if (!python.empty()) setenv("MOEGATE_PYTHON", python[0].c_str(), /*overwrite=*/0);
}

std::string repository_address(const Project& project) {
  const auto set = project.values("repository");
  if (!set.empty()) return web_address(set[0]);
  const Finished remote = git(project.root.string(), {"config", "--get", "remote.origin.url"});
  return remote.exit == 0 ? web_address(trimmed(remote.out)) : "";
}

Project judged_by(const Project& base, const Project& head) {
  constexpr std::array kOfHead = {"build", "python", "program", "module", "out"};
  const auto is_of_head = [&](const ProjectSetting& s) {
    return std::ranges::count(kOfHead, s.key) > 0;
  };
  Project both = head;
  std::erase_if(both.settings,
                [&](const ProjectSetting& s) { return !is_of_head(s) && s.key != "suite"; });
  for (const ProjectSetting& s : base.settings) {
    if (std::ranges::count(both.settings, s) == 0 && !is_of_head(s)) both.settings.push_back(s);
  }
  return both;
}

void make_results_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error) usage_error("{}: cannot be made: {}", folder.string(), error.message());
  if (made) write_file_atomically(folder / ".gitignore", "*\n");
}

WhichStore new_store(const char* file) {
  const std::string set = environment("MOEGATE_DB");
  if (!set.empty()) return {set, "MOEGATE_DB"};
  const Project project = find_project();
  if (project.is_there()) return {project.out() / file, project.file};
  return {kDefaultStore, ""};
}

WhichStore nearest_store() {
  const WhichStore store = new_store();
  constexpr const char* kNightsStore = "out/results.sqlite";
  std::error_code ignored;  // what cannot be looked at is not there
  const bool night =
      store.why.empty() && !fs::exists(kDefaultStore, ignored) && fs::exists(kNightsStore, ignored);
  return night ? WhichStore{kNightsStore, "no results.sqlite here"} : store;
}

std::string announced(const WhichStore& store) {
  if (!store.why.empty()) say("store: {} ({})\n", store.path, store.why);
  return store.path;
}

}  // namespace moegate
