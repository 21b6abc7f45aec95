// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/resources.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/baseline/bless.h"
#include "harness/baseline/find_baseline.h"
#include "harness/campaign/program.h"
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

GpuCode read_all_code(const ResourcesCommand& command) {
  std::vector<std::string> files = command.modules;
  if (const std::string program = resources_program(command); !program.empty())
    files.push_back(program);
  GpuCode all;
  std::set<std::string> compilers;
  for (const std::string& file : files) {
    if (file.ends_with(".py")) {
      usage_error(
          "--module {}: kernels of Python are compiled where they run; see `moegate report "
          "resources` of a run",
          file);
    }
    const GpuCode code = read_gpu_code(fs::path(file), command.arch());
    all.kernels.insert(all.kernels.end(), code.kernels.begin(), code.kernels.end());
    compilers.insert(code.compiler);
  }
  all.compiler = fmt::format("{}", fmt::join(compilers, "+"));
  return all;
}

/// How kernels were launched, and by which runs.
struct LaunchedShapes {
  LaunchShapes shapes;
  std::string runs;  // empty: none were asked
};

LaunchedShapes launched_shapes(const ResourcesCommand& command) {
  LaunchedShapes launched;
  if (command.runs.empty()) return launched;
  Store store = Store::open(command.db, Store::Mode::read);
  for (const std::string& name : command.runs) {
    const RunInfo info = store.run_info(store.find_run(name));
    if (info.device.klass != command.klass) {
      usage_error("{} has class '{}', not '{}'; see --class", describe(info), info.device.klass,
                  command.klass);
    }
    launched.runs += (launched.runs.empty() ? "" : "; ") + describe(info);
    for (const KernelRow& launch : launches_of(store, info.id)) {
      const auto threads = static_cast<int>(extent_size(launch.block));
      launched.shapes[launch.name].push_back({threads, launch.dynamic_shared});
    }
  }
  return launched;
}

/// Names of variants by the file that defines them.
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
               "dynamic shared", "blocks per SM"},
              {}};
  for (const ResourceRow& row : rows) {
    const KernelResources& k = row.kernel;
    table.rows.push_back({{k.file},
                          {is_for_people(format) ? kernel_name(k.kernel).whole() : k.kernel},
                          {fmt::format("{}", fmt::join(selection.variants_of(k), " "))},
                          {std::to_string(k.registers), true},
                          {std::to_string(k.local_bytes), true},
                          {std::to_string(k.static_shared), true},
                          known_number(row.shape.threads),
                          known_number(row.shape.dynamic_shared),
                          known_number(row.blocks_per_sm)});
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

int bless_kernels(const ResourcesCommand& command, const GpuCode& code, const ResourceFile& now,
                  const ResourceFile& before, const std::string& run) {
  ResourceBlessing blessing{.reason = command.reason, .author = author(), .run = run};
  if (const std::string program = resources_program(command); !program.empty()) {
    blessing.program =
        program_hash(program, {.given = command.modules, .imported = {}, .loaded = {}});
    // Of another program nobody says which commit it is of.
    const Provenance& p = provenance();
    if (!command.program) blessing.git_sha = p.git_sha + (p.dirty ? "+dirty" : "");
  }
  fmt::print("{}", printable(bless_resources(now, changes_of(before, code.kernels, command.arch()),
                                             command.folder(), blessing)));
  return 0;
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
  check_class(command);
  GpuCode code = read_all_code(command);
  ResourceFile before = blessed_resources(command.folder(), command.klass);
  const KernelSelection selection(command, {});
  select_kernels(selection, command.variant, code);
  std::erase_if(before.rows, [&](const ResourceRow& row) { return !selection.has(row.kernel); });
  const ResourceVerdict verdict =
      verdict_of(changes_of(before, code.kernels, command.arch()), before, code.compiler,
                 code.kernels.size(), command.file());
  fmt::print("{}", printable(verdict.text));
  return static_cast<int>(verdict.exit);
}

int bless_resources_of(const ResourcesCommand& command) {
  check_class(command);
  const GpuCode code = read_all_code(command);
  const LaunchedShapes launched = launched_shapes(command);
  const ResourceFile before = known_resources(command, true);
  const ResourceFile now{command.klass, code.compiler,
                         in_shapes(code.kernels, launched.shapes, before, command.arch())};
  return bless_kernels(command, code, now, before, launched.runs);
}

}  // namespace moegate
