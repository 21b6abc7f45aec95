// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/templates.h"

#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/core/demangle.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/campaign/suite.h"
#include "harness/device/open.h"

namespace moegate {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEnding = ".in";

fs::path template_path(const std::string& path) {
  return home() / "templates" / (path + kEnding);
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

/// How many of its own parameters have values that are neither 1 nor each other's.
size_t telling_values(const OpEntry& op, const Case& c) {
  std::set<std::string> values;
  for (const Param& param : op.params) values.insert(c.params.at(param.name));
  return values.size() - values.count("1");
}

/// Of the first suite that has one, and the suite. Throws Error(usage) where none has.
std::pair<Case, std::string> most_telling_case(const Registry& registry, const OpEntry& op,
                                               const std::vector<std::string>& suites) {
  const auto operators = describe_operators(registry, Backend::host);
  for (const std::string& suite : suites) {
    const Case* best = nullptr;
    const auto cases = load_suite(suite, {}, operators);
    for (const Case& c : cases) {
      if (c.op != op.name) continue;
      if (best == nullptr || telling_values(op, c) > telling_values(op, *best)) best = &c;
    }
    if (best != nullptr) return {*best, suite};
  }
  usage_error("no case of operator '{}' in {}; give --suite a suite that has one", op.name,
              fmt::join(suites, ", "));
}

const char* role_text(Role role) {
  return role == Role::output ? "output" : role == Role::weight ? "weight" : "activation";
}

std::string tensors_text(const Problem& problem) {
  size_t width = 0;
  for (const Tensor* t : problem.tensors()) width = std::max(width, t->name().size());
  std::vector<std::string> lines;
  for (const Tensor* t : problem.tensors()) {
    lines.push_back(fmt::format("{:{}}  {:10}  {:5}  [{}]", t->name(), width, role_text(t->role()),
                                name_of(t->dtype()), fmt::join(t->shape(), ", ")));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// Those of a decode's and a prefill's counts that the operator takes, else the example's.
std::string tokens_of(const OpEntry& op, const Case& example) {
  const auto own = example.params.find("tokens");
  if (own == example.params.end()) return "";
  std::vector<std::string> counts;
  for (const char* count : {"1", "8", "64"}) {
    Case c = example;
    c.params["tokens"] = count;
    if (refusal_by(op, c).empty()) counts.emplace_back(count);
  }
  return counts.empty() ? own->second : fmt::format("{}", fmt::join(counts, ", "));
}

size_t width_of(const std::vector<Param>& params) {
  size_t width = 0;
  for (const Param& param : params) width = std::max(width, param.name.size());
  return width;
}

}  // namespace

std::string filled_in(const std::string& text, const Words& words) {
  static const re2::RE2 up_to_a_word(R"(((?s).*?)\{\{([a-z_]+)\}\})");
  re2::StringPiece rest(text);
  std::string out, before, word;
  while (re2::RE2::Consume(&rest, up_to_a_word, &before, &word)) {
    const auto value = words.find(word);
    if (value == words.end()) give_up(Exit::internal, "a template has the unknown word '{}'", word);
    out += before;
    const size_t line = out.rfind('\n') + 1;  // npos + 1 is 0
    out += boost::replace_all_copy(value->second, "\n", "\n" + out.substr(line));
  }
  return out.append(rest.begin(), rest.end());
}

bool has_template(const std::string& path) {
  return is_file(template_path(path));
}

std::string template_text(const std::string& path) {
  const fs::path file = template_path(path);
  if (!is_file(file)) {
    give_up(Exit::environment,
            "{} is not there; install moegate again, or set MOEGATE_HOME to the source tree or the "
            "installation prefix",
            file.string());
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
    files.push_back({to / boost::replace_all_copy(name, "NAME", words.at("name")),
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
  for (const NewFile& file : files) {
    std::error_code error;
    const fs::path folder = file.path.parent_path();
    if (!folder.empty()) fs::create_directories(folder, error);
    if (!error) continue;
    usage_error("folder {} cannot be made: {}; name another with --out", folder.string(),
                error.message());
  }
  for (auto file = files.begin(); file != files.end(); ++file) {
    const std::string why = make_file(*file);
    if (why.empty()) continue;
    for (auto made = files.begin(); made != file; ++made) std::remove(made->path.c_str());
    usage_error("{} cannot be written: {}; nothing was written, name another folder with --out",
                file->path.string(), why);
  }
}

std::string refusal_by(const OpEntry& op, const Case& c) {
  try {
    op.validate(c);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

std::string OpSample::params_text() const {
  const size_t width = width_of(op.params);
  std::vector<std::string> lines;
  for (const Param& param : op.params) {
    std::string attribute = param.name;
    std::ranges::replace(attribute, '-', '_');
    lines.push_back(fmt::format("{:{}}  {}", attribute, width, param.help));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string OpSample::suite_text(const Registry& registry) const {
  const std::string tokens = tokens_of(find_op(op.name, registry), example);
  const size_t width = width_of(op.params);
  std::vector<std::string> lines;
  for (const Param& param : op.params) {
    const std::string& value = param.name == "tokens" ? tokens : example.params.at(param.name);
    lines.push_back(fmt::format("{:{}} = {:12}  # {}", param.name, width, value, param.help));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

OpSample sample_of(const Registry& registry, const std::string& op,
                   const std::vector<std::string>& suites, Backend backend) {
  const OpEntry& entry = find_op(op, registry);
  OpSample sample;
  for (OpDescription& described : describe_operators(registry, backend)) {
    if (described.name == op) sample.op = std::move(described);
  }
  std::tie(sample.example, sample.suite) = most_telling_case(registry, entry, suites);
  // As kernels/README.md has it: a folder's header is called as the folder.
  const auto folder = std::filesystem::path(entry.file).parent_path();
  sample.header = (folder / folder.filename()).string() + ".h";
  const auto device = open_host_device();
  const auto problem = entry.make(*device, resolved(sample.example, device->facts(), registry));
  const Problem& made = *problem;
  const std::string name = boost::core::demangle(typeid(made).name());  // "moegate::a::B"
  const size_t at = name.rfind("::");
  sample.space = name.substr(0, at);
  sample.problem = at == std::string::npos ? name : name.substr(at + 2);
  sample.tensors = tensors_text(*problem);
  return sample;
}

}  // namespace moegate
