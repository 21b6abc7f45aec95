// SPDX-License-Identifier: Apache-2.0
#include "harness/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "harness/nvml.h"
#include "harness/plan.h"

namespace moegate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, device, timer, timer_note)

namespace {

using nlohmann::json;

constexpr double kStartSeconds = 60;  // a cold driver takes seconds; this is a hang

/// The child's side: opens the device, then serves requests until the pipe closes.
class Server {
 public:
  Server(const WorkerOptions& options, const std::vector<Case>& cases, int in, int out)
      : options_(options), cases_(cases), in_(in), out_(out) {}

  void serve() {
    open();
    json request;
    while (receive(in_, -1, request) == Arrival::message) {
      if (request.contains("throttle")) {
        send(out_, {{"throttle", throttle()}});
      } else {
        run(request.at("case"), request.at("variant"));
      }
    }
  }

 private:
  void open() {
    const int ordinal = cuda_ordinal(options_.device);
    const bool wants_cuda = ordinal >= 0 && !cuda_devices(nullptr).empty();
    const bool times = options_.task == Task::measure;
    // CUPTI wants to be there before the context is.
    std::string cupti_fault = "not asked for";
    if (wants_cuda && times && options_.timer != "event") cupti_fault = prepare_cupti(ordinal);
    device_ = open_device(options_.device);
    cases_ = adapt(std::move(cases_), device_->facts().backend);
    Hello hello{device_->facts(), "", ""};
    if (times) hello.timer_note = open_timer(cupti_fault);
    if (timer_) hello.timer = timer_->name();
    send(out_, hello);
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

  void run(size_t index, const std::string& name) {
    const Case& c = cases_.at(index);
    if (!bench_ || bench_case_ != index) {
      bench_.reset();  // frees the last case's memory before the next one's is taken
      bench_ = std::make_unique<Bench>(*device_, c);
      bench_case_ = index;
    }
    json reply = {{"cost", bench_->cost()}, {"facts", bench_->facts()}};
    const Variant& variant = find(c.op, name);
    Result result = bench_->verify(variant);
    if (result.status == Status::ok && options_.task == Task::measure) {
      bench_->measure(variant, *timer_, conditions(c), options_.sampling, result);
    } else if (result.status == Status::ok && options_.task == Task::profile) {
      bench_->profile(variant);
    } else if (result.status == Status::ok && options_.task == Task::controls) {
      bench_->control(result);
    }
    reply["result"] = result;
    send(out_, reply);
  }

  std::string throttle() const {
    if (device_->facts().backend == Backend::host) return {};
    return throttle_text(read_gpu_state(device_->facts().uuid));
  }

  const Variant& find(const std::string& op, const std::string& name) const {
    for (const Variant& v : all_variants()) {
      if (v.op == op && v.name == name && v.backend == device_->facts().backend) return v;
    }
    throw Error(Exit::internal, fmt::format("worker has no variant {} of {}", name, op));
  }

  Conditions conditions(const Case& c) const {
    Conditions conditions;
    conditions.cache = cache_of(c);
    conditions.launch = launch_of(c);
    conditions.flush = options_.flush;
    conditions.flush_factor = options_.flush_factor;
    return conditions;
  }

  const WorkerOptions& options_;
  std::vector<Case> cases_;
  int in_, out_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Bench> bench_;
  size_t bench_case_ = 0;
};

/// Never returns into the parent's code: whatever happens here ends with _exit.
[[noreturn]] void child(const WorkerOptions& options, const std::vector<Case>& cases, int in,
                        int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C goes to the whole group; the parent decides what becomes of the worker.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  try {
    Server(options, cases, in, out).serve();
    _exit(0);
  } catch (const Error& e) {
    send(out, {{"fault", e.what()}, {"exit", static_cast<int>(e.code())}});
  } catch (const std::exception& e) {
    send(out, {{"fault", e.what()}, {"exit", static_cast<int>(Exit::internal)}});
  }
  _exit(1);
}

}  // namespace

Worker::Worker(const WorkerOptions& options, const std::vector<Case>& cases) {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
    throw Error(Exit::environment, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  all_variants();  // a fault in the registrations belongs to the parent
  fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) {
    throw Error(Exit::environment, fmt::format("cannot fork: {}", std::strerror(errno)));
  }
  if (pid_ == 0) {
    close(down[1]);
    close(up[0]);
    child(options, cases, down[0], up[1]);
  }
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
  json message;
  const Arrival arrival = receive(from_, kStartSeconds, message);
  if (arrival == Arrival::message && !message.contains("fault")) {
    hello_ = message.get<Hello>();
    return;
  }
  const std::string end = bury(arrival == Arrival::timeout);
  if (arrival == Arrival::message) {
    throw Error(static_cast<Exit>(message.at("exit").get<int>()), message.at("fault"));
  }
  throw Error(Exit::environment,
              fmt::format("the worker did not open device '{}': {}", options.device, end));
}

Worker::~Worker() {
  if (to_ >= 0) close(to_);
  to_ = -1;
  if (pid_ > 0) bury(true);
  if (from_ >= 0) close(from_);
}

Result Worker::run(size_t case_index, const Variant& variant, double timeout_s, CaseData& data) {
  Result result;
  result.variant = variant.name;
  result.deterministic = false;
  json reply;
  Arrival arrival = Arrival::closed;
  if (send(to_, {{"case", case_index}, {"variant", variant.name}})) {
    arrival = receive(from_, timeout_s, reply);
  }
  if (arrival == Arrival::timeout) {
    bury(true);
    result.status = Status::timeout;
    result.why = fmt::format("no answer within --case-timeout {:g} s", timeout_s);
    return result;
  }
  if (arrival == Arrival::message && !reply.contains("fault")) {
    data.cost = reply.at("cost");
    data.facts = reply.at("facts");
    return reply.at("result");
  }
  const std::string end = bury(false);
  result.status = Status::crashed;
  result.why = end;
  if (arrival == Arrival::message) {
    const auto code = static_cast<Exit>(reply.at("exit").get<int>());
    if (code == Exit::usage) throw Error(code, reply.at("fault"));  // the case, not the variant
    result.why = reply.at("fault");
  }
  return result;
}

std::string Worker::throttle() {
  json reply;
  constexpr double kSeconds = 5;
  if (!alive() || !send(to_, {{"throttle", true}})) return {};
  return receive(from_, kSeconds, reply) == Arrival::message ? reply.value("throttle", "") : "";
}

std::string Worker::bury(bool kill_first) {
  if (kill_first) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return fmt::format("the process died of signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return fmt::format("the process ended with code {}", WEXITSTATUS(status));
}

}  // namespace moegate
