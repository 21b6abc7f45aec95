// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/gate_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/report/github.h"
#include "harness/report/junit.h"
#include "harness/report/page_markdown.h"

namespace moegate {

namespace po = boost::program_options;

po::options_description limit_flags() {
  po::options_description flags("What counts as slower");
  flags.add_options()  //
      ("margin", po::value<std::string>()->value_name("P%"),
       "a case may be slower by this much (default: 1% on a GPU, at least two ticks; 10% on a "
       "host)")  //
      ("fail-at", po::value<std::string>()->value_name("P%"),
       "and fails from this estimate (default: 1.5% on a GPU, 15% on a host)");
  return flags;
}

po::options_description judging_flags() {
  po::options_description flags("How to judge");
  flags.add(limit_flags());
  flags.add_options()  //
      ("fail-on",
       po::value<std::string>()
           ->default_value("latency,accuracy,coverage,environment")
           ->value_name("LIST"),
       "what fails, of latency, accuracy, coverage, environment, inconclusive; a wrong output "
       "always does")  //
      ("format", po::value<std::string>()->default_value("md")->value_name("F"),
       "md, csv or json on stdout")                                                               //
      ("report", po::value<std::string>()->value_name("FILE"),
       "also write the markdown report; - is standard output")                                    //
      ("junit", po::value<std::string>()->value_name("FILE"), "also write JUnit XML")             //
      ("github", po::bool_switch(),
       "annotate the GitHub Actions job and append the report to its summary")  //
      ("verdict", po::value<std::string>()->value_name("FILE"),
       "also write verdict.json, as the last act: a gate without one has failed");
  return flags;
}

double parse_share(const std::string& flag, const std::string& text) {
  const auto number = leading_number(text);
  if (!number || number->rest != "%" || !(number->value > 0) || !(number->value <= 1000)) {
    usage_error("{} '{}' is not a share; write it in percent, like 1%", flag, text);
  }
  return number->value / 100;
}

Limits read_limits(const po::variables_map& values, Backend backend) {
  Limits limits = backend == Backend::cuda ? Limits::cuda() : Limits::host();
  if (values.count("margin") != 0)
    limits.margin = parse_share("--margin", values["margin"].as<std::string>());
  if (values.count("fail-at") != 0)
    limits.fail_at = parse_share("--fail-at", values["fail-at"].as<std::string>());
  if (limits.fail_at < limits.margin) {
    usage_error("--fail-at {:g}% is below --margin {:g}%; a case cannot fail inside the margin",
                100 * limits.fail_at, 100 * limits.margin);
  }
  return limits;
}

Store open_for_verdict(const std::string& path) {
  const bool exists = access(path.c_str(), F_OK) == 0;
  if (!exists || access(path.c_str(), W_OK) == 0) return Store::open(path, Store::Mode::update);
  fmt::print(stderr, "{} is read-only: the verdict is printed, not stored\n", path);
  return Store::open(path, Store::Mode::read);
}

void publish(Store& store, const GateReport& report, const po::variables_map& values) {
  const Format format = parse_format(values["format"].as<std::string>());
  if (sqlite3_db_readonly(store.database().handle(), "main") == 0) {
    store_verdicts(store, report.run.id, report.result);
  }
  const Page page = gate_page(report);
  const std::string json = verdict_json(report);
  switch (format) {
    case Format::md:
      fmt::print("{}", to_markdown(page, kCommentBytes));  // people paste it
      break;
    case Format::csv:
      fmt::print("{}", render(verdict_table(report.result), Format::csv));
      break;
    case Format::json:
      fmt::print("{}", json);
      break;
  }
  std::fflush(stdout);
  if (values.count("report") != 0)
    write_output(values["report"].as<std::string>(), to_markdown(page, kAnyBytes));
  if (values.count("junit") != 0) write_output(values["junit"].as<std::string>(), junit_xml(report));
  if (values["github"].as<bool>()) publish_to_github(report);
  if (values.count("verdict") != 0) write_output(values["verdict"].as<std::string>(), json);
}

}  // namespace moegate
