// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "harness/worker/worker_wire.h"

namespace moegate {
namespace {

using nlohmann::json;

constexpr double kStartSeconds = 60;  // a cold driver takes seconds; this is a hang
constexpr int kNoProgram = 127;       // exit code of a child that could not become the program

/// Turns the forked child into the program. Never returns into the parent's code.
[[noreturn]] void become(const char* program, int in, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C goes to the whole group; the parent decides what becomes of the worker.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  // Away from the numbers that dup2 is about to take.
  in = fcntl(in, F_DUPFD, kReplies + 1);
  out = fcntl(out, F_DUPFD, kReplies + 1);
  dup2(in, kRequests);
  dup2(out, kReplies);
  close(in);
  close(out);
  // The same arguments for every program: they lie on the stack, and its alignment shows in timings
  // (Mytkowicz et al. 2009).
  execl(program, "moegate", "worker", static_cast<char*>(nullptr));
  _exit(kNoProgram);
}

class Process : public Worker {
 public:
  explicit Process(const WorkerOptions& options);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const Hello& hello() const override { return hello_; }
  pid_t pid() const override { return pid_; }
  bool alive() const override { return pid_ > 0; }
  std::vector<CaseAnswer> check(const std::vector<CaseQuestion>& questions) override;
  Result run(const Request& request, double timeout_s, CaseData& data) override;
  std::string throttle() override;

 private:
  std::string bury(bool kill_first);  // reaps the process and says how it ended

  const std::string program_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  Hello hello_;
};

Process::Process(const WorkerOptions& options) : program_(options.program) {
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
  if (pid_ == 0) become(program_.empty() ? "/proc/self/exe" : program_.c_str(), down[0], up[1]);
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
  send(to_, {{"wire", kWire}, {"options", options}});
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
  if (!program_.empty()) {
    usage_error("{}: does not answer as a moegate that can be measured with: {}", program_, end);
  }
  throw Error(Exit::environment,
              fmt::format("the worker did not open device '{}': {}", options.device, end));
}

Process::~Process() {
  if (to_ >= 0) close(to_);
  to_ = -1;
  if (pid_ > 0) bury(true);
  if (from_ >= 0) close(from_);
}

std::vector<CaseAnswer> Process::check(const std::vector<CaseQuestion>& questions) {
  json reply;
  Arrival arrival = Arrival::closed;
  if (send(to_, {{"check", questions}})) arrival = receive(from_, kStartSeconds, reply);
  if (arrival == Arrival::message && reply.contains("answers")) return reply.at("answers");
  const std::string end = bury(arrival == Arrival::timeout);
  throw Error(Exit::environment,
              fmt::format("the worker did not check the cases: {}",
                          arrival == Arrival::message ? reply.value("fault", end) : end));
}

Result Process::run(const Request& request, double timeout_s, CaseData& data) {
  Result result;
  result.variant = request.variant;
  result.deterministic = false;
  json reply;
  Arrival arrival = Arrival::closed;
  if (send(to_, {{"run", request}})) {
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
    result.why = reply.at("fault");
    if (code == Exit::usage) {  // the case, not the variant
      if (program_.empty()) throw Error(code, result.why);
      result.status = Status::unsupported;  // another build may know other parameters
    }
  }
  return result;
}

std::string Process::throttle() {
  json reply;
  constexpr double kSeconds = 5;
  if (!alive() || !send(to_, {{"throttle", true}})) return {};
  return receive(from_, kSeconds, reply) == Arrival::message ? reply.value("throttle", "") : "";
}

std::string Process::bury(bool kill_first) {
  if (kill_first) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return fmt::format("the process died of signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == kNoProgram) return "it cannot be started";
  return fmt::format("the process ended with code {}", WEXITSTATUS(status));
}

class Processes : public WorkerSource {
 public:
  std::unique_ptr<Worker> start(const WorkerOptions& options) override {
    return std::make_unique<Process>(options);
  }
};

}  // namespace

WorkerSource& worker_processes() {
  static Processes source;
  return source;
}

}  // namespace moegate
