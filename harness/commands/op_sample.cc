// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/op_sample.h"

#include <cxxabi.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <typeinfo>

#include "harness/base/error.h"
#include "harness/campaign/suite.h"
#include "harness/device/open.h"

namespace moegate {
namespace {

/// How many of its own parameters have values that are neither 1 nor each other's.
size_t telling_values(const OpEntry& op, const Case& c) {
  std::set<std::string> values;
  for (const Param& param : op.params) values.insert(c.params.at(param.name));
  return values.size() - values.count("1");
}

Case most_telling_case(const Registry& registry, const OpEntry& op, const std::string& suite) {
  const Case* best = nullptr;
  const auto cases = load_suite(suite, {}, describe_operators(registry, Backend::host));
  for (const Case& c : cases) {
    if (c.op != op.name) continue;
    if (best == nullptr || telling_values(op, c) > telling_values(op, *best)) best = &c;
  }
  if (best == nullptr) {
    usage_error("suite '{}' has no case of operator '{}'; name one that has with --suite", suite,
                op.name);
  }
  return *best;
}

/// "moegate::moe_sum::MoeSum"
std::string class_of(const Problem& problem) {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(problem).name(), nullptr, nullptr, &status);
  const std::string text = status == 0 ? name : "";
  std::free(name);
  return text;
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

OpDescription description_of(const Registry& registry, const std::string& op, Backend backend) {
  for (OpDescription& described : describe_operators(registry, backend)) {
    if (described.name == op) return described;
  }
  return {};
}

bool takes(const OpEntry& op, Case c, const std::string& tokens) {
  c.params["tokens"] = tokens;
  try {
    op.validate(c);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Those of a decode's and a prefill's counts that the operator takes, else the example's.
std::string tokens_of(const OpEntry& op, const Case& example) {
  const auto own = example.params.find("tokens");
  if (own == example.params.end()) return "";
  std::vector<std::string> counts;
  for (const char* count : {"1", "8", "64"}) {
    if (takes(op, example, count)) counts.emplace_back(count);
  }
  return counts.empty() ? own->second : fmt::format("{}", fmt::join(counts, ", "));
}

/// Characters of the longest name.
size_t width_of(const std::vector<Param>& params) {
  size_t width = 0;
  for (const Param& param : params) width = std::max(width, param.name.size());
  return width;
}

}  // namespace

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

OpSample sample_of(const Registry& registry, const std::string& op, const std::string& suite,
                   Backend backend) {
  const OpEntry& entry = find_op(op, registry);
  OpSample sample;
  sample.op = description_of(registry, op, backend);
  sample.example = most_telling_case(registry, entry, suite);
  // As kernels/README.md has it: a folder's header is called as the folder.
  const auto folder = std::filesystem::path(entry.file).parent_path();
  sample.header = (folder / folder.filename()).string() + ".h";
  const auto device = open_host_device();
  const auto problem = entry.make(*device, resolved(sample.example, device->facts(), registry));
  const std::string name = class_of(*problem);
  const size_t at = name.rfind("::");
  sample.space = name.substr(0, at);
  sample.problem = at == std::string::npos ? name : name.substr(at + 2);
  sample.tensors = tensors_text(*problem);
  return sample;
}

}  // namespace moegate
