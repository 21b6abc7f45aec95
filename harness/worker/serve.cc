// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/serve.h"

#include <unistd.h>

#include "harness/device/nvml.h"
#include "harness/device/open.h"
#include "harness/kernel/tile_file.h"
#include "harness/values/conditions.h"
#include "harness/values/provenance.h"
#include "harness/worker/worker_wire.h"

namespace moegate {
namespace {

using nlohmann::json;

class Server {
 public:
  Server(const WorkerOptions& options, std::vector<Case> cases)
      : options_(options), cases_(std::move(cases)) {}

  void serve() {
    open();
    json request;
    while (receive(kRequests, -1, request) == Arrival::message) {
      if (request.contains("throttle")) {
        send(kReplies, {{"throttle", throttle()}});
      } else {
        run(request.at("case"), request.at("variant"), request.value("canary", Canary{}));
      }
    }
  }

 private:
  void open() {
    use_tile_folder(options_.tiles);
    const int ordinal = cuda_ordinal(options_.device);
    const bool wants_cuda = ordinal >= 0 && !cuda_devices(nullptr).empty();
    const bool times = options_.task == Task::measure;
    // CUPTI wants to be there before the context is.
    std::string cupti_fault = "not asked for";
    if (wants_cuda && times && options_.timer != "event") cupti_fault = prepare_cupti(ordinal);
    device_ = open_device(options_.device);
    cases_ = adapt(std::move(cases_), device_->facts().backend);
    Hello hello;
    hello.device = device_->facts();
    if (times) hello.timer_note = open_timer(cupti_fault);
    if (timer_) hello.timer = timer_->name();
    hello.variants = own_variants(hello.device.backend);
    hello.git_sha = provenance().git_sha;
    hello.build = provenance().build;
    hello.dirty = provenance().dirty;
    send(kReplies, hello);
  }

  std::string open_timer(const std::string& cupti_fault) {
    if (device_->facts().backend == Backend::host) {
      if (options_.timer != "auto") {
        usage_error("--timer {}: the host has only its clock; leave --timer out", options_.timer);
      }
      timer_ = make_host_timer(*device_);
      return "";
    }
    if (options_.timer == "event") {
      timer_ = make_event_timer(*device_);
      return "";
    }
    if (cupti_fault.empty()) {
      timer_ = make_cupti_timer(*device_);
      return "";
    }
    if (options_.timer == "cupti") {
      throw Error(Exit::environment, fmt::format("CUPTI cannot time here: {}", cupti_fault));
    }
    timer_ = make_event_timer(*device_);
    return fmt::format(
        "CUPTI cannot time here ({}); timing with CUDA events, and every row says so", cupti_fault);
  }

  void run(size_t index, const std::string& name, const Canary& canary) {
    const Case& c = cases_.at(index);
    if (!bench_ || bench_case_ != index) {
      bench_.reset();  // frees the last case's memory before the next one's is taken
      bench_ = std::make_unique<Bench>(*device_, c);
      bench_case_ = index;
    }
    json reply = {{"cost", bench_->cost()}, {"facts", bench_->facts()}};
    const Variant& plain = find_variant(c.op, device_->facts().backend, name);
    CanaryVariant wrapped(plain, canary, device_->facts());
    const Variant& variant = canary.asked() ? wrapped.variant() : plain;
    Result result = bench_->verify(variant);
    if (result.status == Status::ok && options_.task == Task::measure) {
      if (canary.slow_by > 0) calibrate(wrapped, conditions(c));
      bench_->measure(variant, *timer_, conditions(c), options_.sampling, result);
    } else if (result.status == Status::ok && options_.task == Task::profile) {
      bench_->profile(variant);
    } else if (result.status == Status::ok && options_.task == Task::controls) {
      bench_->control(result);
    }
    reply["result"] = result;
    send(kReplies, reply);
  }

  /// A delay is a share of the launch's own time, so that is measured first.
  void calibrate(CanaryVariant& canary, const Conditions& conditions) {
    Result undelayed;
    bench_->measure(canary.variant(), *timer_, conditions, options_.sampling, undelayed);
    canary.calibrate(undelayed.span_ns, undelayed.sm_mhz);
  }

  std::string throttle() const {
    if (device_->facts().backend == Backend::host) return {};
    return throttle_text(read_gpu_state(device_->facts().uuid));
  }

  Conditions conditions(const Case& c) const {
    Conditions conditions;
    conditions.cache = cache_of(c);
    conditions.launch = launch_of(c);
    conditions.flush = options_.flush;
    conditions.flush_factor = options_.flush_factor;
    return conditions;
  }

  const WorkerOptions options_;
  std::vector<Case> cases_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Bench> bench_;
  size_t bench_case_ = 0;
};

void serve() {
  json start;
  constexpr double kSeconds = 10;
  if (receive(kRequests, kSeconds, start) != Arrival::message) {
    usage_error("moegate worker: is started by `moegate run` and its like, not by hand");
  }
  if (start.value("wire", 0) != kWire) {
    usage_error("the program to measure speaks version {} of the worker's protocol, the runner {}",
                kWire, start.value("wire", 0));
  }
  Server(start.at("options"), start.at("cases")).serve();
}

}  // namespace

void serve_runner() {
  json fault;
  try {
    serve();
    // Not through exit(): a variant may have left threads or a broken context behind.
    _exit(0);
  } catch (const Error& e) {
    fault = {{"fault", e.what()}, {"exit", static_cast<int>(e.code())}};
  } catch (const std::exception& e) {
    fault = {{"fault", e.what()}, {"exit", static_cast<int>(Exit::internal)}};
  }
  if (!send(kReplies, fault))
    fmt::print(stderr, "moegate: {}\n", fault["fault"].get<std::string>());
  _exit(1);
}

}  // namespace moegate
