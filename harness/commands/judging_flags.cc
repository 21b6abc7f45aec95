// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/judging_flags.h"

#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/flags.h"

namespace moegate {

namespace po = boost::program_options;

Limits LimitOptions::of(Backend backend) const {
  Limits limits = Limits::of(backend);
  limits.margin = margin.value_or(limits.margin);
  limits.fail_at = fail_at.value_or(limits.fail_at);
  if (limits.fail_at < limits.margin) {
    usage_error("--fail-at {:g}% is below --margin {:g}%; a row cannot fail inside the margin",
                100 * limits.fail_at, 100 * limits.margin);
  }
  return limits;
}

po::options_description limit_flags(LimitOptions& limits) {
  const auto share = [](const char* flag, std::optional<double>& field) {
    return read_by([flag, &field](const std::string& text) { field = parse_share(flag, text); });
  };
  po::options_description flags("What counts as slower");
  flags.add_options()  //
      ("margin", share("--margin", limits.margin)->value_name("P%"),
       "a row may be slower by this much (default: 1% on a GPU, at least two ticks; 10% on a "
       "host)")  //
      ("fail-at", share("--fail-at", limits.fail_at)->value_name("P%"),
       "and fails from this estimate (default: 1.5% on a GPU, 15% on a host)");
  return flags;
}

po::options_description judging_flags(JudgingOptions& judging, const std::string& fail_on) {
  PublishOptions& publish = judging.publish;
  po::options_description flags("How to judge");
  flags.add(limit_flags(judging.limits));
  flags.add_options()(
      "fail-on",
      read_by([&](const std::string& list) { judging.fail_on = parse_fail_on(list); })
          ->default_value(fail_on)
          ->value_name("LIST"),
      "what fails, of latency, accuracy, coverage, environment, changed (inconclusive where the "
      "machine code changed), inconclusive; a wrong output always does");
  flags.add(format_flag(publish.format,
                        "text, md, csv or json on stdout (default: text on a terminal, else md)"));
  flags.add_options()  //
      ("report", output(publish.report)->value_name("FILE"),
       "also write the markdown report; - is standard output")  //
      ("page", output(publish.page)->value_name("FILE"),
       "also write the report as one HTML file with charts; it needs no network")   //
      ("junit", output(publish.junit)->value_name("FILE"), "also write JUnit XML")  //
      ("github", po::bool_switch(&publish.github),
       "annotate the GitHub Actions job and append the report to its summary")  //
      ("verdict", output(publish.verdict)->value_name("FILE"),
       "also write verdict.json, as the last act: a gate without one has failed");
  return flags;
}

}  // namespace moegate
