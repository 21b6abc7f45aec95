// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string_view>

namespace moegate {
namespace {

/// Groups that were listed, and of which verb.
using Listed = std::vector<std::pair<Flags::Group, std::string>>;

bool same(const Flags::Group& a, const Flags::Group& b) {
  const auto equal = [](const Flag& x, const Flag& y) {
    return std::string_view(x.text.name) == y.text.name &&
           std::string_view(x.text.about) == y.text.about && x.if_unset() == y.if_unset();
  };
  return a.title == b.title && std::ranges::equal(a.flags, b.flags, equal);
}

std::string in_bold(const std::string& text) {
  return "\\fB" + roff_escaped(text) + "\\fR";
}

std::string in_italic(const std::string& text) {
  return "\\fI" + roff_escaped(text) + "\\fR";
}

std::string flag_entry(const Flag& flag) {
  std::string name = in_bold(fmt::format("--{}", flag.text.name));
  if (*flag.text.value != 0) name += " " + in_italic(flag.text.value);
  std::string about = flag.text.about;
  const std::string unset = flag.if_unset();
  if (!unset.empty()) about += fmt::format("{}(default: {})", about.empty() ? "" : " ", unset);
  return fmt::format(".TP\n{}\n{}\n", name, roff_escaped(about));
}

std::string group_text(const Flags::Group& group, const std::string& verb, Listed& listed) {
  for (const auto& [other, of] : listed) {
    if (same(other, group)) {
      return fmt::format(".PP\n{}: as of {}.\n", roff_escaped(group.title),
                         in_bold("moegate " + of));
    }
  }
  listed.emplace_back(group, verb);
  std::string text = fmt::format(".PP\n{}:\n", roff_escaped(group.title));
  for (const Flag& flag : group.flags) text += flag_entry(flag);
  return text;
}

std::string verb_section(const DescribedVerb& described, Listed& listed) {
  const Verb& verb = *described.verb;
  std::string text = fmt::format(".SS moegate {}\n{}.\n.PP\n.nf\n", roff_escaped(verb.name),
                                 roff_escaped(verb.about));
  for (const char* usage : verb.usages) {
    text += in_bold(fmt::format("moegate {} {}", verb.name, usage)) + "\n";
  }
  text += ".fi\n";
  for (const Flags::Group& group : described.flags.groups()) {
    if (!group.flags.empty()) text += group_text(group, verb.name, listed);
  }
  return text;
}

std::string examples_section(const std::vector<DescribedVerb>& verbs) {
  std::string text = ".SH EXAMPLES\n";
  for (const DescribedVerb& described : verbs) {
    for (const char* example : described.verb->examples) {
      text += fmt::format(".TP\n{}\n{}.\n", in_bold(example), roff_escaped(described.verb->about));
    }
  }
  return text;
}

std::string exit_section() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, cause] : exit_causes()) {
    text += fmt::format(".TP\n{}\n{}\n", in_bold(std::to_string(code)), roff_escaped(cause));
  }
  return text;
}

/// Words in backquotes are bold.
std::string marked_up(const std::string& text) {
  std::string roff;
  bool bold = false;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '`'); bold = !bold) {
    if (!part.empty()) roff += bold ? in_bold(part) : roff_escaped(part);
  }
  return roff;
}

std::string variables_section(const std::vector<Variable>& variables) {
  std::string text =
      ".SH ENVIRONMENT\n" +
      marked_up("What is set to nothing counts as not set, but for `MOEGATE_COMMAND`.") + "\n";
  for (const auto& [name, about] : variables) {
    text += fmt::format(".TP\n{}\n{}\n", in_bold(name), marked_up(about));
  }
  return text;
}

}  // namespace

std::string roff_escaped(const std::string& text) {
  constexpr std::string_view kSpecial = "\\-'`^~";
  constexpr std::array kAs = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
  std::string escaped;
  // A line that begins so would be a request.
  if (text.starts_with('.') || text.starts_with('\'')) escaped = "\\&";
  for (const char c : text) {
    const size_t place = kSpecial.find(c);
    escaped += place == std::string_view::npos ? std::string(1, c) : kAs[place];
  }
  return escaped;
}

const std::vector<std::pair<int, const char*>>& exit_causes() {
  static const std::vector<std::pair<int, const char*>> all = {
      {0, "everything passed"},
      {1, "internal error"},
      {2, "a flag, a file or an argument is wrong"},
      {10, "a row is slower, or a kernel takes more local memory or leaves room for fewer blocks"},
      {11, "an output is wrong or has lost accuracy"},
      {12, "10 and 11"},
      {13, "a row is missing: it crashed, took too long, was not found, or nothing matched"},
      {20, "a row is undecided, where --fail-on asks for that; of a night over half of the rows"},
      {21, "this machine cannot measure, or a planted fault was not found"},
      {22, "a suite has no baseline, where --require-baseline asks for one"},
      {24, "a waiver expired or covers too much"},
      {30, "the store is damaged, foreign or of another version"},
      {130, "interrupted; what was measured is kept"}};
  return all;
}

std::string man_page(const std::string& version, const std::vector<DescribedVerb>& verbs,
                     const std::vector<Variable>& variables) {
  std::string text = fmt::format(
      ".TH MOEGATE 1 \"\" \"moegate {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "moegate \\- profile GPU kernels of mixture-of-experts layers and test them for regressions\n"
      ".SH SYNOPSIS\n"
      "{} {} [{}]\n"
      ".br\n{}\n"
      ".SH COMMANDS\n",
      roff_escaped(version), in_bold("moegate"), in_italic("COMMAND"), in_italic("options"),
      in_bold("moegate --version"));
  Listed listed;
  for (const DescribedVerb& verb : verbs) text += verb_section(verb, listed);
  text += examples_section(verbs) + exit_section();
  text += ".SH FILES\n";
  for (const auto& [name, about] :
       {std::pair("moegate.ini", "what a repository judges; the nearest above the current folder"),
        std::pair("results.sqlite", "the store where no flag, variable or moegate.ini names one"),
        std::pair("out/", "what a night writes: store, report, verdict, pages, kept programs"),
        std::pair("suites/, reports/, baselines/, ci/waivers.ini", "data in the tool's home")}) {
    text += fmt::format(".TP\n{}\n{}\n", in_italic(name), roff_escaped(about));
  }
  return text + variables_section(variables);
}

std::string reference(const std::vector<DescribedVerb>& verbs) {
  std::string text = "| command | what it does | flags of its own |\n| --- | --- | --- |\n";
  std::map<std::string, std::string> shared;  // of the groups that belong to a run's options
  for (const DescribedVerb& described : verbs) {
    std::string own;
    for (const Flags::Group& group : described.flags.groups()) {
      const bool of_run = group.title == kSelectionGroup || group.title == kMeasuringGroup;
      if (of_run && shared.contains(group.title)) continue;
      std::string& names = of_run ? shared[group.title] : own;
      for (const Flag& flag : group.flags) {
        names += fmt::format("{}`--{}`", names.empty() ? "" : " ", flag.text.name);
      }
    }
    text += fmt::format("| `{}` | {} | {} |\n", described.verb->name, described.verb->about, own);
  }
  for (const auto& [title, names] : shared) {
    text += fmt::format("| *several* | {} | {} |\n", title, names);
  }
  return text;
}

const std::vector<Variable>& variables() {
  static const std::vector<Variable> all = {
      {"MOEGATE_DB", "the store that is meant without `--db`"},
      {"MOEGATE_HOME",
       "the folder with `suites/`, `reports/` and `baselines/`; default: the nearest above the "
       "program"},
      {"MOEGATE_TILES", "the folder of tile files without `--tiles`"},
      {"MOEGATE_WHY",
       "the default of `--why`, through scripts that do not know the flag; `bisect` sets it "
       "for its steps"},
      {"MOEGATE_COMMAND",
       "what `ci/ab` was called with: the command that an A/B's report tells readers to repeat"},
      {"MOEGATE_PYTHON", "the interpreter of `.py` files of kernels; default `python3`"},
      {"CUDA_HOME", "a CUDA toolkit, for its libraries and `nvdisasm`; then `/usr/local/cuda`"},
      {"XDG_CACHE_HOME", "where checkouts are kept; default `~/.cache`"},
      {"GITHUB_WORKSPACE, GITHUB_STEP_SUMMARY",
       "what `--github` paths are relative to; the file that gets the summary"},
      {"SLURM_ARRAY_*, SLURM_CLUSTER_NAME",
       "the task and its job array, for `--shard slurm` and `--campaign slurm`"},
      {"COLUMNS, NO_COLOR, CLICOLOR_FORCE, TERM",
       "the width and the colours of text on a terminal"}};
  return all;
}

}  // namespace moegate
