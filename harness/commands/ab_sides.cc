// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/ab_sides.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/plugin/plugin.h"
#include "harness/values/environment_facts.h"
#include "harness/worker/jit_caches.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// They lead any interpreter to the packages of one.
constexpr auto kOfOneInterpreter =
    std::to_array<const char*>({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"});

bool is_variable(const std::string& key) {
  static const Pattern variable = compile_pattern("", "[A-Z_][A-Z0-9_]*");
  return variable.matches(key);
}

/// A command of PATH stays one; the link of a virtual environment is what makes it one.
std::string interpreter_path(const std::string& value) {
  return value.find('/') == std::string::npos ? value
                                              : fs::absolute(value).lexically_normal().string();
}

/// What tells one environment from another before anything is loaded.
struct KnownEnvironment {
  std::string name;       // "cpython 3.11.2, 12 distributions"
  std::string key;        // equal where nothing differs
  std::string libraries;  // folders of its packages' libraries of CUDA, with colons between them
};

/// Starts `program` as a side's workers are started.
std::vector<std::string> started_as(const AbSide& side, const std::string& program) {
  std::vector<std::string> words = {"env"};
  for (const auto& [name, value] : side.variables) {
    if (value.empty()) words.insert(words.end(), {"-u", name});
  }
  for (const auto& [name, value] : side.variables) {
    if (!value.empty()) words.push_back(name + "=" + value);
  }
  words.push_back(program);
  return words;
}

/// Throws Error(usage) naming the side for an interpreter that no worker can run.
void check_interpreter(const char* name, const AbSide& side, const std::string& python) {
  const auto place = place_of_python(started_as(side, python));
  if (!place) {
    usage_error("--{} python={}: cannot be run; give the path of a Python from 3.8 on", name,
                python);
  }
  int major = 0, minor = 0;
  std::sscanf(place->version.c_str(), "%d.%d", &major, &minor);
  if (std::pair(major, minor) < std::pair(3, 8)) {
    usage_error("--{} python={}: is Python {}; give one from 3.8 on", name, python, place->version);
  }
  void* library = dlopen(place->library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    usage_error(
        "--{} python={}: has no shared library ({}); install it (Debian: libpython3.x), or give a "
        "Python that was built with --enable-shared",
        name, python, place->library);
  }
  dlclose(library);
}

KnownEnvironment known_environment(const char* name, const AbSide& side,
                                   const std::string& python) {
  std::vector<std::string> words = started_as(side, python);
  words.push_back((home() / "python/moegate/_environment.py").string());
  const Finished told = run_program(words, Output::capture_stdout);
  if (told.exit != 0)
    usage_error("--{} python={}: does not say what is installed for it; see above", name, python);
  const nlohmann::json said = nlohmann::json::parse(told.out);
  const auto folders = said.at("libraries").get<std::vector<std::string>>();
  return {.name = fmt::format("{}, {} distributions", said.at("python").get<std::string>(),
                              said.at("installed").size()),
          .key = said.at("python").dump() + said.at("installed").dump(),
          .libraries = fmt::format("{}", fmt::join(folders, ":"))};
}

/// LD_LIBRARY_PATH with a side's own libraries first and none of other environments' packages.
std::string library_path(const std::string& own) {
  std::string path = own;
  std::istringstream before(environment("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(before, folder, ':');) {
    if (!folder.empty() && folder.find("-packages/nvidia/") == std::string::npos)
      path += (path.empty() ? "" : ":") + folder;
  }
  return path;
}

/// Returns what makes the side's environment another one.
std::string use_environment(const char* name, AbSide& side, const fs::path& out, bool has_python) {
  std::string key;
  for (const auto& [variable, value] : side.stated) {
    side.variables[variable] = value;
    key += variable + "=" + value + "\n";
  }
  if (!has_python) return key;
  if (!side.python.empty()) {
    for (const char* variable : kOfOneInterpreter) side.variables.try_emplace(variable, "");
    side.variables["MOEGATE_PYTHON"] = side.python;
  }
  const std::string usual = environment("MOEGATE_PYTHON");
  const std::string python = !side.python.empty() ? side.python : usual.empty() ? "python3" : usual;
  check_interpreter(name, side, python);
  const KnownEnvironment known = known_environment(name, side, python);
  if (!side.python.empty())
    side.variables.try_emplace("LD_LIBRARY_PATH", library_path(known.libraries));
  key += known.key;
  constexpr size_t kDigits = 16;
  side.variables.merge(jit_caches(out / "jit" / sha256(key).substr(0, kDigits)));
  say("{}: {}\n", name, known.name);
  return key;
}

bool are_python(const std::vector<std::string>& files) {
  return std::ranges::any_of(files, [](const std::string& file) { return file.ends_with(".py"); });
}

}  // namespace

void read_side(const char* name, const std::vector<std::string>& words, AbSide& side,
               std::string& commit) {
  for (const std::string& word : words) {
    const size_t at = word.find('=');
    const std::string key = word.substr(0, at);
    const std::string value = at == std::string::npos ? "" : word.substr(at + 1);
    if (at != std::string::npos && is_variable(key)) {
      side.stated[key] = value;
    } else if (key == "python" && !value.empty()) {
      side.python = interpreter_path(value);
    } else if (key == "program" && !value.empty()) {
      side.program = value;
    } else if (key == "module" && !value.empty()) {
      side.kernels.push_back(module_path(value));
    } else if (key == "variant" && !value.empty()) {
      side.variant = value;
    } else if (key == "label" && !value.empty()) {
      side.label = plain_name(fmt::format("--{} label", name), value);
    } else if (at != std::string::npos) {
      usage_error(
          "--{} {}: use python=PATH, program=PATH, module=FILE, variant=V, label=L, a variable "
          "NAME=TEXT or a commit",
          name, word);
    } else if (commit.empty()) {
      commit = word;
    } else {
      usage_error("--{} names two commits, {} and {}; keep one", name, commit, word);
    }
  }
}

void use_environments(AbOptions& ab, const fs::path& out, bool measure_identical) {
  const auto is_stated = [](const AbSide& side) {
    return !side.python.empty() || !side.stated.empty();
  };
  if (!is_stated(ab.base) && !is_stated(ab.head)) return;
  const auto kernels_of = [&](const AbSide& side) {
    return side.kernels.empty() ? ab.run.worker.modules : side.kernels;
  };
  const bool has_python = are_python(kernels_of(ab.base)) || are_python(kernels_of(ab.head));
  for (const auto& [name, side] : {std::pair("base", &ab.base), std::pair("head", &ab.head)}) {
    if (!side->python.empty() && !has_python)
      usage_error("--{} python={}: no kernels are in Python; give --module FILE.py", name,
                  side->python);
  }
  if (has_python) make_results_folder(out);
  const std::string base = use_environment("base", ab.base, out, has_python);
  const std::string head = use_environment("head", ab.head, out, has_python);
  const bool same_kernels = ab.base.program == ab.head.program &&
                            kernels_of(ab.base) == kernels_of(ab.head) &&
                            ab.base.variant == ab.head.variant && !ab.checkouts;
  if (base == head && same_kernels && !measure_identical) {
    usage_error(
        "ab: both sides are the same: interpreter, packages, variables and kernels; give another "
        "--base or --head, or --measure-identical");
  }
  ab.environments = true;
  ab.only_environments = same_kernels;
  // The code of this program's own kernels says nothing of what a variable makes of them.
  if (kernels_of(ab.base).empty() && ab.base.stated != ab.head.stated) ab.trust_code = false;
}

Args without_secrets(Args words) {
  for (std::string& word : words) {
    // "NAME=TEXT", or "--head=NAME=TEXT"
    const size_t start = word.starts_with("--") ? word.find('=') + 1 : 0;
    const size_t end = word.find('=', start);
    if (end == std::string::npos) continue;
    const std::string name = word.substr(start, end - start);
    if (is_variable(name) && is_secret(name)) word = word.substr(0, end + 1) + "***";
  }
  return words;
}

}  // namespace moegate
