// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/program.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/base/error.h"
#include "harness/store/sqlite.h"

namespace moegate::test {
namespace {

/// The path built in, or the one an installed folder names.
std::string from_environment(const char* name, const char* built_in) {
  const char* value = std::getenv(name);
  return value ? std::filesystem::absolute(value).string() : built_in;
}

enum class Take { taken, busy, impossible };

/// Confines this process, and what it starts, to a processor that no other test holds.
Take take_processor(int processor) {
  const std::string lock = (std::filesystem::temp_directory_path() /
                            ("moegate-test-processor-" + std::to_string(processor)))
                               .string();
  const int file = open(lock.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0666);
  if (file < 0) return Take::impossible;
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    close(file);
    return Take::busy;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  // The lock is held, and the file open, until the process ends.
  return sched_setaffinity(0, sizeof one, &one) == 0 ? Take::taken : Take::impossible;
}

/// Waits for a processor of its own where CTest asks for it. A measurement keeps a thread awake on
/// every processor that it may use, so that two of them on the same ones take many times as long.
bool take_any_processor() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (!std::getenv("MOEGATE_TEST_ONE_PROCESSOR")) return false;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return false;
  for (;;) {
    bool busy = false;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      const Take take = CPU_ISSET(i, &usable) ? take_processor(i) : Take::impossible;
      if (take == Take::taken) return true;
      busy = busy || take == Take::busy;
    }
    if (!busy) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

ProgramTest::ProgramTest() {
  [[maybe_unused]] static const bool taken = take_any_processor();
  std::string pattern = (std::filesystem::temp_directory_path() / "moegate-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder for the test");
  folder_ = pattern;
}

ProgramTest::~ProgramTest() {
  std::filesystem::remove_all(folder_);
}

Outcome ProgramTest::shell(const std::string& command) const {
  const std::string line = "cd '" + folder_.string() + "' && export MOEGATE_HOME='" +
                           from_environment("MOEGATE_HOME", MOEGATE_SOURCE_DIR) +
                           "' && unset MOEGATE_DB && { " + command +
                           "; } >out.txt 2>err.txt </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out.txt"),
          read("err.txt")};
}

std::string ProgramTest::program() {
  return from_environment("MOEGATE_PROGRAM", MOEGATE_PROGRAM);
}

std::string ProgramTest::saboteurs() {
  return from_environment("MOEGATE_SABOTEURS", MOEGATE_SABOTEURS);
}

Outcome ProgramTest::moegate(const std::string& arguments) const {
  return shell(program() + " " + arguments);
}

Outcome ProgramTest::saboteur(const std::string& sabotage, const std::string& arguments) const {
  return shell("MOEGATE_SABOTEUR=" + sabotage + " " + saboteurs() + " " + arguments);
}

std::string ProgramTest::sabotaged(const std::string& sabotage) const {
  const std::string name = "sabotaged_" + sabotage;
  write(name, "#!/bin/sh\nMOEGATE_SABOTEUR=" + sabotage + " exec " + saboteurs() + " \"$@\"\n");
  shell("chmod +x '" + name + "'");
  return "./" + name;
}

std::string ProgramTest::query(const std::string& db, const std::string& sql) const {
  Database database((folder_ / db).string(), SQLITE_OPEN_READONLY);
  Statement statement(database, sql);
  return statement.step() ? statement.text(0) : "no row";
}

int ProgramTest::number(const std::string& db, const std::string& sql) const {
  try {
    return std::stoi(query(db, sql));
  } catch (const Error&) {
    return 0;
  }
}

void ProgramTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name) << text;
}

std::string ProgramTest::read(const std::string& name) const {
  std::ifstream file(folder_ / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace moegate::test
