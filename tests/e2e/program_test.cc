// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/program.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "harness/store/sqlite.h"

namespace moegate {
namespace {

/// The path built in, or the one an installed folder names.
std::string from_environment(const char* name, const char* built_in) {
  const char* value = std::getenv(name);
  return value ? std::filesystem::absolute(value).string() : built_in;
}

}  // namespace

ProgramTest::ProgramTest() {
  std::string pattern = (std::filesystem::temp_directory_path() / "moegate-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder for the test");
  folder_ = pattern;
}

ProgramTest::~ProgramTest() {
  std::filesystem::remove_all(folder_);
}

Outcome ProgramTest::shell(const std::string& command) const {
  const std::string line = "cd '" + folder_.string() + "' && export MOEGATE_HOME='" +
                           from_environment("MOEGATE_HOME", MOEGATE_SOURCE_DIR) + "' && { " +
                           command + "; } >out.txt 2>err.txt </dev/null";
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

void ProgramTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name) << text;
}

std::string ProgramTest::read(const std::string& name) const {
  std::ifstream file(folder_ / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace moegate
