// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "harness/base/error.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/worker/wire.h"

namespace moegate {
namespace {

constexpr int kBuryTries = 500, kBuryMicroseconds = 10000;  // then it is killed
constexpr size_t kLongestLine = 65536;  // bytes; then it goes on without its end
constexpr int kNoProgram = 127;         // exit code of a child that could not become the program

/// Lanes start and bury workers from threads of their own. Held from the look at the children to
/// the new worker's entry, and while the children that are nobody's are ended.
std::mutex& family() {
  static std::mutex mutex;
  return mutex;
}

std::set<pid_t>& workers() {
  static std::set<pid_t> pids;
  return pids;
}

/// Nothing to read, and what a kernel prints goes the way of `words`, not into this program's JSON.
void detach_from_terminal(int words) {
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
  dup2(words, STDOUT_FILENO);
  dup2(words, STDERR_FILENO);
}

/// Turns the forked child into the program. Never returns into the parent's code.
[[noreturn]] void become(const char* program, char* const* variables, const cpu_set_t* cpus, int in,
                         int out, int words) {
  setpgid(0, 0);
  if (cpus) sched_setaffinity(0, sizeof *cpus, cpus);  // a CPU that is gone is no reason to die
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ctrl-C, a terminal that goes away and `timeout` signal the whole group; the parent decides what
  // becomes of the worker.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
  // Away from the numbers that dup2 is about to take.
  in = fcntl(in, F_DUPFD, kReplies + 1);
  out = fcntl(out, F_DUPFD, kReplies + 1);
  detach_from_terminal(words);
  dup2(in, kRequests);
  dup2(out, kReplies);
  close(in);
  close(out);
  // The same arguments for every program: they lie on the stack, and its alignment shows in timings
  // (Mytkowicz et al. 2009).
  execle(program, "moegate", "worker", static_cast<char*>(nullptr), variables);
  _exit(kNoProgram);
}

/// This process's environment with some variables of another value, or without them.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& others) {
  std::vector<std::string> texts;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string text = *at;
    if (!others.contains(text.substr(0, text.find('=')))) texts.push_back(text);
  }
  for (const auto& [name, value] : others) {
    if (!value.empty()) texts.push_back(name + "=" + value);
  }
  return texts;
}

}  // namespace

Child::Child(const std::string& program, const std::vector<int>& cpus,
             const std::map<std::string, std::string>& variables) {
  // Before the fork, after which nothing may be allocated.
  std::vector<std::string> texts = environment_with(variables);
  std::vector<char*> environment;
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  int down[2], up[2], words[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0 || pipe2(words, O_CLOEXEC) != 0) {
    give_up(Exit::environment, "cannot make a pipe: {}", std::strerror(errno));
  }
  cpu_set_t bound_to;
  CPU_ZERO(&bound_to);
  for (const int cpu : cpus) CPU_SET(cpu, &bound_to);
  adopt_orphans();
  fflush(nullptr);
  {
    const std::lock_guard lock(family());
    before_ = children();
    pid_ = fork();
    if (pid_ == 0) {
      become(program.c_str(), environment.data(), cpus.empty() ? nullptr : &bound_to, down[0],
             up[1], words[1]);
    }
    if (pid_ > 0) workers().insert(pid_);
  }
  if (pid_ < 0) give_up(Exit::environment, "cannot fork: {}", std::strerror(errno));
  setpgid(pid_, pid_);  // whoever of the two comes first
  close(down[0]);
  close(up[1]);
  close(words[1]);
  to_ = down[1];
  from_ = up[0];
  printed_.emplace(words[0]);
}

Child::~Child() {
  if (alive()) bury(true);
  close(from_);
}

std::string Child::bury(bool kill_first) {
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
  printed_.reset();  // said before it is said how it ended
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

PassedOn::PassedOn(int fd) : fd_(fd) {
  if (pipe2(end_, O_CLOEXEC) != 0) {
    give_up(Exit::environment, "cannot make a pipe: {}", std::strerror(errno));
  }
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  reader_ = std::thread([this] { pass_on(); });
}

PassedOn::~PassedOn() {
  close(end_[1]);
  reader_.join();
  close(end_[0]);
  close(fd_);
}

bool PassedOn::take() {
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 && errno == EAGAIN;
    text_.append(bytes.data(), static_cast<size_t>(got));
    say_lines();
  }
}

void PassedOn::say_lines() {
  const size_t last = text_.rfind('\n');
  const size_t whole = last != std::string::npos      ? last + 1
                       : text_.size() >= kLongestLine ? text_.size()
                                                      : 0;
  if (whole == 0) return;
  say_text(text_.substr(0, whole));
  text_.erase(0, whole);
}

void PassedOn::pass_on() {
  for (bool goes_on = true; goes_on;) {
    std::array<pollfd, 2> ready{pollfd{fd_, POLLIN, 0}, pollfd{end_[0], POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) break;
    goes_on = take() && ready[1].revents == 0;
  }
  if (!text_.empty()) say_text(text_);
}

}  // namespace moegate
