// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "harness/base/descendants.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

using nlohmann::json;

constexpr double kStartSeconds = 60;  // a cold driver takes seconds; this is a hang
constexpr int kBuryTries = 500, kBuryMicroseconds = 10000;  // then it is killed
constexpr int kNoProgram = 127;  // exit code of a child that could not become the program

/// Lanes start and bury workers from threads of their own. Held from the look at the children to the
/// new worker's entry, and while the children that are nobody's are ended.
std::mutex& family() {
  static std::mutex mutex;
  return mutex;
}

/// The workers that are alive.
std::set<pid_t>& workers() {
  static std::set<pid_t> pids;
  return pids;
}

/// Nothing to read, and a kernel's printf must not end up in this program's JSON.
void detach_from_terminal() {
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

/// Turns the forked child into the program. Never returns into the parent's code.
[[noreturn]] void become(const char* program, const cpu_set_t* cpus, int in, int out) {
  setpgid(0, 0);
  if (cpus) sched_setaffinity(0, sizeof *cpus, cpus);  // a CPU that is gone is no reason to die
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C, a terminal that goes away and `timeout` signal the whole group; the parent decides what
  // becomes of the worker.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
  // Away from the numbers that dup2 is about to take.
  in = fcntl(in, F_DUPFD, kReplies + 1);
  out = fcntl(out, F_DUPFD, kReplies + 1);
  detach_from_terminal();
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
  bool can(const char* feature) const { return std::ranges::count(hello_.features, feature) > 0; }
  void greet(const WorkerOptions& options);
  /// Decodes the answer to `run`. Throws Nonsense.
  Result take(const Request& request, const json& reply, double elapsed_s, CaseData& data);
  /// Reaps the process, ends what it left behind, and says how it ended.
  std::string bury(bool kill_first);
  [[noreturn]] void give_up();  // after a signal to this program

  const std::string program_;
  std::set<pid_t> before_;  // children of the runner when this one was started
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  Hello hello_;
};

Process::Process(const WorkerOptions& options) : program_(options.program) {
  // A fault in the registrations belongs to the parent.
  const std::string program = program_.empty() ? own_program() : program_;
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
    throw Error(Exit::environment, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(cpu, &cpus);
  adopt_orphans();
  fflush(nullptr);
  {
    const std::lock_guard lock(family());
    before_ = children();
    pid_ = fork();
    if (pid_ == 0) become(program.c_str(), options.cpus.empty() ? nullptr : &cpus, down[0], up[1]);
    if (pid_ > 0) workers().insert(pid_);
  }
  if (pid_ < 0) {
    throw Error(Exit::environment, fmt::format("cannot fork: {}", std::strerror(errno)));
  }
  setpgid(pid_, pid_);  // whoever of the two comes first
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
  try {
    greet(options);
  } catch (...) {
    // The destructor of an object that was never made does not run.
    if (pid_ > 0) bury(true);
    close(from_);
    throw;
  }
}

void Process::greet(const WorkerOptions& options) {
  send(to_, encode(Start{.wire = kWire, .features = {}, .options = options}));
  const std::string who = program_.empty() ? "the worker" : program_;
  json message;
  std::string end;
  try {
    const Arrival arrival = receive(from_, kStartSeconds, message);
    if (arrival == Arrival::interrupted) give_up();
    if (arrival != Arrival::message) {
      end = bury(arrival == Arrival::timeout);
    } else if (message.contains("fault")) {  // of any version: it may have no kind
      throw error_of(message.get<Fault>());
    } else {
      hello_ = decode<Hello>(message);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& nonsense) {
    end = fmt::format("it answers with nonsense: {}", nonsense.what());
  }
  if (end.empty()) {
    check_wire(hello_.wire, who);
    // Every worker verifies and measures; another task is a feature of the same name.
    const bool plain = options.task == Task::verify || options.task == Task::measure;
    if (!plain && !can(name_of(options.task)))
      usage_error("{} cannot do the task '{}'", who, name_of(options.task));
    if (!options.kernels.empty() && !can(feature::kKernels)) {
      usage_error("{} opens no files of kernels (--kernels): it is older than they are", who);
    }
    return;
  }
  if (!program_.empty()) {
    usage_error("{}: does not answer as a moegate that can be measured with: {}", program_, end);
  }
  throw Error(Exit::environment,
              fmt::format("the worker did not open device '{}': {}", options.device, end));
}

Process::~Process() {
  if (pid_ > 0) bury(true);
  if (from_ >= 0) close(from_);
}

std::vector<CaseAnswer> Process::check(const std::vector<CaseQuestion>& questions) {
  if (!can(feature::kCheck)) return std::vector<CaseAnswer>(questions.size());
  std::string end;
  try {
    json reply;
    Arrival arrival = Arrival::closed;
    if (send(to_, encode(Check{questions}))) arrival = receive(from_, kStartSeconds, reply);
    if (arrival == Arrival::interrupted) give_up();
    if (arrival == Arrival::message && kind_of(reply) == Fault::kKind) {
      end = decode<Fault>(reply).fault;
    } else if (arrival == Arrival::message) {
      Answers all = decode<Answers>(reply);
      if (all.answers.size() == questions.size()) return std::move(all.answers);
      end = fmt::format("{} answers to {} questions", all.answers.size(), questions.size());
    }
    const std::string how = bury(arrival != Arrival::closed);
    if (end.empty()) end = how;
  } catch (const Nonsense& nonsense) {
    bury(true);
    end = fmt::format("it answered with nonsense: {}", nonsense.what());
  }
  throw Error(Exit::environment, fmt::format("the worker did not check the cases: {}", end));
}

Result Process::run(const Request& request, double timeout_s, CaseData& data) {
  Result result;
  result.variant = request.variant;
  result.deterministic = false;
  if (request.canary.asked() && !can(feature::kCanary)) {
    result.status = Status::unsupported;
    result.why = "this worker builds in no canaries";
    return result;
  }
  const auto start = std::chrono::steady_clock::now();
  json reply;
  Arrival arrival = Arrival::closed;
  result.status = Status::crashed;
  try {
    if (send(to_, encode(request))) arrival = receive(from_, timeout_s, reply);
    if (arrival == Arrival::interrupted) give_up();
    if (arrival == Arrival::message && kind_of(reply) != Fault::kKind) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      return take(request, reply, elapsed.count(), data);
    }
    if (arrival == Arrival::timeout) {
      bury(true);
      result.status = Status::timeout;
      result.why = fmt::format("no answer within --case-timeout {:g} s", timeout_s);
      return result;
    }
    result.why = bury(arrival == Arrival::message);
    if (arrival == Arrival::closed) return result;
    const auto fault = decode<Fault>(reply);
    result.why = fault.fault;
    if (fault.exit != static_cast<int>(Exit::usage)) return result;  // the variant, not the case
  } catch (const Nonsense& nonsense) {
    if (alive()) bury(true);
    result.why = fmt::format("answered with nonsense: {}", nonsense.what());
    return result;
  }
  if (program_.empty()) throw Error(Exit::usage, result.why);
  result.status = Status::unsupported;  // another build may know other parameters
  return result;
}

Result Process::take(const Request& request, const json& reply, double elapsed_s, CaseData& data) {
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

std::string Process::throttle() {
  if (!alive() || !can(feature::kThrottle)) return {};
  try {
    json reply;
    constexpr double kSeconds = 5;
    const bool asked = send(to_, encode(Throttle{}));
    if (asked && receive(from_, kSeconds, reply) == Arrival::message) {
      return decode<Throttled>(reply).reasons;
    }
  } catch (const Nonsense&) {
    // As without an answer.
  }
  bury(true);  // a late answer would be taken for that to the next request
  return {};
}

std::string Process::bury(bool kill_first) {
  int status = 0;
  // Its last request: one that lost its own end of the replies learns of it here.
  close(to_);
  to_ = -1;
  // One that has said its last word, or closed its pipe, may still not end.
  for (int i = 0; !kill_first && i < kBuryTries; ++i) {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) break;
    usleep(kBuryMicroseconds);
    kill_first = i + 1 == kBuryTries;
  }
  if (kill_first) kill(pid_, SIGKILL);
  kill(-pid_, SIGKILL);  // before it is waited for: the number of its group is its own until then
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  {
    const std::lock_guard lock(family());
    workers().erase(pid_);
    std::set<pid_t> spared = before_;
    spared.insert(workers().begin(), workers().end());
    end_children_but(spared);
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return fmt::format("the process died of signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == kNoProgram) return "it cannot be started";
  if (WEXITSTATUS(status) == kLostPipe) {
    return fmt::format("the process closed its pipe to the runner (files {} and {})", kRequests,
                       kReplies);
  }
  return fmt::format("the process ended with code {}", WEXITSTATUS(status));
}

void Process::give_up() {
  bury(true);
  throw Error(Exit::interrupted, "interrupted while the worker was busy");
}

class Processes : public WorkerSource {
 public:
  std::unique_ptr<Worker> start(const WorkerOptions& options) override {
    return std::make_unique<Process>(options);
  }
};

}  // namespace

std::string own_program() {
  const char* self = "/proc/self/exe";
  if (!all_variants().empty()) return self;
  const std::filesystem::path here = std::filesystem::read_symlink(self);
  const std::string beside = here.parent_path() / "moegate";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  usage_error(
      "{} has no kernels, and there is no program {} to measure with; name one, as with "
      "--base-program and --head-program",
      here.string(), beside);
}

WorkerSource& worker_processes() {
  static Processes source;
  return source;
}

}  // namespace moegate
