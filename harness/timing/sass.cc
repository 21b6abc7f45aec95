// SPDX-License-Identifier: Apache-2.0
// Runs nvdisasm on a temporary file, since it reads no standard input.
#include "harness/timing/sass.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr std::string_view kSectionLabel = ".text.";

/// "/*01a0*/   @!P0   BRA `(.L_x_0) ;" -> 0x1a0 and "@!P0 BRA `(.L_x_0)".
std::optional<std::pair<int64_t, std::string>> instruction_of(const std::string& line) {
  static const RE2 form(R"(^/\*([0-9a-fA-F]+)\*/([^;]*);)", RE2::Latin1);
  int64_t offset = 0;
  std::string written, text;
  if (!RE2::PartialMatch(line, form, RE2::Hex(&offset), &written)) return std::nullopt;
  std::istringstream words(written);
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return std::pair(offset, text);
}

}  // namespace

std::map<std::string, Sass> parse_sass(std::string_view printed) {
  std::map<std::string, Sass> functions;
  Sass* function = nullptr;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    line = trimmed(line);
    if (line.starts_with(kSectionLabel) && line.ends_with(':')) {
      const size_t name = kSectionLabel.size();
      function = &functions[line.substr(name, line.size() - name - 1)];
    } else if (auto instruction = instruction_of(line); instruction && function) {
      function->insert(std::move(*instruction));
    }
  }
  return functions;
}

std::string find_nvdisasm() {
  const std::string home = environment("CUDA_HOME");
  std::istringstream folders((home.empty() ? "" : home + "/bin:") + environment("PATH") +
                             ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/nvdisasm";
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Sass disassemble(const std::string& nvdisasm, std::span<const uint8_t> cubin,
                 const std::string& function, uint32_t symbol) {
  if (nvdisasm.empty()) return {};
  try {
    const ScratchFolder folder("cubin");
    const std::string file =
        folder.add("code.cubin", {reinterpret_cast<const char*>(cubin.data()), cubin.size()});
    // All of a library's cubin takes seconds; the one function is asked for first.
    for (const std::vector<std::string>& only :
         {std::vector<std::string>{"--function-index", fmt::format("{}", symbol)}, {}}) {
      std::vector<std::string> command = {nvdisasm, "--print-code"};
      command.insert(command.end(), only.begin(), only.end());
      command.push_back(file);
      const Finished finished = run_program(command, Output::capture);
      if (finished.exit != 0) continue;
      auto functions = parse_sass(finished.out);
      const auto found = functions.find(function);
      if (found != functions.end() && !found->second.empty()) return std::move(found->second);
    }
  } catch (const std::exception&) {
    // An instruction without its text is still an instruction.
  }
  return {};
}

}  // namespace moegate
