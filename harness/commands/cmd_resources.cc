// SPDX-License-Identifier: Apache-2.0
// moegate resources: what a program's kernels take of an SM, and whether that is what was blessed.
#include <algorithm>
#include <map>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/home.h"
#include "harness/base/pattern.h"
#include "harness/campaign/program.h"
#include "harness/commands/author.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/judge/find_baseline.h"
#include "harness/judge/resource_bless.h"
#include "harness/kernel/tile_file.h"
#include "harness/plugin/plugin.h"
#include "harness/store/launches.h"
#include "harness/timing/gpu_code.h"
#include "harness/values/kernel_name.h"
#include "harness/values/occupancy.h"
#include "harness/values/provenance.h"
#include "harness/worker/worker.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

struct ResourcesCommand {
  std::optional<std::string> program;
  std::vector<std::string> modules;
  std::string klass = "nvidia-h200", kernel, reason;
  std::string db = kDefaultStore;
  std::vector<std::string> runs;  // whose launches give shapes
  bool check = false, bless = false;
  std::optional<std::string> baselines;
  Format format = Format::md;

  fs::path folder() const { return baselines ? fs::path(*baselines) : home() / "baselines"; }
  fs::path file() const { return baseline_path(folder(), klass, kResources); }
  int arch() const { return arch_of_class(klass); }
};

void check_resource_flags(const ResourcesCommand& command, const std::set<std::string>& given) {
  const auto only = [&](const char* flag, bool good, const char* with) {
    if (given.count(flag) > 0 && !good) usage_error("resources: --{} goes with {}", flag, with);
  };
  if (command.check && command.bless) usage_error("resources: --check or --bless, not both");
  const bool lists = !command.check && !command.bless;
  only("reason", command.bless, "--bless");
  only("format", lists, "the list of kernels, not with --check and --bless");
  only("kernel", !command.bless, "the list and --check; --bless writes all kernels");
  only("db", !command.check, "the list and --bless; --check takes the shapes of the file");
  only("run", !command.check, "the list and --bless; --check takes the shapes of the file");
  if (command.arch() == 0) {
    usage_error("--class '{}': what an SM of it has is not known; use a Hopper's, as nvidia-h200",
                command.klass);
  }
}

std::optional<ResourcesCommand> read_resources_command(const Args& args) {
  ResourcesCommand command;
  po::options_description flags("Options");
  flags.add_options()  //
      ("program", into(command.program)->value_name("P"),
       "the program whose kernels to look at (default: this one, or with --kernels none)")   //
      ("kernels", kernels_of(command.modules), "modules of kernels (.so); may be repeated")  //
      ("kernel", po::value(&command.kernel)->default_value("")->value_name("RE"),
       "only kernels whose name, file or variant matches")  //
      ("class", po::value(&command.klass)->default_value(command.klass)->value_name("C"),
       "device class: its limits, and its folder in --baselines");
  flags.add(db_flag(command.db, "a store: shapes of launches are those of runs of it"));
  flags.add_options()  //
      ("run", po::value(&command.runs)->composing()->value_name("R"),
       "latest, a number or a label; may be repeated (default: latest)")  //
      ("check", po::bool_switch(&command.check),
       "compare with CLASS/resources.tsv; what is worse is exit 10, what else changed 13")    //
      ("bless", po::bool_switch(&command.bless), "write CLASS/resources.tsv and the ledger")  //
      ("reason", po::value(&command.reason)->default_value("")->value_name("TEXT"),
       "why the file moves; goes into the ledger")  //
      ("baselines", into(command.baselines)->value_name("DIR"),
       "default: baselines/ of the tool's home");
  flags.add(format_flag(command.format));
  std::set<std::string> given;
  if (!parse("moegate resources [options]", flags, args, {}, &given)) return std::nullopt;
  check_resource_flags(command, given);
  plain_name("--reason", command.reason);
  if (given.count("db") > 0 && command.runs.empty()) command.runs = {"latest"};
  return command;
}

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
          "--kernels {}: kernels of Python are compiled where they run; see `moegate report "
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
      usage_error("resources: {} is of class '{}', not '{}'; see --class", describe(info),
                  info.device.klass, command.klass);
    }
    launched.runs += (launched.runs.empty() ? "" : "; ") + describe(info);
    for (const StoredLaunch& launch : launches_of(store, info.id)) {
      const auto threads = static_cast<int>(extent_size(launch.block));
      launched.shapes[launch.kernel].push_back({threads, launch.dynamic_shared});
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
      if (v.backend == Backend::cuda && !is_tile_variant(v.name)) variants[v.file].insert(v.name);
    }
  });
  return variants;
}

/// What --kernel selects.
class KernelSelection {
 public:
  KernelSelection(const ResourcesCommand& command, const std::vector<std::string>& modules)
      : all_(command.kernel.empty()),
        pattern_(compile_pattern("--kernel", command.kernel)),
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
  throw Error(Exit::coverage,
              fmt::format("--kernel '{}' matches no kernel, file or variant", pattern));
}

Table::Cell known_number(const auto& value) {
  return {value ? std::to_string(*value) : "", true};
}

Table resources_table(const std::vector<ResourceRow>& rows, const KernelSelection& selection,
                      Format format) {
  Table table{{"file", "kernel", "variants", "registers", "local bytes", "static shared", "threads",
               "dynamic shared", "blocks per SM"},
              {}};
  const bool for_people = format == Format::text || format == Format::md;
  for (const ResourceRow& row : rows) {
    const KernelResources& k = row.kernel;
    table.rows.push_back({{k.file},
                          {for_people ? kernel_name(k.kernel).whole() : k.kernel},
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

int check_resources(const ResourcesCommand& command, GpuCode code) {
  ResourceFile before = blessed_resources(command.folder(), command.klass);
  const KernelSelection selection(command, {});
  select_kernels(selection, command.kernel, code);
  std::erase_if(before.rows, [&](const ResourceRow& row) { return !selection.has(row.kernel); });
  const ResourceVerdict verdict =
      verdict_of(changes_of(before, code.kernels, command.arch()), before, code.compiler,
                 code.kernels.size(), command.file());
  fmt::print("{}", printable(verdict.text));
  return static_cast<int>(verdict.exit);
}

/// What was blessed, or what stands there: for a list it is only where shapes come from.
ResourceFile known_resources(const ResourcesCommand& command) {
  if (!is_file(command.file())) return {};
  return command.bless ? blessed_resources(command.folder(), command.klass)
                       : read_resources(command.file());
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

int cmd_resources(const Args& args) {
  const auto command = read_resources_command(args);
  if (!command) return 0;
  GpuCode code = read_all_code(*command);
  if (command->check) return check_resources(*command, std::move(code));

  const LaunchedShapes launched = launched_shapes(*command);
  const ResourceFile before = known_resources(*command);
  if (command->bless) {
    const ResourceFile now{command->klass, code.compiler,
                           in_shapes(code.kernels, launched.shapes, before, command->arch())};
    return bless_kernels(*command, code, now, before, launched.runs);
  }
  const KernelSelection selection(*command, command->modules);
  select_kernels(selection, command->kernel, code);
  const auto rows = in_shapes(code.kernels, launched.shapes, before, command->arch());
  fmt::print("{}", render(resources_table(rows, selection, command->format), command->format));
  return 0;
}

}  // namespace moegate
