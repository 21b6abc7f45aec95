// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/verbs.h"

#include <algorithm>

#include "harness/commands/commands.h"

namespace moegate {

// A table: NOLINTNEXTLINE(readability-function-size)
std::span<const Verb> verbs() {
  static const std::array<Verb, 16> all = {{
      {{"run", cmd_run},
       "verify, measure and store every variant of a suite",
       {"--suite S [options]", "--like ROW [options]",
        "FILE.py:FUNCTION [--against FILE.py:FUNCTION] [options]"},
       {"moegate run --suite smoke", "moegate run bench.py:mine --against bench.py:theirs"},
       {"suite", "variant", "filter", "device", "module", "rounds", "budget", "label", "db", "like",
        "dry-run"}},
      {{"verify", cmd_verify},
       "check outputs against the truth only",
       {"--suite S [options]"},
       {"moegate verify --suite tiny --controls", "moegate verify --suite tiny --invariance 257"},
       {"suite", "variant", "filter", "device", "module", "controls", "invariance"}},
      {{"profile", cmd_profile},
       "count, sample stalls, measure energy or first launches of every variant of a suite",
       {"[counters|stalls|energy|compile] --suite S [options]"},
       {"moegate profile --suite tiny --variant chain", "moegate profile stalls --suite tiny"},
       {"suite", "variant", "filter", "metrics", "per-kernel", "under", "db", "format"}},
      {{"ab", cmd_ab},
       "judge two programs, commits or variants side by side",
       {"--base program=PATH --suite S [options]",
        "--base variant=A --head variant=B --suite S [options]",
        "--repo DIR BASE [HEAD] --module FILE --suite S [options]"},
       {"moegate ab --base variant=chain --head variant=fused_warp --suite pr-aiter-3526",
        "moegate ab --base program=old/moegate --suite smoke --out ab.md"},
       {"base", "head", "variant", "repo", "module", "suite", "filter", "rounds", "out", "why",
        "db"}},
      {{"nightly", cmd_nightly},
       "run the perf gate: verify, measure, judge, replay, report",
       {"[options]"},
       {"moegate nightly", "moegate nightly --suite smoke --budget 15min --out out"},
       {"suite", "device", "module", "budget", "rounds", "out", "baselines", "fail-on", "github"}},
      {{"gate", cmd_gate},
       "judge a run against the blessed baseline, or against another run",
       {"[options]", "--against RUN [options]", "--resources [options]"},
       {"moegate gate --out verdict.json --out report.md", "moegate gate --against 3 --run 4"},
       {"run", "against", "db", "baselines", "candidate", "replay-program", "fail-on", "why", "out",
        "format", "resources"}},
      {{"bless", cmd_bless},
       "make a run the baseline",
       {"[options]", "--resources [options]"},
       {"moegate bless --reason 'faster split-K'",
        "moegate bless --run 7 --reason 'new driver' --accept conditions"},
       {"run", "db", "reason", "accept", "baselines", "resources"}},
      {{"report", cmd_report},
       "print a table of a run, its causes against another run, or a history",
       {"[REPORT] [options]", "changes [--since DAYS]|history --filter RE [options]",
        "why --against RUN [options]"},
       {"moegate report changes --since 7d", "moegate report history --filter 'tokens=8(,|$)'"},
       {"run", "db", "filter", "variant", "columns", "sort", "chart", "against", "last", "format"}},
      {{"pages", cmd_pages},
       "write a store as pages for a browser, with charts",
       {"[options]"},
       {"moegate pages", "moegate pages --since 90d --out site"},
       {"out", "since", "report", "db"}},
      {{"tune", cmd_tune},
       "find the fastest tile configurations, or check what variants choose",
       {"--suite S [options]"},
       {"moegate tune --suite tune-deepseek-r1",
        "moegate tune --check --suite deepseek-r1 --module vllm_moe.py"},
       {"suite", "op", "filter", "routing", "rounds", "budget", "check", "out", "db", "resume"}},
      {{"bisect", cmd_bisect},
       "find the commit that made a case slower",
       {"--filter RE --variant RE --base COMMIT [options]"},
       {"moegate bisect --filter 'tokens=8$' --variant chain --base v1.0",
        "moegate bisect --repo . --module moe.py --variant mine --base HEAD~20"},
       {"filter", "variant", "base", "head", "suite", "repo", "module", "build", "rounds"}},
      {{"selftest", cmd_selftest},
       "test the gate: it must pass unchanged code and catch planted faults",
       {"aa|inject|canaries|saboteurs --suite S [options]"},
       {"moegate selftest aa --rounds 6 --suite smoke", "moegate selftest canaries --suite tiny"},
       {"suite", "rounds", "by", "device", "db"}},
      {{"list", cmd_list},
       "list suites, kernels, devices, runs, reports and settings",
       {"suites|kernels|cases|devices|runs|reports [options]",
        "views|resources|waivers|project [options]"},
       {"moegate list suites", "moegate list cases --suite smoke"},
       {"suite", "filter", "variant", "device", "module", "db", "waivers", "format"}},
      {{"doctor", cmd_doctor},
       "say what this machine can measure, and how well",
       {"[options]"},
       {"moegate doctor", "moegate doctor --db results.sqlite"},
       {"device", "db", "format"}},
      {{"new", cmd_new},
       "write a starting point for an operator, a variant or a suite",
       {"operator|variant|suite NAME [options]"},
       {"moegate new operator my_op", "moegate new variant mine --op moe_sum --language python"},
       {"op", "language", "out", "module", "suite", "model", "tp", "ep"}},
      {{"store", cmd_store},
       "merge stores of several machines, or make a store smaller",
       {"merge OUT IN... [options]", "prune [options]"},
       {"moegate store merge all.sqlite shard-*.sqlite", "moegate store prune --keep-samples 30"},
       {"leave-unfinished", "keep-samples", "keep-runs", "db"}},
  }};
  return all;
}

const Verb* find_verb(std::string_view name) {
  const auto verb = std::ranges::find_if(verbs(), [&](const Verb& v) { return v.name == name; });
  return verb == verbs().end() ? nullptr : &*verb;
}

}  // namespace moegate
