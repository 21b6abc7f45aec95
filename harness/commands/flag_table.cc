// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/verbs.h"

#include <algorithm>
#include <array>

#include "harness/base/error.h"
#include "harness/campaign/run_options.h"

namespace moegate {
namespace {

using K = ValueKind;

constexpr auto kOtherFlags = std::to_array<FlagText>({
    // The store, and what a run keeps.
    {"db", "PATH", K::file, "the store"},
    {"label", "L", K::text, "name of the run"},
    {"campaign", "UUID", K::text,
     "id of a campaign, the same for all shards; slurm takes the id of the job array. `moegate "
     "store merge` joins the shards into one run. The same command in the same store finishes a "
     "shard"},
    {"tag", "K=V", K::text, "stored with the run; may be repeated"},
    {"resume", "RUN", K::run,
     "finish an interrupted run with its own options; rows that are stored are not measured again"},
    {"keep-artifact", "", K::none,
     "keep this program in artifacts/ beside the store, so that a later gate can replay it"},
    {"dry-run", "", K::none, "list what would run, and stop"},
    {"like", "ROW", K::number, "repeat this stored row: same case, variant, seed and conditions"},
    {"under", "TOOL", K::choice,
     "print the command that records the rows by ncu (Nsight Compute) or nsys (Nsight Systems), "
     "and stop",
     "ncu,nsys"},
    {"profile", "", K::none,
     "launch every variant a few times inside NVTX ranges, without CUPTI; store nothing"},
    {"controls", "", K::none,
     "spoil correct outputs of one variant per case in every way; exit 11 if the check accepts a "
     "spoilt output"},
    {"metrics", "M,..|@FILE", K::text,
     "counters by their CUPTI names, or a file with one name on each line (default: 42 counters in "
     "8 passes)"},
    {"per-kernel", "", K::none, "also count each kernel of a launch"},
    // What is judged, and how.
    {"run", "RUN", K::run, "latest, a number or a label"},
    {"against", "RUN", K::run, "the run before: latest, a number or a label"},
    {"baselines", "PATH", K::file, "folder of baselines, or one of their files"},
    {"candidate", "DIR", K::file,
     "folder of candidates (default: candidate/ beside the store, if it is there): a suite without "
     "a baseline is judged against its candidate, which then gets the rows that it lacks"},
    {"replay-program", "PATH", K::file,
     "program of the baseline. It and the run's program measure rows again that the stored numbers "
     "cannot decide, and the new numbers decide"},
    {"replay-budget", "T", K::time,
     "wall time of the replay, such as 10min (default: no limit). The most suspicious rows come "
     "first, and the report names the rows that had no time"},
    {"waivers", "FILE", K::file,
     "failures that may pass for a while (default: waivers.ini of the project, or here; for the "
     "tool's own kernels "
     "else the tool's)"},
    {"require-baseline", "", K::none, "a suite without a blessed baseline fails (exit 22)"},
    {"resources", "", K::none,
     "take registers, memory and blocks per SM of the kernels instead of a run"},
    {"why", "W", K::choice,
     "say why rows differ: auto (on a GPU the ten worst that fail or improve), off or all",
     "auto,off,all"},
    {"fail-on", "LIST", K::text,
     "what fails: latency, accuracy, coverage, environment, changed (the machine code changed and "
     "the row is inconclusive), inconclusive; a wrong output always fails"},
    {"margin", "P%", K::text,
     "a row may be slower by this much (default: 1% on a GPU, at least two ticks; 10% on a host)"},
    {"fail-at", "P%", K::text,
     "a row fails if its estimate is this much slower or more (default: 1.5% on a GPU, 15% on a "
     "host)"},
    {"format", "F", K::choice, "text (default), md, csv, tsv or json on stdout",
     "text,md,csv,tsv,json"},
    {"out", "PATH", K::file, "where results go"},
    {"github", "", K::none, "annotate the GitHub Actions job and append the report to its summary"},
    {"reason", "TEXT", K::text, "why the baseline changes; the ledger keeps it"},
    {"accept", "LIST", K::text,
     "bless in spite of: dirty (uncommitted changes), creep (small losses add up: row 3 %, suite 1 "
     "%; host 20 %, 10 %), conditions (another GPU, timer, protocol or flush; rows with unchanged "
     "machine code rescale the anchors)"},
    // Two sides.
    {"base", "WHAT", K::text,
     "the side before: a commit, branch or tag; or python=PATH, program=PATH, module=FILE, "
     "variant=V, label=L, or a variable NAME=TEXT (NAME=: without it); may be repeated"},
    {"head", "WHAT", K::text, "the side after, written like --base"},
    {"measure-identical", "", K::none,
     "also measure rows that launch the same machine code on both sides"},
    {"repo", "DIR", K::file,
     "a repository of kernels; two of its commits are compared, and --module names the file of the "
     "kernels"},
    {"build", "CMD", K::text, "command that builds a checkout, run in its folder once per commit"},
    {"script", "PATH", K::file,
     "program that compares two commits (default: ci/ab of the repository)"},
    // Reports and stores.
    {"columns", "C,C", K::text, "only these columns, in this order"},
    {"sort", "C", K::text,
     "sort by this column, even if it is not shown; C:desc puts the highest first"},
    {"chart", "FILE", K::file,
     "also draw the chart of the report (NAME.vg.json) as SVG; needs Debian's nodejs and "
     "libjs-vega"},
    {"last", "N", K::number, "number of newest runs of each series; 0 shows all"},
    {"class", "CLASS", K::text, "one class of devices, for example nvidia-h200"},
    {"program", "PATH", K::file,
     "take the kernels of this program (default: the program that runs)"},
    {"since", "DAYS", K::text, "only the last days, such as 90d (default: all)"},
    {"report", "NAME", K::report,
     "also add this report, by name or path, of the newest run of each device class; may be "
     "repeated"},
    {"leave-unfinished", "", K::none,
     "merge: leave out unfinished runs and name them; without this flag they are refused"},
    {"keep-samples", "DAYS", K::number,
     "prune: remove samples of older runs. Levels and verdicts stay. Blessed runs and runs that a "
     "gate failed stay whole"},
    {"keep-runs", "DAYS", K::number,
     "prune: also remove launches, metrics and stalls of older runs (default: they stay)"},
    // Tuning, tests of the gate, new code.
    {"op", "OP,OP", K::op, "operators by name"},
    {"routing", "R", K::text,
     "replaces the routing of the suite; with several, the mean time decides"},
    {"check", "", K::none,
     "write no file: say whether variants that choose a configuration choose the best one, and "
     "what "
     "it costs if not"},
    {"by", "P%,P%", K::text, "inject: sizes of the slow-downs, dealt out over the rows"},
    {"language", "L", K::choice,
     "cpp (a variant for a host, or a project), cuda (a variant for a GPU) or python (one file for "
     "--module)",
     "cpp,cuda,python"},
    {"model", "PATH", K::file,
     "suite: of the MoE layers of a model, of which this is the config.json, or the folder with "
     "it"},
    {"tp", "N", K::number, "suite of a model: as a rank sees it that has 1/N of each expert"},
    {"ep", "N", K::number, "suite of a model: as a rank sees it that has 1/N of the experts"},
    {"help", "", K::none, "all flags; -h shows the most used"},
});

struct Moved {
  const char* command;  // empty: any
  const char* flag;     // empty: the command itself
  const char* now;
};

constexpr auto kMoved = std::to_array<Moved>({
    {"export", "", "python3 -m moegate.flashinfer export"},
    {"import", "", "python3 -m moegate.flashinfer import"},
    {"compare", "", "moegate gate --against BASE --run HEAD"},
    {"explain", "", "moegate report why --against BASE --run HEAD"},
    {"history", "", "moegate report history --filter RE"},
    {"resources", "",
     "moegate list resources` (--check: `moegate gate --resources`, --bless: `moegate bless "
     "--resources"},
    {"waivers", "", "moegate list waivers"},
    {"merge", "", "moegate store merge OUT IN..."},
    {"prune", "", "moegate store prune"},
    {"repro", "",
     "moegate run --like ROW` (to print the command only: `moegate run --like ROW --dry-run"},
    {"", "kernel", "--variant RE"},
    {"", "kernels", "--module FILE"},
    {"", "case", "--filter RE"},
    {"run", "benchmark-out", "--out FILE"},
    {"ab", "base-program", "--base program=PATH"},
    {"ab", "head-program", "--head program=PATH"},
    {"ab", "base-kernels", "--base module=FILE"},
    {"ab", "head-kernels", "--head module=FILE"},
    {"ab", "base-label", "--base label=L"},
    {"ab", "head-label", "--head label=L"},
    {"ab", "screen-rounds", "--rounds SCREEN,N,EXTRA"},
    {"ab", "extra-rounds", "--rounds SCREEN,N,EXTRA"},
    {"", "page", "--out FILE.html"},
    {"", "junit", "--out FILE.xml"},
    {"", "verdict", "--out FILE.json"},
    {"ab", "report", "--out FILE.md"},
    {"gate", "report", "--out FILE.md"},
    {"gate", "baseline", "--baselines PATH"},
    {"bless", "allow-dirty", "--accept dirty"},
    {"bless", "accept-creep", "--accept creep"},
    {"bless", "new-conditions", "--accept conditions"},
    {"bisect", "good", "--base COMMIT"},
    {"bisect", "bad", "--head COMMIT"},
    {"bisect", "ab", "--script PATH"},
    {"profile", "stalls", "moegate profile stalls"},
    {"profile", "energy", "moegate profile energy"},
    {"profile", "nsys", "--under nsys"},
    {"selftest", "aa", "moegate selftest aa --rounds N"},
    {"selftest", "inject", "moegate selftest inject --by P%,P%"},
    {"selftest", "canaries", "moegate selftest canaries"},
    {"selftest", "saboteurs", "moegate selftest saboteurs"},
    {"new", "python", "--language python"},
    {"new", "cuda", "--language cuda"},
    {"new", "dir", "--out DIR"},
});

/// Of a flag of a command; empty: the command itself.
std::string instead_of(std::string_view command, std::string_view flag) {
  const auto moved = std::ranges::find_if(kMoved, [&](const Moved& m) {
    return m.flag == flag && (m.command == command || (*m.command == 0 && !flag.empty()));
  });
  if (moved == kMoved.end()) return "";
  std::string text = flag.empty()
                         ? fmt::format("'{}' is no command any more; use `{}`", command, moved->now)
                         : fmt::format("--{} is no flag any more; use `{}`", flag, moved->now);
  if (std::string_view(moved->now).starts_with("python3"))
    text += ", with PYTHONPATH=python in a clone or an installed folder";
  if (text.find(" (") != std::string::npos) text += ")";
  return text;
}

}  // namespace

const std::vector<FlagText>& all_flags() {
  static const std::vector<FlagText> all = [] {
    std::vector<FlagText> flags(kOtherFlags.begin(), kOtherFlags.end());
    const auto add = [&](const auto& row) {
      if (*row.flag.name != 0) flags.push_back(row.flag);
    };
    std::ranges::for_each(run_options(), add);
    std::ranges::for_each(worker_options(), add);
    std::ranges::sort(flags, {}, [](const FlagText& f) { return std::string_view(f.name); });
    return flags;
  }();
  return all;
}

const FlagText* find_flag(std::string_view name) {
  const auto by_name = [](const FlagText& f) { return std::string_view(f.name); };
  const auto at = std::ranges::lower_bound(all_flags(), name, {}, by_name);
  return at != all_flags().end() && at->name == name ? &*at : nullptr;
}

const FlagText& flag_text(std::string_view name) {
  if (const FlagText* flag = find_flag(name)) return *flag;
  give_up(Exit::internal, "the table of flags has no --{}", name);
}

std::string moved_flag(std::string_view command, std::string_view flag) {
  return flag.empty() ? "" : instead_of(command, flag);
}

std::string moved_command(std::string_view command) {
  return instead_of(command, "");
}

}  // namespace moegate
