// SPDX-License-Identifier: Apache-2.0
// An environment variable that a test sets.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>
#include <utility>

namespace moegate {

/// Sets a variable of this process; when the object goes, it is what it was, or unset as it was.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = ::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace moegate
