// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/flags.h"

#include <filesystem>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/commands/project.h"
#include "harness/device/open.h"
#include "harness/site/site.h"

namespace moegate {
namespace {

/// The path that was typed, else the store that `choose` names.
po::typed_value<std::string>* store_or(std::function<WhichStore()> choose, std::string& db) {
  static const std::string kNotTyped(1, '\0');  // nobody can
  const auto read = [&db, choose = std::move(choose)](const std::string& path) {
    db = path == kNotTyped ? announced(choose()) : path;
  };
  return po::value<std::string>()->notifier(read)->default_value(kNotTyped, kDefaultStore);
}

WhichStore made_store(const char* file) {
  const Project project = find_project();
  const WhichStore store = new_store(file);
  // Where MOEGATE_DB lies is somebody else's to make.
  if (project.is_there() && store.why == project.file) make_results_folder(project.out());
  return store;
}

bool is_all(const std::string& device) {
  return device == "all" || device == "cuda:all";
}

std::string visible_devices(const std::string& typed) {
  if (!is_all(typed)) return device_list(devices_of(typed));
  std::string why;
  std::vector<std::string> gpus;
  for (size_t i = 0; i < cuda_devices(&why).size(); ++i) gpus.push_back(fmt::format("cuda:{}", i));
  if (!gpus.empty()) return device_list(gpus);
  give_up(Exit::environment,
          "--device {}: there is no GPU to be used: {}; give host to measure there", typed, why);
}

/// A flag of a row of the options. One that takes several words may be repeated.
template <class Options>
Flag option_flag(const Option<Options>& row, Options& options) {
  const auto defaults = row.words(options, row.flag);
  FlagText text = row.flag;
  const auto read = [&row, &options](const std::string& word) {
    row.read(options, row.flag, word);
  };
  if (text.kind == ValueKind::suite || text.kind == ValueKind::axis) {
    return flag(text.name, po::value<std::vector<std::string>>()->notifier(
                               [read](const std::vector<std::string>& words) {
                                 for (const std::string& word : words) read(word);
                               }));
  }
  const bool shown = !defaults.empty() && !defaults[0].empty();
  // The value that is there is not read again: a default may be outside of what can be typed.
  auto* value = po::value<std::string>()->notifier([read, defaults](const std::string& word) {
    if (defaults.empty() || word != defaults[0]) read(word);
  });
  if (shown) value->default_value(defaults[0]);
  return flag(text.name, value);
}

Flags option_flags(RunOptions& run, const char* group) {
  Flags flags(group);
  for_each_option(run, [&](const auto& row, auto& options) {
    const std::string_view name = row.flag.name;
    if (name.empty() || std::string_view(row.group) != group) return;
    if (name == "device") {
      flags.add(device_flag(run.worker.device));
    } else if (name == "module") {
      flags.add(module_flag(run.worker.modules));
    } else {
      flags.add(option_flag(row, options));
    }
  });
  return flags;
}

/// The kind of a file follows from its name. Throws Error(usage) for another ending.
void add_output(PublishOptions& publish, const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".md" && ending != ".html" && ending != ".xml" && ending != ".json") {
    usage_error(
        "--out {}: the ending says what is written; use .md (report), .html (report with charts), "
        ".xml (JUnit) or .json (verdict)",
        path);
  }
  const auto [first, is_new] = publish.outputs.try_emplace(ending, path);
  if (!is_new)
    usage_error("--out {} and --out {}: both are {} files; keep one", first->second, path, ending);
  check_output(path);
}

}  // namespace

std::function<void(const std::string&)> output(std::optional<std::string>& path) {
  return [&](const std::string& text) {
    check_output(text);  // not only when hours have been measured
    path = text;
  };
}

Flag db_flag(std::string& db, const char* about) {
  return flag("db", store_or(nearest_store, db), about);
}

Flag new_db_flag(std::string& db, const char* file) {
  return flag("db", store_or([file] { return made_store(file); }, db),
              "the store, made when missing; in a project a file of its folder of results");
}

Flag run_flag(std::string& run) {
  run = "latest";
  return flag("run", run);
}

Flag label_flag(std::string& label) {
  return flag("label", [&](const std::string& typed) { label = plain_name("--label", typed); });
}

Flag format_flag(Format& format, const char* about) {
  format = Format::text;
  return flag(
      "format", [&](const std::string& text) { format = parse_format(text); }, nullptr, about);
}

Flag sample_seed_flag(uint64_t& seed, const std::string& shown) {
  const FlagText text = flag_text("sample-seed");
  auto* value = po::value<std::string>()->notifier(
      [&seed, text](const std::string& typed) { option::read(text, typed, seed); });
  return flag("sample-seed", value->default_value(std::to_string(seed), shown));
}

std::function<void(const std::string&)> device_of(std::string& device) {
  return [&](const std::string& typed) { device = visible_devices(typed); };
}

Flag device_flag(std::string& device) {
  return flag("device", device_of(device), device.c_str());
}

Flag one_device_flag(std::string& device) {
  const auto read = [&](const std::string& typed) {
    if (is_all(typed) || devices_of(typed).size() > 1) {
      usage_error("--device {}: names several; give one, as in cuda:0", typed);
    }
    device = typed;
  };
  return flag("device", read, device.c_str(), "auto, host, cuda or cuda:N");
}

std::string module_path(const std::string& file) {
  // What is not there may be of another repository (ab --repo); else the worker refuses it.
  std::error_code error;
  const auto path = std::filesystem::canonical(file, error);
  return error ? file : path.string();
}

Flag module_flag(std::vector<std::string>& files, const char* about) {
  const auto read = [&](const std::vector<std::string>& given) {
    for (const std::string& file : given) files.push_back(module_path(file));
  };
  return flag("module", po::value<std::vector<std::string>>()->notifier(read), about);
}

Backend backend_of(const std::string& device) {
  const bool host = means_host(devices_of(device)[0]) || cuda_devices(nullptr).empty();
  return host ? Backend::host : Backend::cuda;
}

std::function<void(const std::string&)> since_days(std::string& day) {
  return [&day](const std::string& text) {
    constexpr int kMostDays = 36500;
    const auto days =
        text.ends_with('d') ? parse_number<int>(text.substr(0, text.size() - 1)) : std::nullopt;
    if (!days || *days < 1 || *days > kMostDays)
      usage_error("--since '{}': give a number of days, such as 90d", text);
    day = days_ago(*days);
  };
}

Flag why_flag(WhyMode& mode, const char* about) {
  const auto read = [&](const std::string& text) { mode = parse_why(text); };
  // Passes through scripts that do not know the flag.
  const std::string set = environment("MOEGATE_WHY");
  return flag("why", read, set.empty() ? "auto" : set.c_str(), about);
}

Flags selection_flags(RunOptions& run) {
  return option_flags(run, kSelectionGroup);
}

Flags measuring_flags(RunOptions& run) {
  return option_flags(run, kMeasuringGroup);
}

void require_suite(const RunOptions& run) {
  if (!run.suites.empty()) return;
  usage_error("no suite; name one with --suite ('moegate list suites' shows them)");
}

void check_measuring(const RunOptions& run) {
  const Sampling& sampling = run.worker.sampling;
  within("--max-samples", sampling.max_samples, sampling.min_samples, 1e6);
}

Limits LimitOptions::of(Backend backend) const {
  Limits limits = Limits::of(backend);
  limits.margin = margin.value_or(limits.margin);
  limits.fail_at = fail_at.value_or(limits.fail_at);
  if (limits.fail_at < limits.margin) {
    usage_error("--fail-at {:g}% is below --margin {:g}%; a row cannot fail inside the margin",
                100 * limits.fail_at, 100 * limits.margin);
  }
  return limits;
}

Flags limit_flags(LimitOptions& limits) {
  const auto share = [](const char* name, std::optional<double>& field) {
    return flag(name, [name, &field](const std::string& text) {
      field = parse_share("--" + std::string(name), text);
    });
  };
  Flags flags("What counts as slower");
  flags.add(share("margin", limits.margin)).add(share("fail-at", limits.fail_at));
  return flags;
}

std::string use_records(GateRules& rules, const std::optional<std::string>& baselines,
                        const std::optional<std::string>& waivers) {
  const Project project = find_project();
  const bool own_kernels = rules.kernels.empty();
  rules.baselines.blessed =
      baselines ? std::filesystem::path(*baselines) : project.baselines_to_read(own_kernels);
  const std::filesystem::path file =
      waivers ? std::filesystem::path(*waivers) : project.waivers(own_kernels);
  rules.waivers = read_waivers(file, /*of_choices=*/false);
  return file;
}

Flag fail_on_flag(FailOn& fail_on, const char* if_unset) {
  return flag(
      "fail-on", [&](const std::string& list) { fail_on = parse_fail_on(list); }, if_unset);
}

Flags judging_flags(JudgingOptions& judging, const char* fail_on) {
  PublishOptions& publish = judging.publish;
  Flags flags("How to judge");
  flags.add(fail_on_flag(judging.fail_on, fail_on));
  flags.add(format_flag(publish.format));
  const auto add_outputs = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) add_output(publish, path);
  };
  flags.add(flag("out", po::value<std::vector<std::string>>()->notifier(add_outputs),
                 "also write the report (.md), as one HTML file with charts (.html), as JUnit XML "
                 "(.xml) or the verdict (.json, as the last act: a gate without one has failed); "
                 "may be repeated"));
  flags.add(flag("github", publish.github));
  flags.add(limit_flags(judging.limits));
  return flags;
}

}  // namespace moegate
