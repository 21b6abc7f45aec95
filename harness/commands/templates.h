// SPDX-License-Identifier: Apache-2.0
// Starting points of files: the templates of templates/, with words filled in, written without overwriting anything.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace moegate {

/// What stands for {{word}}.
using Words = std::map<std::string, std::string>;

/// A text with every {{word}} replaced. A value of several lines has before each of them what stands before the word
/// on its own line, so that a list in a comment stays one. Other braces stay. Throws Error(internal) for a word that
/// is not in `words`.
std::string filled_in(const std::string& text, const Words& words);

/// The template templates/`path`.in of the tool's home, without the line of its license: what is made of it is its
/// user's. Throws Error(environment) where the home has none.
std::string template_text(const std::string& path);
bool has_template(const std::string& path);

/// A file that is to be made.
struct NewFile {
  std::filesystem::path path;
  std::string text;
};

/// A file in `to` for each template of templates/`folder`, by name; NAME in a file's name is words["name"]. Folders in
/// it are left out.
std::vector<NewFile> files_of_template(const std::string& folder, const std::filesystem::path& to,
                                       const Words& words);

/// Writes all files, and makes their folders; none where one of them is there already or cannot be written. Throws
/// Error(usage) naming that one.
void write_new_files(const std::vector<NewFile>& files);

}  // namespace moegate
