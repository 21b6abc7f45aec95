// SPDX-License-Identifier: Apache-2.0
// moegate new: a commented starting point of an operator, a variant or a suite, that builds
// and verifies.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/model_suite.h"
#include "harness/commands/project.h"
#include "harness/commands/templates.h"
#include "harness/kernel/registry.h"
#include "harness/plugin/plugin.h"
#include "harness/worker/worker.h"

namespace moegate {
namespace {

struct StartOptions {
  std::string what;  // operator, variant, suite
  std::string name;
  std::string op;                   // of a variant or suite
  std::string dir;                  // empty: the usual one
  std::vector<std::string> suites;  // one has a case of the operator; empty: the tool's
  std::string model;                // whose layers a suite is of; a config.json, or its folder
  Ranks ranks;
  std::vector<std::string> kernels;
  bool python = false, cuda = false;

  Backend backend() const { return cuda ? Backend::cuda : Backend::host; }
  std::string folder(const std::string& usual = ".") const { return dir.empty() ? usual : dir; }
  OpSample sample(const Registry& registry, Backend of) const {
    return sample_of(registry, op, suites.empty() ? std::vector<std::string>{"tiny"} : suites, of);
  }
};

struct StartingPoint {
  std::vector<NewFile> files;
  std::vector<std::string> notes;  // what is left to the user
  std::vector<std::string> next;   // commands
};

namespace fs = std::filesystem;

constexpr const char* kModule = "build/my_kernels.so";  // of a project, as its CMakeLists.txt says

fs::path below(const fs::path& folder, const fs::path& name) {
  return (folder / name).lexically_normal();
}

/// "row_norm" -> "RowNorm"
std::string class_name(const std::string& name) {
  std::string text;
  bool starts = true;
  for (const char c : name) {
    if (c != '_') text += starts ? static_cast<char>(std::toupper(c)) : c;
    starts = c == '_';
  }
  return text;
}

/// Files of kernels as arguments: those that were given, and the one that is made.
std::string kernels_text(const StartOptions& options, const fs::path& made) {
  std::string text;
  for (const std::string& file : options.kernels) text += " --module " + shell_word(file);
  return made.empty() ? text : text + " --module " + shell_word(made.string());
}

// --- projects of C++

/// `prefix`: where moegate is installed; empty: CMake knows.
std::string build_line(const std::string& folder, const std::string& prefix) {
  const std::string build = shell_word(below(folder, "build").string());
  const std::string found = prefix.empty() ? "" : " -DCMAKE_PREFIX_PATH=" + shell_word(prefix);
  return fmt::format("cmake -S {0} -B {1}{2} && cmake --build {1}", shell_word(folder), build,
                     found);
}

/// Builds the project in `folder`; before that installs a moegate that runs from its build folder.
std::vector<std::string> build_lines(const std::string& folder) {
  const std::string prefix = home().string();
  if (is_file(fs::path(prefix) / "lib/cmake/moegate/moegate-config.cmake")) {
    return {build_line(folder, prefix)};
  }
  const fs::path build = fs::path(own_program()).parent_path();
  if (!is_file(build / "cmake_install.cmake")) return {build_line(folder, "/path/to/moegate")};
  const std::string sdk = (build / "sdk").string();
  return {
      fmt::format("cmake --install {} --prefix {}", shell_word(build.string()), shell_word(sdk)),
      build_line(folder, sdk)};
}

/// Two commands, as typed in a folder from where the project lies at `folder`.
using Lines = std::pair<std::string, std::string>;

/// Adds what else a project has, where none is there. `inside`: commands as typed in the project.
void add_project(const fs::path& folder, const StartOptions& options, const Lines& inside,
                 StartingPoint& start) {
  if (is_file(folder / "CMakeLists.txt")) {
    start.notes.push_back(
        fmt::format("{} is left as it is; where it lists the sources of moegate_add_kernels(), add "
                    "the new ones",
                    below(folder, "CMakeLists.txt").string()));
    return;
  }
  const Words words = {{"name", options.name},
                       {"build", build_line(".", "/path/to/moegate")},
                       {"verify", inside.first},
                       {"then", inside.second}};
  for (NewFile& file : files_of_template("project", folder, words)) start.files.push_back(file);
}

/// Whether it comes with a moegate.ini, so that `moegate verify` needs no flag: where none is here.
bool gets_settings(const StartOptions& options) {
  return options.kernels.empty() && !find_project().is_there();
}

/// Says which of these files the project's moegate.ini does not name.
void note_settings(const std::vector<std::string>& files, StartingPoint& start) {
  const Project project = find_project();
  if (!project.is_there()) return;
  std::vector<std::string> named = project.values("module"), missing;
  for (const std::string& suite : project.values("suite")) named.push_back(suite);
  for (const std::string& file : files) {
    const std::string path = fs::absolute(file).lexically_normal().string();
    if (std::ranges::count(named, path) == 0) missing.push_back(file);
  }
  if (missing.empty()) return;
  start.notes.push_back(fmt::format("to judge it every night, add {} to {}",
                                    fmt::join(missing, " and "), kProjectFile));
}

/// Adds the moegate.ini, or says what to add to the one that is there.
void add_settings(const fs::path& folder, const fs::path& module, const StartOptions& options,
                  StartingPoint& start) {
  if (!options.kernels.empty()) return;
  const std::string file = below(folder, module).string();
  const std::string suite = below(folder, options.name + ".suite").string();
  if (!gets_settings(options)) return note_settings({file, suite}, start);
  const Words words = {
      {"name", options.name},
      {"module", file},
      {"suite", suite},
      {"build", options.python ? "" : "build = " + build_line(folder.string(), "") + "\n"}};
  for (NewFile& made : files_of_template("repository", ".", words)) start.files.push_back(made);
}

// --- operators

/// Verifies it, and tries its negative controls.
Lines operator_lines(const StartOptions& options, const fs::path& folder) {
  if (gets_settings(options)) return {"moegate verify", "moegate verify --controls"};
  const std::string file = options.python ? options.name + ".py" : kModule;
  const std::string verify = fmt::format(
      "moegate verify{} --suite {} --device host", kernels_text(options, below(folder, file)),
      shell_word(below(folder, options.name + ".suite").string()));
  return {verify, verify + " --controls"};
}

StartingPoint new_operator(const StartOptions& options, const Registry& registry) {
  for (const OpEntry& op : registry.ops) {
    if (op.name != options.name) continue;
    usage_error("there is an operator '{}' already; choose another NAME", options.name);
  }
  const std::string folder = options.folder(options.python ? "." : options.name);
  const Lines lines = operator_lines(options, folder);
  const Words words = {{"name", options.name},
                       {"class", class_name(options.name)},
                       {"verify", lines.first},
                       {"then", lines.second}};
  StartingPoint start;
  start.files =
      files_of_template(options.python ? "operator-python" : "operator-cpp", folder, words);
  add_settings(folder, options.python ? options.name + ".py" : kModule, options, start);
  if (options.python) {
    start.next = {lines.first, lines.second};
    return start;
  }
  add_project(folder, options, operator_lines(options, "."), start);
  start.next = build_lines(folder);
  start.next.push_back(lines.first);
  return start;
}

// --- variants

void refuse_taken(const StartOptions& options, const Registry& registry) {
  for (const Variant& v : registry.variants) {
    if (v.op != options.op || v.backend != options.backend() || v.name != options.name) continue;
    usage_error("operator '{}' has a {} variant '{}' already; choose another NAME", options.op,
                name_of(v.backend), v.name);
  }
}

/// Verifies it, and measures it beside what it is compared with.
Lines variant_lines(const StartOptions& options, const OpSample& sample, const fs::path& file) {
  const auto line = [&](const char* command, const char* suite, const std::string& names) {
    return fmt::format("moegate {}{} --suite {} --filter {} --variant {} --device {}", command,
                       kernels_text(options, file),
                       shell_word(options.suites.empty() ? suite : sample.suite),
                       shell_word("^" + options.op + "/"), shell_word("^" + names + "$"),
                       name_of(options.backend()));
  };
  std::string both = options.name;
  if (!sample.op.before.empty()) {
    both = fmt::format("({}|{})", sample.op.before.front().variant, options.name);
  }
  return {line("verify", "tiny", options.name),
          line("run", options.cuda ? "nightly" : "smoke", both)};
}

Words words_of(const StartOptions& options, const OpSample& sample) {
  return {{"name", options.name},      {"op", options.op},
          {"op_help", sample.op.help}, {"parameters", sample.params_text()},
          {"tensors", sample.tensors}, {"case", sample.example.key()},
          {"space", sample.space},     {"class", sample.problem},
          {"header", sample.header}};
}

/// The frame of a variant around the body that is the operator's own, else that of any.
std::vector<NewFile> variant_files(const StartOptions& options, const fs::path& folder,
                                   Words words) {
  const std::string kind = options.python ? "python" : options.cuda ? "cuda" : "cpp";
  const std::string ending = options.python ? ".py" : options.cuda ? ".cu" : ".cc";
  const std::string bodies = "variant-" + kind + "/body/";
  const std::string own = bodies + options.op + ending;
  const std::string body = template_text(has_template(own) ? own : bodies + "any" + ending);
  words["body"] = trimmed(filled_in(body, words));
  return files_of_template("variant-" + kind, folder, words);
}

StartingPoint new_python_variant(const StartOptions& options, const OpSample& sample) {
  const fs::path folder = options.folder();
  const fs::path file = below(folder, options.name + ".py");
  const Lines lines = variant_lines(options, sample, file);
  Words words = words_of(options, sample);
  words["verify"] = lines.first;
  words["then"] = lines.second;
  StartingPoint start{variant_files(options, folder, words), {}, {lines.first, lines.second}};
  note_settings({file.string()}, start);
  return start;
}

/// Into the operator's folder of the checkout that is the current folder.
StartingPoint new_variant_of_checkout(const StartOptions& options, const OpSample& sample) {
  const fs::path folder = fs::path(sample.header).parent_path();
  StartingPoint start;
  start.files = variant_files(options, folder, words_of(options, sample));
  NewFile& file = start.files.front();
  file.text = "// SPDX-License-Identifier: Apache-2.0\n" + file.text;
  if (!options.cuda) file.path = folder / ("host_" + options.name + ".cc");
  start.next = {"cmake --preset default && cmake --build --preset default --target moegate",
                "build/" + variant_lines(options, sample, {}).first};
  return start;
}

StartingPoint new_cpp_variant(const StartOptions& options, const OpSample& sample) {
  const std::string& header = sample.header;
  if (!is_file(home() / header) && !is_file(home() / "include/moegate" / header)) {
    usage_error(
        "operator '{}' is not part of moegate, which has no {}; copy a variant of the operator, or "
        "use --language python",
        options.op, header);
  }
  if (options.dir.empty() && is_file(header) && is_file("harness/kernel/kernel.h")) {
    return new_variant_of_checkout(options, sample);
  }
  const std::string folder = options.folder(options.name);
  StartingPoint start;
  start.files = variant_files(options, folder, words_of(options, sample));
  note_settings({below(folder, kModule).string()}, start);
  add_project(folder, options, variant_lines(options, sample, kModule), start);
  start.next = build_lines(folder);
  start.next.push_back(variant_lines(options, sample, below(folder, kModule)).first);
  return start;
}

StartingPoint new_variant(const StartOptions& options, const Registry& registry) {
  refuse_taken(options, registry);
  const OpSample sample = options.sample(registry, options.backend());
  return options.python ? new_python_variant(options, sample) : new_cpp_variant(options, sample);
}

// --- suites

/// Commands about it; `cases` restricts what is verified.
std::vector<std::string> suite_lines(const StartOptions& options, const std::string& cases) {
  // A suite is a path where it has an ending.
  const std::string rest =
      fmt::format("{} --suite {}", kernels_text(options, {}),
                  shell_word(below(options.folder(), options.name + ".suite").string()));
  return {"moegate list cases" + rest + " --device host",
          "moegate verify" + rest + cases + " --device host"};
}

StartingPoint suite_of_model(const StartOptions& options, const Registry& registry) {
  const std::string text =
      suite_text(read_model(options.model), options.name, options.ranks, registry);
  return {{{fs::path(options.folder()) / (options.name + ".suite"), text}},
          {},
          suite_lines(options, " --axis tokens=1")};
}

StartingPoint new_suite(const StartOptions& options, const Registry& registry) {
  if (!options.model.empty()) return suite_of_model(options, registry);
  const OpSample sample = options.sample(registry, Backend::host);
  const auto line = [](const Param& param) {
    return fmt::format("{:6} = {:6}  {}", param.name, param.default_value, param.help);
  };
  Words words = words_of(options, sample);
  words["common"] = fmt::format("{}", fmt::join(mapped(common_params(), line), "\n"));
  words["values"] = sample.suite_text(registry);
  return {files_of_template("suite", options.folder(), words), {}, suite_lines(options, "")};
}

/// Writes nothing yet. Throws Error(usage) for a name that the registry has already, an unknown
/// operator, a suite without a case of it, and a C++ variant of an operator that is not of moegate.
StartingPoint starting_point(const StartOptions& options, const Registry& registry) {
  StartingPoint start = options.what == "operator"  ? new_operator(options, registry)
                        : options.what == "variant" ? new_variant(options, registry)
                                                    : new_suite(options, registry);
  for (NewFile& file : start.files) file.path = file.path.lexically_normal();
  return start;
}

// The command.

/// Also the name of a namespace, a class and files.
void check_name(const StartOptions& options) {
  const std::string& name = options.name;
  if (name.empty()) usage_error("new {}: give a NAME", options.what);
  const bool is_suite = options.what == "suite";
  const Pattern plain =
      compile_pattern("NAME", is_suite ? "[a-zA-Z][a-zA-Z0-9_-]{0,63}" : "[a-z][a-z0-9_]{0,63}");
  if (!plain.matches(name)) {
    usage_error(
        "NAME '{}' cannot name {} {}; use {}, begin with a letter, and use at most 64 characters",
        name, options.what == "operator" ? "an" : "a", options.what,
        is_suite ? "letters, digits, - and _" : "lower-case letters, digits and _");
  }
  if (name == "none" || name == "true" || name == "false") {
    usage_error("NAME '{}' is a word of Python; choose another", name);
  }
}

void check_flags(const StartOptions& options, const std::set<std::string>& given) {
  const bool of_model = given.contains("model"), is_suite = options.what == "suite";
  const std::string why = fmt::format("has no meaning here, for a new {}", options.what);
  if (!of_model) refuse_flags(given, {"tp", "ep"}, "needs --model");
  if (!is_suite) refuse_flags(given, {"model"}, why);
  if (of_model) refuse_flags(given, {"op", "suite"}, why + " of a model");
  within("--tp", options.ranks.tp.value_or(1), 1, 1024);
  within("--ep", options.ranks.ep.value_or(1), 1, 1024);
  if (options.what == "variant") {
    if (options.op.empty()) {
      usage_error("new variant: give --op OPERATOR ('moegate list kernels' names them)");
    }
    return;
  }
  if (options.cuda) usage_error("--language cuda {}", why);
  refuse_flags(given, {is_suite ? "language" : "op"}, why);
}

/// An operator that only this project has lies in its files, and its cases in its suites.
void look_in_project(StartOptions& options, const std::set<std::string>& given) {
  const auto& tools = own_registry().ops;
  if (given.contains("module") || std::ranges::count(tools, options.op, &OpEntry::name) > 0) return;
  const Project project = find_project();
  options.kernels = project.values("module");
  if (!given.contains("suite")) options.suites = project.values("suite");
}

std::optional<StartOptions> read_new(const Args& args) {
  StartOptions options;
  Flags flags;
  flags.add(flag("op", options.op,
                 "the operator of the variant or suite (default for a suite: moe_sum)"));
  std::string language;
  flags.add(choice_flag("language", language, "cpp"));
  flags.add(flag(
      "out", options.dir,
      "folder of the new files; it is made if it is missing (default: here; a project: NAME/). A "
      "folder with a CMakeLists.txt is a project and gets sources only. In a checkout of moegate, "
      "without --out, a variant in C++ goes into its operator's folder in kernels/"));
  flags.add(module_flag(options.kernels));
  flags.add(
      flag("suite", options.suites, "a suite with a case of the operator, whose shapes are used"));
  flags.add(flag("model", options.model));
  flags.add(flag("tp", options.ranks.tp));
  flags.add(flag("ep", options.ranks.ep));
  std::set<std::string> given;
  if (!parse("new", flags, args,
             {{"WHAT", po::value(&options.what)}, {"NAME", po::value(&options.name)}}, &given)) {
    return std::nullopt;
  }
  options.python = language == "python";
  options.cuda = language == "cuda";
  if (options.what != "operator" && options.what != "variant" && options.what != "suite") {
    usage_error("new{}: choose operator, variant or suite",
                options.what.empty() ? "" : fmt::format(" '{}'", options.what));
  }
  check_name(options);
  check_flags(options, given);
  if (options.what == "suite" && options.op.empty()) options.op = "moe_sum";
  if (!options.op.empty()) look_in_project(options, given);
  return options;
}

}  // namespace

int cmd_new(const Args& args) {
  const auto options = read_new(args);
  if (!options) return 0;
  StartingPoint start;
  with_kernels(options->kernels,
               [&](const Registry& registry) { start = starting_point(*options, registry); });
  write_new_files(start.files);
  for (const NewFile& file : start.files) fmt::print("{}\n", file.path.string());
  for (const std::string& note : start.notes) say("{}\n", note);
  say("next:\n");
  for (const std::string& line : start.next) say("  {}\n", line);
  return 0;
}

}  // namespace moegate
