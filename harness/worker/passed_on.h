// SPDX-License-Identifier: Apache-2.0
// What a worker prints, passed on to standard error as text: a kernel's words are no commands to a terminal or to the
// machinery that reads a CI job's log.
#pragma once

#include <string>
#include <thread>

namespace moegate {

class PassedOn {
 public:
  /// Reads `fd`, which becomes its own, line by line until nobody can write any more. Throws Error(environment)
  /// where there is no pipe to be had.
  explicit PassedOn(int fd);
  /// Passes on what is there; whoever still holds the other end writes in vain.
  ~PassedOn();
  PassedOn(const PassedOn&) = delete;
  PassedOn& operator=(const PassedOn&) = delete;

 private:
  void pass_on();
  /// What can be read now. False: there will be no more.
  bool take();
  void say_lines();

  const int fd_;
  int end_[2];        // closed at one end: the other is told
  std::string text_;  // that has no line end yet
  std::thread reader_;
};

}  // namespace moegate
