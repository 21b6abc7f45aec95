// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/protocol.h"

#include <algorithm>

namespace moegate {

void to_json(nlohmann::json& json, const Check& check) {
  json = {{"questions", check.questions}};
}

void from_json(const nlohmann::json& json, Check& check) {
  check.questions.clear();
  for (const nlohmann::json& question : json.at("questions")) {
    if (check.questions.empty() || question.contains("spec")) {
      check.questions.push_back(question.get<CaseQuestion>());
      continue;
    }
    CaseQuestion like = check.questions.back();
    for (const auto& [name, value] : question.at("params").items()) {
      like.spec.params[name] = value.get<std::string>();
    }
    check.questions.push_back(std::move(like));
  }
}

namespace {

/// The values of b's parameters that are not a's, where nothing else differs; null where
/// something does.
nlohmann::json other_values(const CaseQuestion& a, const CaseQuestion& b) {
  const Case &before = a.spec, &now = b.spec;
  if (a.resolve != b.resolve || a.variants != b.variants || before.op != now.op ||
      before.suite != now.suite || before.section != now.section ||
      before.params.size() != now.params.size() || before.defaults.get() != now.defaults.get()) {
    return nullptr;
  }
  auto values = nlohmann::json::object();
  for (auto x = before.params.begin(), y = now.params.begin(); y != now.params.end(); ++x, ++y) {
    if (x->first != y->first) return nullptr;
    if (x->second != y->second) values[y->first] = y->second;
  }
  return values;
}

}  // namespace

nlohmann::json check_message(const std::vector<CaseQuestion>& questions) {
  auto all = nlohmann::json::array();
  const CaseQuestion* before = nullptr;
  for (const CaseQuestion& question : questions) {
    nlohmann::json values = before ? other_values(*before, question) : nlohmann::json();
    all.push_back(values.is_null() ? nlohmann::json(question)
                                   : nlohmann::json{{"params", std::move(values)}});
    before = &question;
  }
  return {{"kind", Check::kKind}, {"questions", std::move(all)}};
}

std::string kind_of(const nlohmann::json& message) {
  if (!message.is_object()) return "";
  const auto kind = message.find("kind");
  return kind != message.end() && kind->is_string() ? kind->get<std::string>() : "";
}

std::vector<std::string> own_features() {
  return {feature::kCheck,         feature::kLike,          feature::kThrottle,
          feature::kLoaded,        feature::kEnvironment,   feature::kCanary,
          name_of(Task::controls), feature::kKernels,       name_of(Task::profile),
          name_of(Task::compile),  name_of(Task::counters), name_of(Task::stalls),
          name_of(Task::energy),   feature::kLaunched};
}

void check_wire(int theirs, const std::string& who) {
  if (theirs == kWire) return;
  usage_error(
      "{} speaks version {} of the worker's protocol, and this program speaks version {}; build "
      "the older program again",
      who, theirs, kWire);
}

Error error_of(const Fault& fault) {
  // What a worker may end of; whatever else it says must not become the end of a night.
  const auto known = {Exit::usage, Exit::environment, Exit::internal};
  const auto code = static_cast<Exit>(fault.exit);
  return {std::ranges::count(known, code) > 0 ? code : Exit::environment, fault.fault};
}

std::string implausible(const Result& result, double elapsed_s) {
  std::string why = impossible_number(result);
  if (!why.empty() || !result.measured() || result.timer.empty()) return why;
  if (result.span_ns > 1e9 * elapsed_s) {
    return fmt::format("span_ns is {:g}, but the answer took {:.3g} s", result.span_ns, elapsed_s);
  }
  return "";
}

}  // namespace moegate
