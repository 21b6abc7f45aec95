// SPDX-License-Identifier: Apache-2.0
#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <re2/re2.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

std::atomic<bool> came = false;  // lanes ask from threads of their own
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
int guards = 0;
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

struct SpawnActions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnActions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // An ignored SIGPIPE is inherited, and scripts rely on it to end their pipelines.
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnActions(SpawnActions&&) = delete;
};

pid_t spawn(const std::vector<std::string>& command, const SpawnActions& actions) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0], &actions.files, &actions.attributes, argv.data(), environ);
  if (error != 0) {
    give_up(Exit::environment, "{}: cannot be started: {}; is it installed?", command[0],
            std::strerror(error));
  }
  return pid;
}

int exit_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_of(status);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t n = 0; (n = read(fd, block.data(), block.size())) > 0 || (n < 0 && errno == EINTR);)
    text.append(block.data(), n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

namespace fs = std::filesystem;

/// 0 for a process that is gone.
pid_t parent_of(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string line;
  std::getline(in, line);
  static const RE2 behind_name(R"(.*\) . (\d+))", RE2::Latin1);  // a name may hold anything
  pid_t parent = 0;
  RE2::PartialMatch(line, behind_name, &parent);
  return parent;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards++ > 0) return;
  came = false;
  struct sigaction action {};
  action.sa_handler = [](int) { came = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < old_.size(); ++i) sigaction(kSignals[i], &action, &old_[i]);
  if (old_.back().sa_handler == SIG_IGN) sigaction(SIGHUP, &old_.back(), nullptr);
  // A worker that died must be an error value of write(), not the end of the runner.
  old_pipe_ = std::signal(SIGPIPE, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  if (--guards > 0) return;
  for (size_t i = 0; i < old_.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  std::signal(SIGPIPE, old_pipe_);
}

bool InterruptGuard::interrupted() {
  return came;
}

Finished run_program(const std::vector<std::string>& command, Output output) {
  SpawnActions actions;
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSIGDEF);
  if (output == Output::show) {
    posix_spawn_file_actions_adddup2(&actions.files, STDERR_FILENO, STDOUT_FILENO);
    return {wait_for(spawn(command, actions)), ""};
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    give_up(Exit::environment, "cannot make a pipe to {}: {}; close some programs", command[0],
            std::strerror(errno));
  }
  using End = std::unique_ptr<FILE, int (*)(FILE*)>;
  const End from(fdopen(ends[0], "r"), fclose);
  End to(fdopen(ends[1], "w"), fclose);
  posix_spawn_file_actions_adddup2(&actions.files, ends[1], STDOUT_FILENO);
  if (output == Output::capture) {
    posix_spawn_file_actions_addopen(&actions.files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  const pid_t pid = spawn(command, actions);
  to.reset();  // so that the text ends with the program
  Finished finished;
  finished.out = read_all(ends[0]);
  finished.exit = wait_for(pid);
  return finished;
}

int run_interruptible(const std::vector<std::string>& command) {
  SpawnActions actions;
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&actions.attributes, 0);
  posix_spawn_file_actions_adddup2(&actions.files, STDERR_FILENO, STDOUT_FILENO);
  const pid_t pid = spawn(command, actions);
  // Asked ten times a second: a signal that comes just before waitpid() would not interrupt it.
  constexpr int kPollMs = 100;
  for (int status = 0;; poll(nullptr, 0, kPollMs)) {
    if (waitpid(pid, &status, WNOHANG) == pid) return exit_of(status);
    if (InterruptGuard::interrupted()) {
      kill(-pid, SIGTERM);
      return wait_for(pid);
    }
  }
}

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::set<pid_t> children() {
  std::set<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const auto pid = parse_number<pid_t>(at->path().filename().native());
    if (pid && parent_of(at->path()) == getpid()) found.insert(*pid);
  }
  return found;
}

void end_children_but(const std::set<pid_t>& spared) {
  constexpr int kGenerations = 10;  // what forks faster than it is killed is not chased for ever
  for (int i = 0; i < kGenerations; ++i) {
    bool any = false;
    for (const pid_t child : children()) {
      if (spared.count(child) > 0) continue;
      any = true;
      kill(child, SIGKILL);
      wait_for(child);
    }
    if (!any) return;
  }
}

}  // namespace moegate
