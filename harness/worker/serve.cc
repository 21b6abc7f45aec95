// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/serve.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "harness/base/notes.h"
#include "harness/device/nvml.h"
#include "harness/device/open.h"
#include "harness/kernel/object_code.h"
#include "harness/kernel/tile_file.h"
#include "harness/plugin/plugin.h"
#include "harness/plugin/process_environment.h"
#include "harness/values/conditions.h"
#include "harness/values/provenance.h"
#include "harness/worker/batch_invariance.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

using nlohmann::json;

/// They are the tool's, and no part of a kernel from elsewhere.
void leave_out_tiles() {
  try {
    leave_out_files_below(tile_folder());
  } catch (const Error&) {
    // A program that was kept for replays has no home, and so no tiles.
  }
}

class Server {
 public:
  Server(const Start& start, int in_fd, int out_fd, const Registry& registry)
      : options_(start.options), in_(in_fd), out_(out_fd), registry_(registry) {
    if (std::ranges::count(start.features, feature::kLaunched) == 0) return;
    launched_ = [this] { send(out_, {{"kind", feature::kLaunched}}); };
  }

  void serve() {
    open();
    json request;
    while (receive(in_, -1, request) == Arrival::message) answer(request);
  }

 private:
  void open() {
    use_tile_folder(options_.tiles);
    leave_out_tiles();
    const int ordinal = cuda_ordinal(options_.device);
    const bool wants_cuda = ordinal >= 0 && !cuda_devices(nullptr).empty();
    // CUPTI counts modules, too.
    const bool times = options_.task == Task::measure || options_.task == Task::compile;
    // CUPTI wants to be there before the context is.
    std::string cupti_fault = "not asked for";
    if (wants_cuda && times && options_.timer != "event") cupti_fault = prepare_cupti(ordinal);
    device_ = open_device(options_.device);
    Hello hello;
    hello.wire = kWire;
    hello.features = own_features();
    hello.language = "C++";
    hello.version = provenance().version;
    hello.device = device_->facts();
    if (times) hello.timer_note = open_timer(cupti_fault);
    if (timer_) hello.timer = timer_->name();
    profiler_ = open_profiler();
    hello.operators = describe_operators(registry_, hello.device.backend);
    hello.variants = describe_variants(registry_, hello.device.backend);
    hello.git_sha = provenance().git_sha;
    hello.build = provenance().build;
    hello.dirty = provenance().dirty;
    send(out_, encode(hello));
  }

  void answer(const json& request) {
    const std::string kind = kind_of(request);
    if (kind == feature::kThrottle) {
      const DeviceFacts& device = device_->facts();
      const bool host = device.backend == Backend::host;
      send(out_, encode(Throttled{host ? "" : throttle_text(read_gpu_state(device.uuid))}));
    } else if (kind == feature::kLoaded) {
      send(out_,
           encode(Files{options_.modules.empty() ? std::vector<LoadedFile>() : loaded_files()}));
    } else if (kind == feature::kEnvironment) {
      const bool told = !options_.modules.empty() || !options_.stated.empty();
      send(out_, encode(Items{told ? process_environment() : EnvironmentItems()}));
    } else if (kind == Check::kKind) {
      Answers all;
      const auto check = decode<Check>(request);
      for (const CaseQuestion& asked : check.questions) all.answers.push_back(answer_to(asked));
      send(out_, encode(all));
    } else {
      send(out_, encode(run(decode<Request>(request))));
    }
  }

  std::string open_timer(const std::string& cupti_fault) {
    if (device_->facts().backend == Backend::host) {
      if (options_.timer != "auto") {
        usage_error("--timer {}: the host has only its clock; leave --timer out", options_.timer);
      }
      timer_ = make_host_timer(*device_);
      return "";
    }
    if (cupti_fault.empty()) {  // of timer = event it is not
      timer_ = make_cupti_timer(*device_);
      return "";
    }
    if (options_.timer == "cupti") {
      give_up(Exit::environment, "CUPTI cannot time here: {}", cupti_fault);
    }
    timer_ = make_event_timer(*device_);
    if (options_.timer == "event") return "";
    return fmt::format(
        "CUPTI cannot time here ({}); timing with CUDA events, and every row says so", cupti_fault);
  }

  std::unique_ptr<Profiler> open_profiler() {
    const Task task = options_.task;
    const auto make = task == Task::counters ? make_counter_profiler
                      : task == Task::stalls ? make_stall_profiler
                      : task == Task::energy ? make_energy_profiler
                                             : nullptr;
    if (!make) return nullptr;
    if (device_->facts().backend == Backend::host) {
      give_up(Exit::environment,
              "`moegate profile` reads {} on a GPU only; give --device cuda:N where there is a GPU",
              name_of(task));
    }
    return make(*device_, options_.profiling);
  }

  CaseAnswer answer_to(const CaseQuestion& question) const {
    const DeviceFacts& device = device_->facts();
    CaseAnswer answer;
    try {
      validate(question.spec);
      if (!question.resolve) return answer;
      const Case c = resolved(question.spec, device, registry_);
      for (const std::string& name : question.variants) {
        const Variant& v = find_variant(c.op, device.backend, name, registry_);
        std::string why = why_unsupported(v, c, device);
        if (!why.empty()) answer.unsupported[name] = std::move(why);
      }
    } catch (const Error& e) {
      if (e.code() != Exit::usage) throw;
      answer.error = e.what();
    }
    return answer;
  }

  /// Throws Error(usage) for parameters that the operator does not have or that do not fit.
  void validate(const Case& c) const {
    const OpEntry& op = find_op(c.op, registry_);
    for (const auto& [name, value] : c.params) {
      const auto is_it = [&name = name](const Param& param) { return param.name == name; };
      const std::string* usual = c.defaults.find(name);
      if (usual != nullptr && *usual == value) continue;
      if (std::ranges::any_of(op.params, is_it)) continue;
      if (std::ranges::any_of(common_params(), is_it)) continue;
      usage_error("{}: operator {} of this program has no parameter '{}'", c.where(), c.op, name);
    }
    if (op.validate) op.validate(c);
  }

  Measured run(const Request& request) {
    const Case& c = request.spec;
    if (!bench_ || bench_->spoilt() || case_.params != c.params || case_.op != c.op) {
      bench_.reset();  // frees the last case's memory before the next one's is taken
      validate(c);
      bench_ = std::make_unique<Bench>(
          *device_, c, registry_,
          Draw{.sample_seed = options_.sample_seed, .another_set = options_.task == Task::verify});
      case_ = c;
    }
    const Variant& plain = find_variant(c.op, device_->facts().backend, request.variant, registry_);
    const Canary& canary = request.canary;
    std::optional<CanaryVariant> wrapped;
    if (canary.asked()) wrapped.emplace(plain, canary, device_->facts());
    const Variant& variant = wrapped ? wrapped->variant() : plain;
    Result result = bench_->verify(variant, launched_);
    const bool graph = launch_of(c) == LaunchMode::graph;
    if (result.status == Status::ok && options_.task == Task::verify && graph) {
      bench_->try_capture(variant, result);
    } else if (result.status == Status::ok && options_.task == Task::measure) {
      if (canary.slow_by > 0) calibrate(*wrapped, conditions(c));
      bench_->measure(variant, *timer_, conditions(c), options_.sampling, result);
    } else if (result.status == Status::ok && options_.task == Task::profile) {
      bench_->profile(variant);
    } else if (result.status == Status::ok && profiler_) {
      bench_->profile(variant, *profiler_, conditions(c), result);
    } else if (result.status == Status::ok && options_.task == Task::controls) {
      bench_->control(result);
    }
    const bool only_verified = options_.task == Task::verify || options_.task == Task::controls ||
                               options_.task == Task::compile;
    if (result.status == Status::ok && only_verified) bench_->check_unseen(variant, result);
    if (result.measured() && request.invariance > 0) {
      std::ranges::move(ask_batch_invariance(variant, c, request.invariance, registry_, *device_),
                        std::back_inserter(result.metrics));
    }
    return {.result = std::move(result), .cost = bench_->cost(), .facts = bench_->facts()};
  }

  /// A delay is a share of the launch's own time, so that is measured first.
  void calibrate(CanaryVariant& canary, const Conditions& conditions) {
    Result undelayed;
    bench_->measure(canary.variant(), *timer_, conditions, options_.sampling, undelayed);
    canary.calibrate(undelayed.span_ns, undelayed.sm_mhz);
  }

  Conditions conditions(const Case& c) const {
    Conditions conditions = options_.conditions;
    conditions.cache = cache_of(c);
    conditions.launch = launch_of(c);
    return conditions;
  }

  const WorkerOptions options_;
  const int in_, out_;
  const Registry& registry_;
  std::function<void()> launched_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Timer> timer_;        // of Task::measure
  std::unique_ptr<Profiler> profiler_;  // of the profiling tasks
  std::unique_ptr<Bench> bench_;
  Case case_;  // of bench_
};

/// Of a message of any version, which may have no kind; 0 where it states none.
int wire_of(const json& message) {
  int wire = 0;
  try {
    read_number(message.at("wire"), wire);
  } catch (const std::exception&) {
    // It is no start of this version, which the caller says.
  }
  return wire;
}

constexpr const char* kByHand =
    "worker: this command is started by `moegate run`, not by hand; use `moegate run`";

void serve_requests(int in_fd, int out_fd, const Registry* given) {
  json message;
  constexpr double kSeconds = 10;
  if (receive(in_fd, kSeconds, message) != Arrival::message) usage_error(kByHand);
  const int wire = wire_of(message);
  if (wire != kWire) {
    usage_error("the program to measure speaks version {} of the worker's protocol, the runner {}",
                kWire, wire);
  }
  const auto start = decode<Start>(message);
  state_variables(start.options.stated);
  const auto serve_with = [&](const Registry& registry) {
    Server(start, in_fd, out_fd, registry).serve();
  };
  if (given != nullptr) return serve_with(*given);
  with_kernels(start.options.modules, serve_with);
}

}  // namespace

bool serve(int in_fd, int out_fd, const Registry* given) {
  Fault fault;
  try {
    serve_requests(in_fd, out_fd, given);
    return true;
  } catch (const Error& e) {
    fault = {.fault = e.what(), .exit = static_cast<int>(e.code())};
  } catch (const std::exception& e) {
    fault = {.fault = e.what(), .exit = static_cast<int>(Exit::internal)};
  }
  if (!send(out_fd, encode(fault))) say("moegate: {}\n", fault.fault);
  return false;
}

void serve_runner() {
  const auto is_open = [](int fd) { return fcntl(fd, F_GETFD) >= 0; };
  if (!is_open(kRequests) || !is_open(kReplies)) usage_error(kByHand);
  const bool ok = serve(kRequests, kReplies);
  const bool lost = !is_open(kRequests) || !is_open(kReplies);
  // Not through exit(): a variant may have left threads or a broken context behind.
  _exit(lost ? kLostPipe : ok ? 0 : 1);
}

}  // namespace moegate
