// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/flags.h"

#include <boost/make_shared.hpp>

#include <filesystem>
#include <string_view>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/campaign/devices.h"
#include "harness/commands/cli.h"
#include "harness/commands/shard_flag.h"
#include "harness/device/open.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

Flag flag(const char* name, const po::value_semantic* value, const char* about) {
  return boost::make_shared<po::option_description>(name, value, about);
}

template <class T>
po::typed_value<T>* bound(T& field) {
  return po::value(&field)->default_value(field);
}

/// The path that was typed, else the store that `choose` names.
po::typed_value<std::string>* store_or(WhichStore (*choose)(), std::string& db) {
  static const std::string kNotTyped(1, '\0');  // nobody can
  const auto read = [&db, choose](const std::string& path) {
    db = path == kNotTyped ? announced(choose()) : path;
  };
  return po::value<std::string>()
      ->notifier(read)
      ->default_value(kNotTyped, choose().path)
      ->value_name("PATH");
}

void read_shard(const std::string& text, RunOptions& run) {
  std::tie(run.shard, run.shards) = parse_shard(text, environment);
}

void read_timer(const std::string& text, RunOptions& run) {
  run.worker.timer = text;
  if (text != "auto" && text != "cupti" && text != "event") {
    usage_error("--timer '{}'; use auto, cupti or event", text);
  }
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
  throw Error(Exit::environment,
              fmt::format("--device {}: there is no GPU to be used: {}; give host to measure there",
                          typed, why));
}

}  // namespace

po::typed_value<std::string>* output(std::optional<std::string>& path) {
  return read_by([&](const std::string& text) {
    check_output(text);  // not only when hours have been measured
    path = text;
  });
}

Flag db_flag(std::string& db, const char* about) {
  return flag("db", store_or(nearest_store, db), about);
}

Flag new_db_flag(std::string& db) {
  return flag("db", store_or(new_store, db), "the store; made when missing");
}

Flag own_db_flag(std::string& db, const char* about) {
  return flag("db", bound(db)->value_name("PATH"), about);
}

Flag run_flag(std::string& run) {
  run = "latest";
  return flag("run", bound(run)->value_name("R"), "latest, a number or a label");
}

Flag label_flag(std::string& label) {
  const auto read = [&](const std::string& typed) { label = plain_name("--label", typed); };
  return flag("label", read_by(read)->default_value("")->value_name("L"), "name of the run");
}

Flag resume_flag(std::optional<std::string>& run, const char* about) {
  return flag("resume", into(run)->value_name("RUN"), about);
}

Flag format_flag(Format& format, const char* about) {
  format = format_for_people();
  const auto read = [&](const std::string& text) { format = parse_format(text); };
  return flag("format", read_by(read)->value_name("F"), about);
}

Flag suite_flag(std::vector<std::string>& suites) {
  return flag("suite", po::value(&suites)->value_name("S"),
              "suite by name, or a path; may be repeated");
}

Flag sample_seed_flag(uint64_t& seed, const std::string& shown) {
  const auto read = [&](const std::string& text) {  // Boost takes -1 for the largest number
    const auto number = parse_number<uint64_t>(text);
    if (!number) usage_error("--sample-seed '{}' is no whole number from 0 on", text);
    seed = *number;
  };
  return flag("sample-seed",
              read_by(read)->default_value(std::to_string(seed), shown)->value_name("N"),
              "draws further rows that are compared with the truth, in verify also a problem set "
              "(0: none; a night draws by its date)");
}

po::typed_value<std::string>* device_of(std::string& device) {
  return read_by([&](const std::string& typed) { device = visible_devices(typed); });
}

Flag device_flag(std::string& device) {
  return flag("device", device_of(device)->default_value(device)->value_name("D"),
              "auto, host, cuda, all or cuda:N; GPUs share the work as cuda:0,1 or cuda:all");
}

Flag one_device_flag(std::string& device) {
  const auto read = [&](const std::string& typed) {
    device = typed;
    if (is_all(typed) || devices_of(typed).size() > 1) {
      usage_error("--device {}: names several; give one, as in cuda:0", typed);
    }
  };
  return flag("device", read_by(read)->default_value(device)->value_name("D"),
              "auto, host, cuda or cuda:N");
}

po::typed_value<std::vector<std::string>>* kernels_of(std::vector<std::string>& files) {
  const auto read = [&](const std::vector<std::string>& given) {
    for (const std::string& file : given) {
      // What is not there may be of another repository (ab --repo); else the worker refuses it.
      std::error_code error;
      const auto path = std::filesystem::canonical(file, error);
      files.push_back(error ? file : path.string());
    }
  };
  return po::value<std::vector<std::string>>()->notifier(read)->value_name("FILE");
}

Flag kernels_flag(std::vector<std::string>& files) {
  return flag("kernels", kernels_of(files),
              "also the kernels of this module (.so) or file of Python (.py); may be repeated");
}

Backend backend_of(const std::string& device) {
  const bool host = means_host(devices_of(device)[0]) || cuda_devices(nullptr).empty();
  return host ? Backend::host : Backend::cuda;
}

Flag rounds_flag(int& rounds, const char* about) {
  return flag("rounds", bound(rounds)->value_name("N"), about);
}

Flag why_flag(WhyMode& mode) {
  const auto read = [&](const std::string& text) { mode = parse_why(text); };
  // Passes through scripts that do not know the flag.
  const std::string set = environment("MOEGATE_WHY");
  return flag(
      "why", read_by(read)->default_value(set.empty() ? "auto" : set)->value_name("W"),
      "say why rows differ: auto (on a GPU the ten worst that fail or improve), off or all");
}

po::options_description selection_flags(RunOptions& run) {
  const auto axes = [&](const std::vector<std::string>& given) {
    for (const std::string& axis : given) {
      const auto [name, list] = split_assignment("--axis", axis);
      set_axis(run, "--axis", name, parse_list("--axis", list));
    }
  };
  po::options_description flags("Which cases, where");
  flags.add(suite_flag(run.suites));
  flags.add_options()                                                                      //
      ("filter", bound(run.filter)->value_name("RE"), "only cases whose key matches")      //
      ("kernel", bound(run.kernel)->value_name("RE"), "only variants whose name matches")  //
      ("axis", po::value<std::vector<std::string>>()->notifier(axes)->value_name("P=V,V"),
       "replace a parameter's values: tokens=1,8; may be repeated")  //
      ("seed", read_by([&](const std::string& seed) {
                 set_axis(run, "--seed", "seed", {seed});
               })->value_name("N"),
       "seed of every input");
  flags.add(sample_seed_flag(run.worker.sample_seed, std::to_string(run.worker.sample_seed)));
  flags.add(device_flag(run.worker.device));
  flags.add(kernels_flag(run.worker.kernels));
  flags.add_options()  //
      ("tiles", bound(run.worker.tiles)->value_name("DIR"),
       "folder of tile configurations (default: MOEGATE_TILES, else suites/tiles)")  //
      ("case-timeout",
       read_by([&](const std::string& text) {
         run.case_timeout_s = parse_seconds("--case-timeout", text);
       })
           ->default_value("120s")
           ->value_name("T"),
       "a row that takes longer is recorded as a timeout")  //
      ("shard", read_by([&](const std::string& text) { read_shard(text, run); })->value_name("K/N"),
       "this part of the cases, dealt out by their keys; slurm: that of the job array's task");
  return flags;
}

void require_suite(const RunOptions& run) {
  if (!run.suites.empty()) return;
  usage_error("no suite; name one with --suite ('moegate list suites' shows them)");
}

void set_axis(RunOptions& run, const char* flag, const std::string& name,
              std::vector<std::string> values) {
  if (run.axes.emplace(name, std::move(values)).second) return;
  if (std::string_view(flag) == "--axis") {
    usage_error("--axis {} is given twice; write its values in one list", name);
  }
  usage_error("{} and --axis {} are both given; keep one", flag, name);
}

po::options_description measuring_flags(RunOptions& run) {
  Sampling& sampling = run.worker.sampling;
  const auto cache = [&](const std::string& text) {
    using List = std::vector<std::string>;
    set_axis(run, "--cache", "cache", text == "both" ? List{"cold", "warm"} : List{text});
  };
  po::options_description flags("How to measure");
  flags.add_options()  //
      ("cache", read_by(cache)->value_name("C"),
       "cold, warm, both or cold-weights (default: as the suite says, else cold)")  //
      ("launch", read_by([&](const std::string& text) {
                   set_axis(run, "--launch", "launch", {text});
                 })->value_name("L"),
       "stream or graph (default: as the suite says, else stream)")  //
      ("flush",
       read_by([&](const std::string& text) { run.worker.flush = parse_flush(text); })
           ->default_value("read")
           ->value_name("F"),
       "how L2 is made cold: read (clean lines), write (dirty lines, as other tools do) or none")  //
      ("flush-factor", bound(run.worker.flush_factor)->value_name("X"),
       "bytes flushed over L2 size")  //
      ("sets", bound(run.worker.sets)->value_name("N"),
       "launch on N problem sets in turn, at most (0: 2 to 8, by their size); such runs compare "
       "with "
       "each other only")  //
      ("timer",
       read_by([&](const std::string& text) { read_timer(text, run); })
           ->default_value("auto")
           ->value_name("T"),
       "cupti, event or auto (CUPTI, else events, and every row says which)")  //
      ("min-samples", bound(sampling.min_samples)->value_name("N"),
       "before a precise level counts; 50 where the budget ends first")  //
      ("max-samples", bound(sampling.max_samples)->value_name("N"), "")  //
      ("precision",
       po::value<double>()
           ->notifier([&](double p) { sampling.precision = p / 100; })
           ->default_value(0)
           ->value_name("P"),
       "stop at a 95 % interval of ± P percent (0: 0.5 on a GPU, 2 on the host)")  //
      ("budget",
       read_by(
           [&](const std::string& text) { sampling.budget_s = parse_seconds("--budget", text); })
           ->default_value("500ms")
           ->value_name("T"),
       "wall clock per case, variant and round");
  return flags;
}

void check_measuring(const RunOptions& run) {
  const Sampling& sampling = run.worker.sampling;
  within("--flush-factor", run.worker.flush_factor, 1, 1000);
  within("--sets", run.worker.sets, 0, 8);
  within("--min-samples", sampling.min_samples, 10, 1e6);
  within("--max-samples", sampling.max_samples, sampling.min_samples, 1e6);
  within("--precision", 100 * sampling.precision, 0, 100);
}

}  // namespace moegate
