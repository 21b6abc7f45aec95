// SPDX-License-Identifier: Apache-2.0
// moegate bisect: find the commit that made a case slower; and the step it gives to git.
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/campaign/git.h"
#include "harness/night/bisect.h"

#include <cstdlib>
#include <filesystem>

#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"

namespace moegate {
namespace {

/// What the user typed; what is passed on to ci/ab has ci/ab's defaults.
struct BisectFlags {
  std::optional<std::string> cases, variant, good, device;
  std::string bad = "HEAD", ab;
  std::optional<std::string> repo, build;
  std::vector<std::string> suites, kernels;
  std::optional<int> rounds;
  WhyMode why = WhyMode::automatic;
};

Flags bisect_flags(BisectFlags& typed) {
  Flags flags;
  flags.add(flag("filter", typed.cases, "the cases that became slower, by key; one case is best"));
  flags.add(flag("variant", typed.variant, "name of the variant"));
  flags.add(flag("base", typed.good, "a commit where it was faster"));
  flags.add(flag("head", typed.bad, "a commit where it is slower"));
  flags.add(flag("suite", typed.suites));
  flags.add(
      flag("rounds", typed.rounds, "process pairs that decide a step (default: as in ci/ab)"));
  flags.add(flag("device", typed.device, "auto, host, cuda or cuda:N (default: as in ci/ab)"));
  flags.add(flag("repo", typed.repo, "commits of this repository, whose kernels are in --module"));
  flags.add(flag("module", typed.kernels, "with --repo: a file of kernels in it; may be repeated"));
  flags.add(flag("build", typed.build, "with --repo: builds a checkout, in its folder"));
  flags.add(flag("script", typed.ab));
  const auto why = [&](const std::string& mode) { typed.why = parse_why(mode); };
  flags.add(
      flag("why", why, "auto",
           "at the end, compare the commit with its parent once more and say why it is slower: "
           "auto (on a GPU), off or all"));
  return flags;
}

const std::string& required(const std::optional<std::string>& value, const char* name) {
  if (!value) {
    usage_error("bisect: --{} is missing: moegate bisect --filter RE --variant V --base COMMIT",
                name);
  }
  return *value;
}

std::vector<std::string> flags_of_ab(const BisectFlags& typed) {
  const std::string& cases = required(typed.cases, "filter");
  compile_pattern("--filter", cases);
  std::vector<std::string> flags = {"--filter", cases, "--variant",
                                    exactly(required(typed.variant, "variant"))};
  for (const std::string& suite : typed.suites) {
    // A path, where it is one, is the user's; steps run in another folder.
    const bool path = suite.find('/') != std::string::npos;
    flags.insert(flags.end(),
                 {"--suite", path ? std::filesystem::absolute(suite).string() : suite});
  }
  if (typed.device) flags.insert(flags.end(), {"--device", *typed.device});
  if (typed.rounds) {
    if (*typed.rounds < 2) usage_error("--rounds {} is too few; give 2 or more", *typed.rounds);
    flags.insert(flags.end(), {"--rounds", std::to_string(*typed.rounds)});
  }
  return flags;
}

/// What the A/B of another repository's commits needs to be told; steps run in another folder.
void add_repository(const BisectFlags& typed, const Project& project, BisectQuery& query) {
  if (typed.kernels.empty() && project.values("program").empty()) {
    usage_error("bisect --repo: which file of it has the kernels? give --module");
  }
  query.repo = checkout_around(*typed.repo);
  if (query.repo.empty())
    usage_error("--repo {}: this folder is not in a git repository", *typed.repo);
  query.ab = {std::filesystem::read_symlink("/proc/self/exe").string(), "ab"};
  std::vector<std::string>& flags = query.ab_flags;
  flags.insert(flags.end(), {"--repo", query.repo});
  for (const std::filesystem::path file : typed.kernels) {
    flags.insert(flags.end(), {"--module", (std::filesystem::path(query.repo) / file).string()});
  }
  if (typed.build) flags.insert(flags.end(), {"--build", *typed.build});
}

std::optional<BisectQuery> read_bisect(const Args& args) {
  BisectFlags typed;
  if (!parse("bisect", bisect_flags(typed), args)) {
    return std::nullopt;
  }
  BisectQuery query;
  query.ab_flags = flags_of_ab(typed);
  query.good = required(typed.good, "base");
  query.bad = typed.bad;
  const Project project = find_project();
  const bool has_kernels = !project.values("module").empty() || !project.values("program").empty();
  if (!typed.repo && typed.ab.empty() && has_kernels) typed.repo = project.root;
  if (!typed.ab.empty()) query.ab = {typed.ab};
  query.why =
      typed.why == WhyMode::all || (typed.why == WhyMode::automatic &&
                                    backend_of(typed.device.value_or("auto")) == Backend::cuda);
  if (typed.repo) add_repository(typed, project, query);
  return query;
}

}  // namespace

int cmd_bisect(const Args& args) {
  const auto query = read_bisect(args);
  if (!query) return 0;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Culprit culprit = bisect(*query, {self, "bisect-step"});
  const std::string why = culprit.why.empty() ? "" : "\nwhy:\n" + culprit.why;
  fmt::print("{}", printable(fmt::format("first bad commit: {}\n{}\n{}\n{}\n", culprit.commit,
                                         culprit.details, why, culprit.log)));
  return 0;
}

int cmd_bisect_step(const Args& args) try {
  const size_t words = args.empty() ? 0 : std::strtoul(args[0].c_str(), nullptr, 10);
  if (words == 0 || args.size() < words + 2) {
    usage_error("bisect-step is run by `moegate bisect`, not by hand");
  }
  forget_git_environment();
  const Finished head = run_program({"git", "rev-parse", "HEAD"}, Output::capture);
  if (head.exit != 0) usage_error("bisect-step: the current folder is not in a git repository");
  const auto flags = args.begin() + static_cast<ptrdiff_t>(words) + 2;  // behind the good commit
  std::vector<std::string> command(args.begin() + 1, flags);
  command.push_back(head.out.substr(0, head.out.find('\n')));
  command.insert(command.end(), flags, args.end());
  return bisect_code(run_program(command, Output::show).exit);
} catch (const std::exception& e) {
  // Here and not in main.cc, because git takes the exit codes of errors for "bad".
  say("moegate: {}\n", e.what());
  return kBisectGiveUp;
}

}  // namespace moegate
