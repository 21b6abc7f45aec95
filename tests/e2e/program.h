// SPDX-License-Identifier: Apache-2.0
// Runs the real program in a scratch folder and keeps what it printed.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace moegate::test {

struct Outcome {
  int exit = -1;
  std::string out, err;
};

/// Whether a program said it.
inline testing::AssertionResult says(const Outcome& outcome, const std::string& what) {
  const std::string all = outcome.out + outcome.err;
  if (all.find(what) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << what << "' is not said in exit " << outcome.exit << "\n"
         << all;
}

/// A test with a folder of its own, removed afterwards; programs run inside it.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  /// The program under test: the one just built, or what MOEGATE_PROGRAM names.
  static std::string program();
  /// The same program linked with the saboteurs.
  static std::string saboteurs();
  /// Runs `moegate ` + arguments (through a shell, so quote as there).
  Outcome moegate(const std::string& arguments) const;
  /// The saboteurs, with MOEGATE_SABOTEUR set to `sabotage`.
  Outcome saboteur(const std::string& sabotage, const std::string& arguments) const;
  /// A program in the folder that is the saboteurs with a request of its own.
  std::string sabotaged(const std::string& sabotage) const;
  /// The single value of an SQL query on a store in the folder.
  std::string query(const std::string& db, const std::string& sql) const;
  /// The same of a whole number, while a store is being made: 0 where there is none yet.
  int number(const std::string& db, const std::string& sql) const;
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

  /// Runs a shell command in the folder.
  Outcome shell(const std::string& command) const;

  std::filesystem::path folder_;
};

}  // namespace moegate::test
