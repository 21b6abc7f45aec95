// SPDX-License-Identifier: Apache-2.0
// Starting points of files: the templates of templates/, what is filled into them of an operator,
// and how they are written without overwriting anything.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/kernel/registry.h"

namespace moegate {

/// What stands for {{word}}.
using Words = std::map<std::string, std::string>;

/// A text with every {{word}} replaced. A value of several lines has before each of them what
/// stands before the word on its own line, so that a list in a comment stays one. Other braces
/// stay. Throws Error(internal) for a word that is not in `words`.
std::string filled_in(const std::string& text, const Words& words);

/// The template templates/`path`.in of the tool's home, without the line of its license: what is
/// made of it is its user's. Throws Error(environment) where the home has none.
std::string template_text(const std::string& path);
bool has_template(const std::string& path);

struct NewFile {
  std::filesystem::path path;
  std::string text;
};

/// A file in `to` for each template right in `folder`, by name; NAME in its name is words["name"].
std::vector<NewFile> files_of_template(const std::string& folder, const std::filesystem::path& to,
                                       const Words& words);

/// Writes all files, and makes their folders; none where one of them is there already or cannot be
/// written. Throws Error(usage) naming that one.
void write_new_files(const std::vector<NewFile>& files);

// What a starting point says of an operator that exists: its parameters, and its tensors in a case.

struct OpSample {
  OpDescription op;     // with what a backend's variants are compared with
  Case example;         // a case of it
  std::string suite;    // that has the case
  std::string header;   // relative to the source tree: "kernels/moe_sum/moe_sum.h"
  std::string space;    // of its Problem: "moegate::moe_sum"
  std::string problem;  // "MoeSum"
  std::string tensors;  // a line each: name, role, type, shape in the example

  /// Lines "tokens  T, 1 to 65536".
  std::string params_text() const;
  /// Lines "topk = 8  # k, 1 to 16" with the example's values; of tokens 1, 8, 64 as it takes them.
  std::string suite_text(const Registry& registry) const;
};

/// Why an operator does not take a case; empty where it does.
std::string refusal_by(const OpEntry& op, const Case& c);

/// Builds a problem on the host, of the case whose parameters differ most, so that a shape tells
/// which they are, in the first suite that has one. Throws Error(usage) for an unknown operator and
/// suites without it.
OpSample sample_of(const Registry& registry, const std::string& op,
                   const std::vector<std::string>& suites, Backend backend);

}  // namespace moegate
