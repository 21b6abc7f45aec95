// SPDX-License-Identifier: Apache-2.0
#include "harness/report/forges.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/report/page.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kErrors = 10;  // a step shows ten errors and ten warnings

const char* title_of(const CaseVerdict& v) {
  if (v.outcome == Outcome::regressed) return "latency regression";
  if (v.outcome == Outcome::wrong) return v.drift ? "accuracy regression" : "wrong output";
  return v.outcome == Outcome::missing ? "no result" : "not comparable";
}

/// Where a reviewer would change what a row is judged against: the line of its values in a
/// baseline file, from 1; 0 when it is not there.
int baseline_line(const fs::path& baseline, const CaseId& id) {
  std::ifstream in(baseline);
  const std::string key = id.key + " " + id.variant;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line == key) return number + 1;
  }
  return 0;
}

/// "file=baselines/nvidia-h200/nightly.tsv,line=4,"; empty where the case has no such row.
std::string anchor_of(const CaseVerdict& v, const fs::path& workspace) {
  const int line = v.against.empty() ? 0 : baseline_line(v.against, v.id);
  if (line == 0) return "";
  std::error_code ignored;
  const std::string file = fs::relative(v.against, workspace, ignored).generic_string();
  if (file.empty() || file.compare(0, 2, "..") == 0) return "";  // not of the repository
  return fmt::format("file={},line={},", workflow_property(file), line);
}

struct Suite {
  std::string cases;
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
};

std::string property(const char* name, const std::string& value) {
  if (value.empty()) return "";
  return fmt::format("<property name=\"{}\" value=\"{}\"/>", name, xml_escaped(value));
}

std::string properties_of(const CaseVerdict& v) {
  std::string text = property("outcome", name_of(v.outcome)) + property("waiver", v.waiver);
  if (v.latency) {
    const auto number = [](double x) { return fmt::format("{:.5g}", x); };
    text += property("effect", number(v.latency->effect)) +
            property("low", number(v.latency->low)) + property("high", number(v.latency->high)) +
            property("p_adj", number(v.latency->p_adjusted));
    if (v.latency->mde > 0) text += property("mde", number(v.latency->mde));
    text += property("stage", v.stage == 2 ? "replayed" : "stored");
  }
  return "<properties>" + text + "</properties>";
}

/// The cause and its numbers, a line each; empty where nobody asked.
std::string cause_text(const CaseVerdict& v) {
  if (!v.cause) return "";
  std::string text = "cause: " + v.cause->sentence + "\n";
  for (const std::string& also : v.cause->also) text += "also: " + also + "\n";
  for (const CauseNumber& n : v.cause->numbers) {
    text += fmt::format("{}: {:g} -> {:g}{}{}\n", n.name, n.base, n.head, n.unit.empty() ? "" : " ",
                        n.unit);
  }
  return text;
}

std::string failure(Suite& suite, const char* type, const CaseVerdict& v) {
  ++suite.failures;
  const std::string head =
      fmt::format("<failure type=\"{}\" message=\"{}\"", type, xml_escaped(v.why));
  if (!v.cause) return head + "/>";
  return fmt::format("{}>{}</failure>", head, xml_escaped(cause_text(v)));
}

/// Of a case that passed: what is said of it all the same.
std::string system_out(const std::string& text) {
  return text.empty() ? "" : fmt::format("<system-out>{}</system-out>", xml_escaped(text));
}

/// The element that says how a case did not pass; empty when it did.
std::string outcome_of(Suite& suite, const CaseVerdict& v) {
  switch (v.outcome) {
    case Outcome::regressed:
      return failure(suite, "latency", v);
    case Outcome::wrong:
      return failure(suite, "accuracy", v);
    case Outcome::missing:
      if (v.status != Status::crashed && v.status != Status::timeout &&
          v.status != Status::bad_timer) {
        return failure(suite, "coverage", v);
      }
      ++suite.errors;
      return fmt::format("<error type=\"{}\" message=\"{}\"/>", name_of(v.status),
                         xml_escaped(v.why));
    case Outcome::fresh:
      if (v.against.empty()) return "";
      [[fallthrough]];
    case Outcome::inconclusive:
    case Outcome::environment:
      ++suite.skipped;
      return fmt::format("<skipped message=\"{}: {}\"/>", name_of(v.outcome), xml_escaped(v.why));
    case Outcome::waived:
      return system_out(v.why + (v.cause ? "\n" : "") + cause_text(v));
    case Outcome::pass:
    case Outcome::identical:
    case Outcome::improved:
      return system_out(cause_text(v));
  }
  return "";
}

void add_case(Suite& suite, const CaseVerdict& v, bool host) {
  const std::string op = operator_of(v.id.key);
  const std::string rest = v.id.key.size() > op.size() ? v.id.key.substr(op.size() + 1) : v.id.key;
  const double seconds = host ? 0 : v.head * 1e-6;
  ++suite.tests;
  suite.seconds += seconds;
  suite.cases +=
      fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\">{}{}</testcase>\n",
                  xml_escaped(v.id.suite + "." + op), xml_escaped(rest + " [" + v.id.variant + "]"),
                  seconds, properties_of(v), outcome_of(suite, v));
}

std::string attributes(const Suite& s) {
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.9f}\"",
                     s.tests, s.failures, s.errors, s.skipped, s.seconds);
}

}  // namespace

std::string annotations(const GateReport& report, const fs::path& workspace) {
  const auto failures = worst_first(report.result, kFailures);
  std::string text;
  for (size_t i = 0; i < std::min(failures.size(), kErrors); ++i) {
    const CaseVerdict& v = *failures[i];
    text += fmt::format("::error {}title={}::{}\n", anchor_of(v, workspace),
                        workflow_property(title_of(v)),
                        workflow_escaped(v.id.key + " " + v.id.variant + ": " + v.why +
                                         (v.cause ? "\ncause: " + v.cause->sentence : "")));
  }
  std::string rest;
  if (failures.size() > kErrors)
    rest = fmt::format("{} more failures, see the summary\n", failures.size() - kErrors);
  for (const std::string& problem : report.result.waiver_problems) rest += problem + "\n";
  if (rest.empty()) return text;
  rest.pop_back();
  return text + "::warning title=moegate::" + workflow_escaped(rest) + "\n";
}

void append_summary(const GateReport& report, const fs::path& summary) {
  std::error_code missing;
  const auto size = fs::file_size(summary, missing);
  const size_t used = missing ? 0 : static_cast<size_t>(size);
  const size_t left = used < kSummaryBytes ? kSummaryBytes - used : 0;
  const std::string text = to_markdown(gate_page(report), left);
  if (text.empty()) return;  // not even the verdict fits
  std::ofstream out(summary, std::ios::app | std::ios::binary);
  out << text;
  if (!out.flush())
    usage_error("{}: cannot be appended to (GITHUB_STEP_SUMMARY)", summary.string());
}

void publish_to_github(const GateReport& report) {
  const std::string workspace = environment("GITHUB_WORKSPACE");
  say_raw(annotations(report, workspace.empty() ? fs::current_path() : fs::path(workspace)));
  const std::string summary = environment("GITHUB_STEP_SUMMARY");
  if (!summary.empty()) append_summary(report, summary);
}

std::string junit_xml(const GateReport& report) {
  const RunInfo& run = report.run;
  std::map<std::pair<std::string, std::string>, Suite> suites;  // by suite, operator
  for (const CaseVerdict& v : report.result.cases) {
    add_case(suites[{v.id.suite, operator_of(v.id.key)}], v, run.device.backend == Backend::host);
  }
  Suite all;
  std::string body;
  const std::string properties = property("class", run.device.klass) +
                                 property("uuid", run.device.uuid) +
                                 property("commit", run.git_sha) + property("run", describe(run)) +
                                 property("verdict", sentence(report.result, report.exit));
  for (const auto& [name, s] : suites) {
    body += fmt::format(
        " <testsuite name=\"{}\" timestamp=\"{}\" {}>\n  <properties>{}</properties>\n{}"
        " </testsuite>\n",
        xml_escaped(name.first + "." + name.second), xml_escaped(run.started), attributes(s),
        properties, s.cases);
    all.tests += s.tests;
    all.failures += s.failures;
    all.errors += s.errors;
    all.skipped += s.skipped;
    all.seconds += s.seconds;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"moegate\" {}>\n{}"
      "</testsuites>\n",
      attributes(all), body);
}

}  // namespace moegate
