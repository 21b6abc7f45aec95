// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/templates.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"

namespace moegate {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEnding = ".in";

fs::path template_path(const std::string& path) {
  return home() / "templates" / (path + kEnding);
}

/// The word between {{ and }} at `at`; empty where there is none.
std::string word_at(const std::string& text, size_t at) {
  if (text.compare(at, 2, "{{") != 0) return "";
  size_t end = at + 2;
  while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') || text[end] == '_')) ++end;
  return text.compare(end, 2, "}}") == 0 ? text.substr(at + 2, end - at - 2) : "";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Why a file could not be made; empty when it was.
std::string make_file(const NewFile& file) {
  std::FILE* out = std::fopen(file.path.c_str(), "wxe");  // x: fails where something is there
  if (out == nullptr) return std::strerror(errno);
  const size_t written = std::fwrite(file.text.data(), 1, file.text.size(), out);
  const bool closed = std::fclose(out) == 0;
  if (written == file.text.size() && closed) return "";
  const std::string why = std::strerror(errno);
  std::remove(file.path.c_str());
  return why;
}

void make_folder_of(const fs::path& path) {
  if (!path.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    usage_error("folder {} cannot be made: {}; name another with --out",
                path.parent_path().string(), error.message());
  }
}

}  // namespace

std::string filled_in(const std::string& text, const Words& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string word = word_at(text, at);
    if (word.empty()) {
      out += text[at++];
      continue;
    }
    const auto value = words.find(word);
    if (value == words.end()) {
      throw Error(Exit::internal, "a template has the unknown word '" + word + "'");
    }
    const size_t line = out.rfind('\n') + 1;  // npos + 1 is 0
    out += replaced(value->second, "\n", "\n" + out.substr(line));
    at += word.size() + 4;
  }
  return out;
}

bool has_template(const std::string& path) {
  return is_file(template_path(path));
}

std::string template_text(const std::string& path) {
  const fs::path file = template_path(path);
  if (!is_file(file)) {
    throw Error(Exit::environment,
                fmt::format("{} is not there; install moegate again, or set MOEGATE_HOME to the "
                            "source tree or the installation prefix",
                            file.string()));
  }
  const std::string text = read_file(file);
  const size_t end = text.find('\n');
  const bool licensed = text.substr(0, end).find("SPDX-License-Identifier") != std::string::npos;
  return licensed ? text.substr(end + 1) : text;
}

std::vector<NewFile> files_of_template(const std::string& folder, const fs::path& to,
                                       const Words& words) {
  std::vector<NewFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(home() / "templates" / folder, error)) {
    if (!entry.is_regular_file() || entry.path().extension() != kEnding) continue;
    const std::string name = entry.path().stem().string();
    files.push_back({to / replaced(name, "NAME", words.at("name")),
                     filled_in(template_text(folder + "/" + name), words)});
  }
  // As template_text() puts it.
  if (files.empty()) template_text(folder + "/NAME");
  std::ranges::sort(files, {}, &NewFile::path);
  return files;
}

void write_new_files(const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    std::error_code ignored;  // what cannot be looked at cannot be made, either
    if (!fs::exists(fs::symlink_status(file.path, ignored))) continue;
    usage_error("{} is there and is not overwritten; choose another NAME or --out, or remove it",
                file.path.string());
  }
  for (const NewFile& file : files) make_folder_of(file.path);
  for (auto file = files.begin(); file != files.end(); ++file) {
    const std::string why = make_file(*file);
    if (why.empty()) continue;
    for (auto made = files.begin(); made != file; ++made) std::remove(made->path.c_str());
    usage_error("{} cannot be written: {}; nothing was written, name another folder with --out",
                file->path.string(), why);
  }
}

}  // namespace moegate
