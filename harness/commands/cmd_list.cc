// SPDX-License-Identifier: Apache-2.0
// moegate list: what there is to run, to run on, and to look at.
#include <fmt/chrono.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/base/table.h"
#include "harness/base/text.h"
#include "harness/baseline/waivers.h"
#include "harness/campaign/recording.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/planning.h"
#include "harness/commands/project.h"
#include "harness/commands/resources.h"
#include "harness/device/open.h"
#include "harness/kernel/choice.h"
#include "harness/plugin/plugin.h"
#include "harness/store/query_report.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

Table list_suites_table() {
  Table table{{"suite", "about"}};
  for (const auto& [name, about] : list_suites()) table.add(name, about);
  return table;
}

Table list_kernels_table(const RunOptions& options) {
  const Pattern kernel = compile_pattern("--variant", options.variant);
  Table table{{"operator", "variant", "device", "idea"}};
  with_kernels(options.worker.modules, [&](const Registry& registry) {
    for (const Variant& v : registry.variants) {
      if (is_configuration(v.name) || !kernel.found_in(v.name)) continue;
      table.add(v.op, v.name, name_of(v.backend), v.help);
    }
  });
  return table;
}

Table list_cases_table(const RunOptions& options) {
  require_suite(options);
  const Planner planner = planner_of(options);
  std::vector<Case> cases = load_cases(options, planner.hello);
  check_cases(cases, *planner.worker);
  const std::string none = fmt::format("(none on the {})", name_of(planner.hello.device.backend));
  // A suite of a GPU's can be looked at where there is none.
  const bool runs_here = std::ranges::any_of(cases, [&](const Case& c) {
    return std::ranges::any_of(planner.hello.variants, [&](const VariantDescription& v) {
      return v.op == c.op && !is_configuration(v.name);
    });
  });
  std::vector<PlannedCase> planned =
      cases.empty() || runs_here || !options.variant.empty()
          ? select_rows(options, std::move(cases), planner.hello).cases
          : part_of(matching_cases(options, std::move(cases), planner.hello), options);
  Table table{{"suite", "section", "case", "variants"}};
  for (PlannedCase& p : planned) {
    const PlannedCase one = std::exchange(p, {});  // of 10^5 cases not twice what they are
    const std::string names = fmt::format("{}", fmt::join(one.variants, " "));
    table.add(one.spec.suite, one.spec.section, one.spec.key(), names.empty() ? none : names);
  }
  return table;
}

Table list_devices_table() {
  Table table{{"device", "name", "class", "processors", "cache MiB", "memory GiB", "driver"}};
  const auto add = [&](const std::string& spec, const DeviceFacts& f) {
    table.add(spec, f.name, f.klass, f.processors, f.cache_bytes >> 20, f.memory_bytes >> 30,
              f.driver);
  };
  std::string why_none;
  int ordinal = 0;
  for (const DeviceFacts& f : cuda_devices(&why_none)) add(fmt::format("cuda:{}", ordinal++), f);
  if (ordinal == 0) say("no CUDA device: {}\n", why_none);
  add("host", open_host_device()->facts());
  return table;
}

/// Of results; empty where a program that did not count wrote them.
Table::Cell megabytes(int64_t bytes) {
  return {bytes > 0 ? fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6) : "", true};
}

Table list_runs_table(const std::string& db) {
  Store store = Store::open(db, Store::Mode::read);
  Statement rows(
      store.database(),
      "SELECT run_id, run.label, started, CASE WHEN shards IS NULL THEN status WHEN shard > 0 THEN "
      "status || ', shard ' || shard || ' of ' || shards ELSE status || ', ' || (SELECT count(*) "
      "FROM shard s WHERE s.run_id = run.run_id) || ' of ' || shards || ' shards' END AS status, "
      "device.name, timer, rounds, "
      "(SELECT ifnull(sum(results), 0) FROM process WHERE process.run_id = run.run_id) AS results, "
      "(SELECT sum(bytes) FROM process WHERE process.run_id = run.run_id) AS bytes FROM run JOIN "
      "device USING (device_id) "
      "LEFT JOIN campaign ON campaign.uuid = run.campaign ORDER BY run_id");
  const Columns run(rows);
  Table table{{"run", "label", "started", "status", "device", "timer", "rounds", "commit",
               "results", "MB"}};
  table.keep = {"run", "label", "started", "status", "commit"};
  while (rows.step()) {
    const int64_t id = run.integer("run_id");
    table.add(id, run.text("label"), run.text("started"), run.text("status"), run.text("name"),
              run.text("timer"), run.integer("rounds"), short_measured_commit(store.run_info(id)),
              run.integer("results"), megabytes(run.integer("bytes")));
  }
  return table;
}

Table list_reports_table() {
  Table table{{"report", "about"}};
  for (const auto& name : report_names()) table.add(name, title_of_report(find_report(name)));
  return table;
}

/// What is in force here, and where it is said.
Table project_table() {
  const Project project = find_project();
  Table table{{"setting", "value", "from", "about"}};
  const auto if_unset = [&](std::string_view name) -> std::string {
    if (name == "out") return project.out();
    if (name == "baselines") return project.baselines_to_read(project.judges_own_kernels());
    if (name == "waivers") return project.waivers(project.judges_own_kernels());
    return "";
  };
  for (const ProjectKey& key : project_keys()) {
    bool set = false;
    for (const ProjectSetting& s : project.settings) {
      if (s.key != key.name) continue;
      set = true;
      table.add(s.of_pull_request ? s.key + " (pull-request)" : s.key, s.value,
                project.file.string(), key.about);
    }
    if (!set) table.add(key.name, if_unset(key.name), "default", key.about);
  }
  const WhichStore store = nearest_store();
  table.add("store", store.path, store.why.empty() ? "default" : store.why, "where runs are kept");
  if (!project.is_there()) say("no {} here or above: these are the defaults\n", kProjectFile);
  return table;
}

/// Checks every waiver. One that expired is exit 24.
int list_waivers(const std::optional<std::string>& file) {
  const Project project = find_project();
  const auto path =
      file ? std::filesystem::path(*file) : project.waivers(project.judges_own_kernels());
  if (path.empty())
    usage_error("moegate list waivers: there is no waivers.ini; give --waivers FILE");
  const std::vector<Waiver> waivers = read_waivers(path);
  const auto day = today();
  bool expired = false;
  for (const Waiver& w : waivers) {
    const auto left = (w.expires - day).count();
    expired = expired || left < 0;
    fmt::print("{}", printable(fmt::format("{} ({}, {}): {} {:%F}\n", w.id, w.owner, w.issue,
                                           left < 0 ? "EXPIRED" : "holds until", w.expires)));
  }
  fmt::print("{}: {} waivers{}\n", path.string(), waivers.size(),
             expired ? "; fix what they waived, or delete them" : "");
  return static_cast<int>(expired ? Exit::waiver : Exit::ok);
}

struct ListCommand {
  RunOptions options;
  std::string what;
  std::optional<std::string> db, waivers;
  std::string run = "latest";
  ResourcesCommand kernels;
  Format format = Format::text;

  std::string store() const { return db ? *db : announced(nearest_store()); }
};

Table table_of(const ListCommand& command) {
  static const std::vector<std::string> all = {"suites",  "kernels", "cases", "devices",
                                               "runs",    "reports", "views", "resources",
                                               "waivers", "project"};
  const std::string choices =
      fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
  const std::string& what = command.what;
  if (what.empty()) usage_error("list what? give {}", choices);
  if (what == "suites") return list_suites_table();
  if (what == "kernels") return list_kernels_table(command.options);
  if (what == "cases") return list_cases_table(command.options);
  if (what == "devices") return list_devices_table();
  if (what == "runs") return list_runs_table(command.store());
  if (what == "reports") return list_reports_table();
  if (what == "project") return project_table();
  usage_error("list: cannot list '{}'{}; choose {}", what, did_you_mean(what, all), choices);
}

}  // namespace

int cmd_list(const Args& args) {
  ListCommand command;
  std::optional<std::string> baselines;
  Flags flags = selection_flags(command.options);
  Flags more("What to list of");
  more.add(flag("db", command.db, "the store, for runs and shapes of launches"));
  more.add(format_flag(command.format)).add(flag("waivers", command.waivers));
  Flags kernels("Of resources");
  kernels.add(flag("program", command.kernels.program)).add(class_flag(command.kernels));
  kernels.add(flag("run", command.run, "take shapes of launches from these runs: R,R"));
  kernels.add(
      flag("baselines", baselines, "folder of baselines, which also list shapes of launches"));
  flags.add(more).add(kernels);
  std::set<std::string> given;
  if (!parse("list", flags, args, {{"WHAT", po::value(&command.what)}}, &given)) return 0;
  if (command.what != "waivers")
    refuse_flags(given, {"waivers"}, "belongs to `moegate list waivers`; leave it out");
  if (command.what == "waivers") return list_waivers(command.waivers);
  if (command.what == "views") {
    fmt::print("{}", plain_views());
    return 0;
  }
  if (command.what == "resources") {
    command.kernels.take(given, given.contains("run") ? command.store() : command.db.value_or(""),
                         command.run, baselines);
    command.kernels.modules = command.options.worker.modules;
    command.kernels.variant = command.options.variant;
    command.kernels.format = command.format;
    return list_resources(command.kernels);
  }
  refuse_flags(given, {"program", "class", "run", "baselines"},
               "belongs to `moegate list resources`; leave it out");
  if (command.what == "kernels")
    refuse_flags(given, {"suite", "filter", "axis"}, "chooses cases; see `moegate list cases`");
  fmt::print("{}", render(table_of(command), command.format));
  return 0;
}

}  // namespace moegate
