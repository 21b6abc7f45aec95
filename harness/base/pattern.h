// SPDX-License-Identifier: Apache-2.0
// Regular expressions that people typed: RE2's, whose time and memory grow with the text alone, so that no pattern and
// no name hangs or crashes the program.
#pragma once

#include <memory>
#include <string>

namespace re2 {
class RE2;
}

namespace moegate {

/// A compiled pattern; copies share it. One that is default-constructed is found nowhere.
class Pattern {
 public:
  Pattern() = default;
  bool found_in(const std::string& text) const;
  /// True where the pattern fits all of `text`.
  bool matches(const std::string& text) const;

 private:
  friend Pattern compile_pattern(const std::string& what, const std::string& pattern);
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const re2::RE2> compiled_;
};

/// Throws Error(usage) naming `what` (a flag, a file's field) and the pattern when it is none, or is longer than
/// 4096 bytes.
Pattern compile_pattern(const std::string& what, const std::string& pattern);

/// The pattern that matches `text` and nothing else.
std::string exactly(const std::string& text);

}  // namespace moegate
