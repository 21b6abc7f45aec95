// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "harness/base/deadline.h"
#include "harness/worker/child.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

using nlohmann::json;

class Process : public Worker {
 public:
  explicit Process(const WorkerOptions& options)
      : program_(options.program),
        answer_timeout_s_(options.answer_timeout_s),
        // It runs main.cc's row "worker", which is serve_runner(). A fault in the registrations
        // belongs to the parent.
        child_(program_.empty() ? own_program() : program_, options.cpus, options.variables) {
    greet(options);
  }

  const Hello& hello() const override { return hello_; }
  pid_t pid() const override { return child_.pid(); }
  bool alive() const override { return child_.alive(); }

  std::vector<CaseAnswer> check(const std::vector<CaseQuestion>& questions) override {
    if (!can(feature::kCheck)) return std::vector<CaseAnswer>(questions.size());
    std::string end;
    try {
      json reply;
      Arrival arrival = Arrival::closed;
      const bool like = can(feature::kLike);
      if (send(child_.to(), like ? check_message(questions) : encode(Check{questions})))
        arrival = hear(answer_timeout_s_, reply);
      if (arrival == Arrival::message && kind_of(reply) == Fault::kKind) {
        end = decode<Fault>(reply).fault;
      } else if (arrival == Arrival::message) {
        Answers all = decode<Answers>(reply);
        if (all.answers.size() == questions.size()) return std::move(all.answers);
        end = fmt::format("{} answers to {} questions", all.answers.size(), questions.size());
      }
      const std::string how = end_of(arrival);
      if (end.empty()) end = how;
    } catch (const Nonsense& nonsense) {
      child_.bury(true);
      end = fmt::format("its answer cannot be understood: {}", nonsense.what());
    }
    give_up(Exit::environment, "the worker did not check the cases: {}", end);
  }

  Result run(const Request& request, const RowTime& time, CaseData& data) override {
    Result result;
    result.variant = request.variant;
    result.deterministic = false;
    if (request.canary.asked() && !can(feature::kCanary)) {
      result.status = Status::unsupported;
      result.why = "this worker builds in no canaries";
      return result;
    }
    const double start = steady_seconds();
    json reply;
    Arrival arrival = Arrival::closed;
    result.status = Status::crashed;
    try {
      bool launches = tells_launch(request);
      double most = launches ? std::max(time.first_launch_s, time.row_s) : time.row_s;
      if (send(child_.to(), encode(request))) arrival = hear(most, reply);
      if (launches && arrival == Arrival::message && kind_of(reply) == feature::kLaunched) {
        launches = false;
        arrival = hear(most = time.row_s, reply);
      }
      if (arrival == Arrival::message && kind_of(reply) != Fault::kKind) {
        return take(request, reply, steady_seconds() - start, data);
      }
      if (arrival == Arrival::timeout) {
        child_.bury(true);
        result.status = Status::timeout;
        result.why = fmt::format("no {} within {:g} s; if it needs more, raise {}",
                                 launches ? "end of the first launch" : "answer", most, time.flag);
        return result;
      }
      result.why = child_.bury(arrival == Arrival::message);
      if (arrival == Arrival::closed) return result;
      const auto fault = decode<Fault>(reply);
      result.why = fault.fault;
      if (fault.exit != static_cast<int>(Exit::usage)) return result;  // the variant, not the case
    } catch (const Nonsense& nonsense) {
      if (alive()) child_.bury(true);
      result.why = fmt::format("answered with nonsense: {}", nonsense.what());
      return result;
    }
    if (program_.empty()) throw Error(Exit::usage, result.why);
    result.status = Status::unsupported;  // another build may know other parameters
    return result;
  }

  std::string throttle() override {
    constexpr double kSeconds = 5;
    return answer_to<Throttled>(feature::kThrottle, kSeconds).reasons;
  }

  std::vector<LoadedFile> loaded() override {
    constexpr double kSeconds = 60;  // a first look reads all of them
    return answer_to<Files>(feature::kLoaded, kSeconds).files;
  }

  EnvironmentItems environment() override {
    constexpr double kSeconds = 60;  // a first look reads what all packages say of themselves
    return answer_to<Items>(feature::kEnvironment, kSeconds).items;
  }

 private:
  bool can(const char* feature) const { return std::ranges::count(hello_.features, feature) > 0; }
  bool tells_launch(const Request& row) const {
    return can(feature::kLaunched) &&
           std::ranges::any_of(hello_.variants, [&](const VariantDescription& v) {
             const bool is_it = (row.variant + "/").starts_with(v.name + "/");  // or its family
             return is_it && v.op == row.spec.op && v.language == "Python";
           });
  }

  void greet(const WorkerOptions& options) {
    send(child_.to(),
         encode(Start{.wire = kWire, .features = {feature::kLaunched}, .options = options}));
    const std::string who = program_.empty() ? "the worker" : program_;
    json message;
    std::string end;
    try {
      const Arrival arrival = hear(answer_timeout_s_, message);
      if (arrival != Arrival::message) {
        end = end_of(arrival);
      } else if (message.contains("fault")) {  // of any version: it may have no kind
        throw error_of(message.get<Fault>());
      } else {
        hello_ = decode<Hello>(message);
      }
    } catch (const Error&) {
      throw;
    } catch (const std::exception& nonsense) {
      end = fmt::format("its answer cannot be understood: {}", nonsense.what());
    }
    if (end.empty()) {
      check_wire(hello_.wire, who);
      // Every worker verifies and measures; another task is a feature of the same name.
      const bool plain = options.task == Task::verify || options.task == Task::measure;
      if (!plain && !can(name_of(options.task)))
        usage_error("{} is too old for {}; build a newer program", who, name_of(options.task));
      if (!options.modules.empty() && !can(feature::kKernels)) {
        usage_error("{} is too old for --module; build a newer program", who);
      }
      return;
    }
    if (!program_.empty()) {
      usage_error(
          "{}: this program does not answer like a moegate; give the path of a moegate program: {}",
          program_, end);
    }
    give_up(Exit::environment, "the worker did not open device '{}': {}", options.device, end);
  }

  /// What it says next. Throws Error(interrupted) after a signal to this program.
  Arrival hear(double timeout_s, json& message) {
    const Arrival arrival = receive(child_.from(), timeout_s, message);
    if (arrival != Arrival::interrupted) return arrival;
    child_.bury(true);
    throw Error(Exit::interrupted, "interrupted while the worker was busy");
  }

  /// Ends it, and says how it ended: of its own, or for its silence.
  std::string end_of(Arrival arrival) {
    const std::string end = child_.bury(arrival != Arrival::closed);
    return arrival == Arrival::timeout ? fmt::format("no answer in {:g} s", answer_timeout_s_)
                                       : end;
  }

  /// Decodes the answer to `run`. Throws Nonsense.
  Result take(const Request& request, const json& reply, double elapsed_s, CaseData& data) {
    auto measured = decode<Measured>(reply);
    if (measured.result.variant != request.variant) {
      throw Nonsense(fmt::format("a result of '{}'", measured.result.variant));
    }
    const std::string why = implausible(measured.result, elapsed_s);
    if (!why.empty()) throw Nonsense(why);
    data.cost = measured.cost;
    data.facts = std::move(measured.facts);
    return std::move(measured.result);
  }

  /// What it answers to the question that a feature is called like, which costs no row; a default
  /// where it does not.
  template <class Answer>
  Answer answer_to(const char* feature, double seconds) {
    if (!alive() || !can(feature)) return {};
    try {
      json reply;
      const bool asked = send(child_.to(), {{"kind", feature}});
      if (asked && receive(child_.from(), seconds, reply) == Arrival::message) {
        return decode<Answer>(reply);
      }
    } catch (const Nonsense&) {
      // As without an answer.
    }
    child_.bury(true);  // a late answer would be taken for that to the next request
    return {};
  }

  const std::string program_;
  const double answer_timeout_s_;
  Child child_;
  Hello hello_;
};

}  // namespace

std::string own_program() {
  const char* self = "/proc/self/exe";
  if (!all_variants().empty()) return self;
  const std::filesystem::path here = std::filesystem::read_symlink(self);
  const std::string beside = here.parent_path() / "moegate";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  usage_error(
      "{} has no kernels, and there is no program {}; name a program with --base program=PATH and "
      "--head program=PATH",
      here.string(), beside);
}

WorkerSource& worker_processes() {
  struct Processes : WorkerSource {
    std::unique_ptr<Worker> start(const WorkerOptions& options) override {
      return std::make_unique<Process>(options);
    }
  };
  static Processes source;
  return source;
}

// A table: NOLINTNEXTLINE(readability-function-size)
std::span<const Option<WorkerOptions>> worker_options() {
  using W = WorkerOptions;
  using C = Conditions;
  using S = Sampling;
  using K = ValueKind;
  static constexpr const char* where = kSelectionGroup;
  static constexpr const char* how = kMeasuringGroup;
  static const std::array all = {
      option_row<W, &W::sample_seed>({"sample-seed", "N", K::number,
                                      "draws more rows to compare with the truth, and in verify "
                                      "one more problem set (0: none; a night uses its date)"},
                                     where, "sample_seed", "/sample_seed", Repeat::if_set),
      option_row<W, &W::device>(
          {"device", "D", K::choice,
           "auto, host, cuda, all or cuda:N; GPUs share the work as cuda:0,1 or cuda:all",
           "auto,host,cuda,all"},
          where, "device", "/device", Repeat::always),
      option_row<W, &W::modules>(
          {"module", "FILE", K::file,
           "also load the kernels of this module (.so) or Python file (.py); may be repeated"},
          where, "kernels", "/kernels", Repeat::if_set),
      option_row<W, &W::tiles>(
          {"tiles", "DIR", K::file,
           "folder of tile configurations (default: MOEGATE_TILES, else suites/tiles)"},
          where, "tiles", "/tiles", Repeat::if_set),
      option_row<W, &W::timer>({"timer", "T", K::choice,
                                "cupti, event or auto (CUPTI, else events, and every row says "
                                "which)",
                                "auto,cupti,event"},
                               how, "timer", "/timer", Repeat::always),
      option_row<W, &W::conditions, &C::flush>({"flush", "F", K::choice,
                                                "how L2 is made cold: read (clean lines), write "
                                                "(dirty lines, as other tools do) or none",
                                                "read,write,none"},
                                               how, "flush", "/flush", Repeat::always),
      option_row<W, &W::conditions, &C::flush_factor>(
          {"flush-factor", "X", K::number, "bytes to flush, as a multiple of the size of L2", "", 1,
           1000},
          how, "flush_factor", "/flush_factor", Repeat::always),
      option_row<W, &W::conditions, &C::sets>(
          {"sets", "N", K::number,
           "launch on at most N problem sets in turn (0: 2 to 8, by their size); runs with "
           "different N are not compared",
           "", 0, 8},
          how, "sets", "/sets", Repeat::if_set),
      option_row<W, &W::sampling, &S::min_samples>(
          {"min-samples", "N", K::number,
           "samples before --precision may end a row; 50 are enough if the budget ends first", "",
           10, 1e6},
          how, "min_samples", "/sampling/min_samples", Repeat::always),
      option_row<W, &W::sampling, &S::max_samples>(
          {"max-samples", "N", K::number, "samples at most", "", 10, 1e6}, how, "max_samples",
          "/sampling/max_samples", Repeat::always),
      option_row<W, &W::sampling, &S::precision>(
          {"precision", "P", K::percent,
           "stop at a 95 % interval of ± P percent (0: 0.5 on a GPU, 2 on the host)", "", 0, 100},
          how, "precision", "/sampling/precision", Repeat::always),
      option_row<W, &W::sampling, &S::budget_s>(
          {"budget", "T", K::time, "wall clock per case, variant and round"}, how, "budget_s",
          "/sampling/budget_s", Repeat::always),
      // What no flag sets: the command does.
      option_row<W, &W::task>({}, "", "", "/task", Repeat::never),
      option_row<W, &W::stated>({}, "", "", "/stated", Repeat::never),
      option_row<W, &W::profiling, &Profiling::metrics>({}, "", "", "/profiling/metrics",
                                                        Repeat::never),
      option_row<W, &W::profiling, &Profiling::per_kernel>({}, "", "", "/profiling/per_kernel",
                                                           Repeat::never)};
  return all;
}

void to_json(nlohmann::json& json, const WorkerOptions& options) {
  json = nlohmann::json::object();
  for (const auto& row : worker_options()) {
    json[nlohmann::json::json_pointer(row.wire)] = row.get(options);
  }
}

void from_json(const nlohmann::json& json, WorkerOptions& options) {
  for (const auto& row : worker_options()) {
    const nlohmann::json::json_pointer at(row.wire);
    if (json.contains(at)) row.set(options, json.at(at));
  }
}

}  // namespace moegate
