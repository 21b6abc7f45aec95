// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/resources.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/baseline/bless.h"
#include "harness/baseline/find_baseline.h"
#include "harness/campaign/program.h"
#include "harness/commands/first_launches.h"
#include "harness/commands/flags.h"
#include "harness/kernel/choice.h"
#include "harness/plugin/plugin.h"
#include "harness/store/row_profiles.h"
#include "harness/timing/gpu_code.h"
#include "harness/values/provenance.h"
#include "harness/values/resources.h"
#include "harness/worker/worker.h"

namespace moegate {

std::string author() {
  // By a shell, because there may be no git.
  const Finished git = run_program({"sh", "-c", "git config user.name"}, Output::capture);
  const std::string name = git.out.substr(0, git.out.find('\n'));
  if (!name.empty()) return name;
  const char* user = std::getenv("USER");
  return user ? user : "unknown";
}

namespace {

namespace fs = std::filesystem;
/// The program to look at; empty: modules only.
std::string resources_program(const ResourcesCommand& command) {
  if (command.program) return *command.program;
  return command.modules.empty() ? fs::canonical(own_program()).string() : "";
}

bool is_python(const std::string& file) {
  return file.ends_with(".py");
}

bool of_python(const ResourcesCommand& command) {
  return !command.program && !command.modules.empty() &&
         std::ranges::all_of(command.modules, is_python);
}

GpuCode read_all_code(const ResourcesCommand& command) {
  std::vector<std::string> files = command.modules;
  if (const std::string program = resources_program(command); !program.empty())
    files.push_back(program);
  GpuCode all;
  std::set<std::string> compilers;
  for (const std::string& file : files) {
    if (is_python(file)) {
      usage_error(
          "--module {}: kernels of Python are compiled where they run; see `moegate report "
          "resources` of a run; gate and bless take files of Python alone, with --run",
          file);
    }
    const GpuCode code = read_gpu_code(fs::path(file), command.arch());
    all.kernels.insert(all.kernels.end(), code.kernels.begin(), code.kernels.end());
    compilers.insert(code.compiler);
  }
  all.compiler = fmt::format("{}", fmt::join(compilers, "+"));
  return all;
}

struct LaunchedShapes {
  LaunchShapes shapes;
  std::string runs;  // empty: none were asked
};

/// Visits (store, run) of all that are named, and returns their names; empty: none are.
template <class Visit>
std::string each_run(const ResourcesCommand& command, Visit visit) {
  std::string runs;
  if (command.runs.empty()) return runs;
  Store store = Store::open(command.db, Store::Mode::read);
  for (const std::string& name : command.runs) {
    const RunInfo info = store.run_info(store.find_run(name));
    if (info.device.klass != command.klass) {
      usage_error("{} has class '{}', not '{}'; see --class", describe(info), info.device.klass,
                  command.klass);
    }
    runs += (runs.empty() ? "" : "; ") + describe(info);
    visit(store, info.id);
  }
  return runs;
}

LaunchedShapes launched_shapes(const ResourcesCommand& command) {
  LaunchedShapes launched;
  launched.runs = each_run(command, [&](Store& store, int64_t run) {
    for (const KernelRow& launch : launches_of(store, run)) {
      const auto threads = static_cast<int>(extent_size(launch.block));
      launched.shapes[launch.name].push_back({threads, launch.dynamic_shared});
    }
  });
  return launched;
}

/// Triton, and what else compiled: "triton 3.5.1, ptxas 12.8.93".
std::string compilers_of(const EnvironmentItems& environment) {
  std::vector<std::string> found;
  for (const EnvironmentItem& item : environment) {
    const bool is_triton = item.kind == "package" && item.name == "triton";
    if (is_triton || item.kind == "tool") found.push_back(item.name + " " + item.value);
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

struct LoadedRows {
  std::vector<ModuleRow> rows;  // by suite, variant
  std::string runs;
};

/// Of several runs the most.
LoadedRows loaded_by_runs(const ResourcesCommand& command) {
  if (command.runs.empty()) {
    usage_error("kernels of Python are compiled where they run; name a run of them: --run latest");
  }
  std::map<std::pair<std::string, std::string>, ModuleRow> most;
  LoadedRows loaded;
  loaded.runs = each_run(command, [&](Store& store, int64_t run) {
    const std::string compiler = compilers_of(store.environment(run));
    for (const FirstLaunches& one : first_launches(store, run)) {
      if (!one.modules) continue;
      const ModuleRow row{one.suite, one.variant, one.cases, *one.modules, compiler};
      const auto [old, fresh] = most.try_emplace({row.suite, row.variant}, row);
      if (!fresh && old->second.modules < row.modules) old->second = row;
    }
  });
  for (auto& [name, row] : most) loaded.rows.push_back(std::move(row));
  if (!loaded.rows.empty()) return loaded;
  give_up(Exit::environment,
          "{}: no modules were counted; measure kernels of Python on a GPU, with timer cupti",
          loaded.runs);
}

/// Of what was blessed, what suites of these rows have.
std::vector<ModuleRow> of_same_suites(std::vector<ModuleRow> before,
                                      const std::vector<ModuleRow>& now) {
  std::erase_if(before, [&](const ModuleRow& row) {
    return std::ranges::find(now, row.suite, &ModuleRow::suite) == now.end();
  });
  return before;
}

std::map<std::string, std::set<std::string>> variants_by_file(
    const std::vector<std::string>& modules) {
  std::map<std::string, std::set<std::string>> variants;
  with_kernels(modules, [&](const Registry& registry) {
    for (const Variant& v : registry.variants) {
      if (v.backend == Backend::cuda && !is_configuration(v.name)) variants[v.file].insert(v.name);
    }
  });
  return variants;
}

/// What --variant selects: kernels by name, file or variant.
class KernelSelection {
 public:
  KernelSelection(const ResourcesCommand& command, const std::vector<std::string>& modules)
      : all_(command.variant.empty()),
        pattern_(compile_pattern("--variant", command.variant)),
        variants_(variants_by_file(modules)) {}

  bool has(const KernelResources& k) const {
    return all_ || pattern_.found_in(k.kernel) || pattern_.found_in(k.file) ||
           std::ranges::any_of(variants_of(k), [&](const auto& v) { return pattern_.found_in(v); });
  }
  std::set<std::string> variants_of(const KernelResources& k) const {
    const auto found = variants_.find(k.file);
    return found == variants_.end() ? std::set<std::string>() : found->second;
  }

 private:
  bool all_;
  Pattern pattern_;
  std::map<std::string, std::set<std::string>> variants_;
};

void select_kernels(const KernelSelection& selection, const std::string& pattern, GpuCode& code) {
  std::erase_if(code.kernels, [&](const KernelResources& k) { return !selection.has(k); });
  if (!code.kernels.empty()) return;
  give_up(Exit::coverage, "--variant '{}' matches no kernel, file or variant", pattern);
}

Table::Cell known_number(const auto& value) {
  return {value ? std::to_string(*value) : "", true};
}

Table resources_table(const std::vector<ResourceRow>& rows, const KernelSelection& selection,
                      Format format) {
  Table table{{"file", "kernel", "variants", "registers", "local bytes", "static shared", "threads",
               "dynamic shared", "blocks per SM"}};
  for (const ResourceRow& row : rows) {
    const KernelResources& k = row.kernel;
    table.add(k.file, is_for_people(format) ? kernel_name(k.kernel).whole() : k.kernel,
              fmt::format("{}", fmt::join(selection.variants_of(k), " ")), k.registers,
              k.local_bytes, k.static_shared, known_number(row.shape.threads),
              known_number(row.shape.dynamic_shared), known_number(row.blocks_per_sm));
  }
  return table;
}

/// What was blessed, or what stands there: for a list it is only where shapes come from.
ResourceFile known_resources(const ResourcesCommand& command, bool blessed) {
  if (!is_file(command.file())) return {};
  return blessed ? blessed_resources(command.folder(), command.klass)
                 : read_resources(command.file());
}

void check_class(const ResourcesCommand& command) {
  if (command.arch() != 0) return;
  usage_error(
      "--class '{}': the limits of its SMs are unknown; use one such as nvidia-h200 or nvidia-l4",
      command.klass);
}

int bless_changes(const ResourcesCommand& command, const ResourceFile& now,
                  const std::vector<ResourceChange>& changes, const std::string& run) {
  Blessing blessing{.author = author(), .run = run, .reason = command.reason};
  if (const std::string program = resources_program(command); !program.empty()) {
    blessing.program =
        program_hash(program, {.given = command.modules, .imported = {}, .loaded = {}});
    // Of another program nobody says which commit it is of.
    const Provenance& p = provenance();
    if (!command.program) blessing.git_sha = p.git_sha + (p.dirty ? "+dirty" : "");
  }
  fmt::print("{}", printable(bless_resources(now, changes, command.folder(), blessing)));
  return 0;
}

int check_modules(const ResourcesCommand& command) {
  std::vector<ModuleRow> now = loaded_by_runs(command).rows;
  std::vector<ModuleRow> before =
      of_same_suites(blessed_resources(command.folder(), command.klass).modules, now);
  const Pattern selected = compile_pattern("--variant", command.variant);
  for (std::vector<ModuleRow>* rows : {&now, &before}) {
    std::erase_if(*rows, [&](const ModuleRow& row) { return !selected.found_in(row.variant); });
  }
  if (now.empty() && before.empty())
    give_up(Exit::coverage, "--variant '{}' matches no variant", command.variant);
  const ResourceVerdict verdict =
      verdict_of(changes_of(before, now), compilers_of(before), compilers_of(now),
                 count_of(now.size(), "variant"), command.file());
  fmt::print("{}", printable(verdict.text));
  return static_cast<int>(verdict.exit);
}

/// Other lines stay: of kernels that are no Python's, and of suites that the runs do not have.
int bless_modules(const ResourcesCommand& command) {
  LoadedRows loaded = loaded_by_runs(command);
  ResourceFile now = known_resources(command, true);
  now.klass = command.klass;
  const std::vector<ModuleRow> before = of_same_suites(now.modules, loaded.rows);
  const std::vector<ResourceChange> changes = changes_of(before, loaded.rows);
  std::erase_if(now.modules, [&](const ModuleRow& row) {
    return std::ranges::find(loaded.rows, row.suite, &ModuleRow::suite) != loaded.rows.end();
  });
  std::ranges::move(loaded.rows, std::back_inserter(now.modules));
  std::ranges::sort(now.modules, {},
                    [](const ModuleRow& row) { return std::tie(row.suite, row.variant); });
  return bless_changes(command, now, changes, loaded.runs);
}

}  // namespace

fs::path ResourcesCommand::folder() const {
  return baselines ? fs::path(*baselines) : find_project().baselines_to_read(modules.empty());
}

fs::path ResourcesCommand::file() const {
  return baseline_path(folder(), klass, kResources);
}

int ResourcesCommand::arch() const {
  return arch_of_class(klass);
}

void ResourcesCommand::take(const std::set<std::string>& given, const std::string& store,
                            const std::string& run, const std::optional<std::string>& typed) {
  db = store;
  baselines = typed;
  if (given.contains("run") || given.contains("db")) runs = parse_list("--run", run);
}

Flag class_flag(ResourcesCommand& command) {
  return flag("class", command.klass, "class of devices: its limits, and its folder of baselines");
}

int list_resources(const ResourcesCommand& command) {
  check_class(command);
  GpuCode code = read_all_code(command);
  const LaunchedShapes launched = launched_shapes(command);
  const KernelSelection selection(command, command.modules);
  select_kernels(selection, command.variant, code);
  const auto rows =
      in_shapes(code.kernels, launched.shapes, known_resources(command, false), command.arch());
  fmt::print("{}", render(resources_table(rows, selection, command.format), command.format));
  return 0;
}

int check_resources(const ResourcesCommand& command) {
  if (of_python(command)) return check_modules(command);
  if (!command.runs.empty()) {
    usage_error("--run and --db belong to files of Python (--module); leave them out");
  }
  check_class(command);
  GpuCode code = read_all_code(command);
  ResourceFile before = blessed_resources(command.folder(), command.klass);
  const KernelSelection selection(command, {});
  select_kernels(selection, command.variant, code);
  std::erase_if(before.rows, [&](const ResourceRow& row) { return !selection.has(row.kernel); });
  const ResourceVerdict verdict =
      verdict_of(changes_of(before, code.kernels, command.arch()), before.compiler, code.compiler,
                 count_of(code.kernels.size(), "kernel"), command.file());
  fmt::print("{}", printable(verdict.text));
  return static_cast<int>(verdict.exit);
}

int bless_resources_of(const ResourcesCommand& command) {
  if (of_python(command)) return bless_modules(command);
  check_class(command);
  const GpuCode code = read_all_code(command);
  const LaunchedShapes launched = launched_shapes(command);
  const ResourceFile before = known_resources(command, true);
  const ResourceFile now{command.klass, code.compiler,
                         in_shapes(code.kernels, launched.shapes, before, command.arch()),
                         before.modules};
  return bless_changes(command, now, changes_of(before, code.kernels, command.arch()),
                       launched.runs);
}

}  // namespace moegate
