// SPDX-License-Identifier: Apache-2.0
// moegate ab: two programs, or two variants of this one, against each other.
#include <cstdlib>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/campaign/ab.h"
#include "harness/campaign/checkout.h"
#include "harness/campaign/git.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/judging_flags.h"
#include "harness/report/ab_report.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

/// A change that noise hides is not judged, and a pull request is about its changes.
constexpr const char* kFailOnOfAb = "latency,accuracy,coverage,environment,changed";

struct AbCommand {
  AbOptions ab;
  JudgingOptions judging;
  WhyMode why = WhyMode::automatic;
};

/// Two commits of another repository.
struct Commits {
  std::optional<std::string> repo;
  std::string base, head, build;
};

po::options_description commit_flags(Commits& commits) {
  po::options_description flags("Which commits of another repository");
  flags.add_options()  //
      ("repo", into(commits.repo)->value_name("DIR"),
       "compares the kernels of two of its commits; --kernels names their file in it")  //
      ("base", po::value(&commits.base)->value_name("REF"),
       "commit, branch or tag before (positional)")  //
      ("head", po::value(&commits.head)->value_name("REF"),
       "and after (positional; default: what is checked out, uncommitted changes included)")  //
      ("build", po::value(&commits.build)->value_name("CMD"),
       "builds a checkout, in its folder; once per commit");
  return flags;
}

/// A file that a flag named, as it is called in the repository; empty: it is not in it.
std::filesystem::path in_repository(const std::filesystem::path& path, const std::string& root) {
  const auto below = path.lexically_relative(root);
  return below.empty() || *below.begin() == ".." ? std::filesystem::path() : below;
}

/// Kernels by the path in the repository, or by one of its files. Throws Error(usage).
std::filesystem::path kernels_in_repository(const std::string& file, const std::string& root) {
  const std::filesystem::path path = file;
  if (path.is_relative()) return path;
  const auto below = in_repository(path, root);
  if (below.empty()) {
    usage_error("--kernels {}: is not in --repo {}, of which two commits are compared", file, root);
  }
  return below;
}

/// A file of kernels in a checkout that is built. Throws Error where it is not there: usage for the base,
/// for which a wrong path was given; environment for a head, as where that does not build.
std::string kernels_in(const Checkout& checkout, const std::filesystem::path& file,
                       const std::string& build, bool of_base) {
  const std::filesystem::path path = checkout.folder / file;
  std::error_code absent;
  if (std::filesystem::exists(path, absent)) return path.string();
  const std::string what = fmt::format("--kernels {}: {} has no such file{}", file.string(),
                                       checkout.name, of_base ? "" : ", which the base has");
  const Exit exit = of_base ? Exit::usage : Exit::environment;
  if (build.empty())
    throw Error(exit, what + "; give one that it has, or --build CMD where it is built");
  throw Error(exit,
              fmt::format("{} after --build '{}'; give the path where that puts it", what, build));
}

/// A suite of the repository: a file below its root, or by its name one of its folder suites/. Each
/// commit has its own, which is the side's; one that neither has is read where it is. Throws
/// Error(coverage) for one that the head has not any more.
void use_suite(const std::string& suite, const std::string& root,
               const std::pair<Checkout, Checkout>& checkouts, std::vector<std::string>& of_base,
               std::vector<std::string>& of_head) {
  namespace fs = std::filesystem;
  const bool named = suite.find('/') == std::string::npos && !suite.ends_with(".suite");
  const fs::path below = named ? fs::path("suites") / (suite + ".suite")
                               : in_repository(fs::weakly_canonical(fs::absolute(suite)), root);
  const auto& [base, head] = checkouts;
  const bool base_has = !below.empty() && is_file(base.folder / below);
  const bool head_has = !below.empty() && is_file(head.folder / below);
  if (base_has && !head_has) {
    throw Error(
        Exit::coverage,
        fmt::format("--suite {}: {} has no such file, which the base has: none of its cases "
                    "would be measured",
                    suite, head.name));
  }
  const std::string now = head_has ? (head.folder / below).string() : suite;
  of_head.push_back(now);
  of_base.push_back(base_has ? (base.folder / below).string() : now);
}

/// Checks both commits out, builds them, and gives each side the kernels, suites and caches of its own.
void use_commits(const Commits& commits, AbOptions& ab) {
  forget_git_environment();
  const std::string root = checkout_around(*commits.repo);
  if (root.empty()) usage_error("--repo {}: is in no git repository", *commits.repo);
  if (commits.base.empty()) usage_error("ab --repo: which commit is the base? give --base REF");
  if (ab.run.worker.kernels.empty()) {
    usage_error("ab --repo: which file of {} has the kernels? give --kernels FILE", root);
  }
  std::vector<std::filesystem::path> kernels;
  for (const std::string& file : ab.run.worker.kernels) {
    kernels.push_back(kernels_in_repository(file, root));
  }
  auto checkouts =
      check_out(root, {"--base", commits.base}, {"--head", commits.head}, commits.build);
  const auto use = [&](AbSide& side, const Checkout& checkout, const std::string& name) {
    for (const std::filesystem::path& file : kernels) {
      side.kernels.push_back(kernels_in(checkout, file, commits.build, &side == &ab.base));
    }
    side.label = short_commit(checkout.commit);
    if (name != checkout.commit) {
      side.label = fmt::format("{} at {}", name.empty() ? "working tree" : name, side.label);
    }
    side.tags = {{"repository", std::filesystem::path(root).filename()},
                 {"commit", checkout.commit}};
    side.variables = checkout.variables;
  };
  use(ab.base, checkouts.first, commits.base);
  use(ab.head, checkouts.second, commits.head);
  ab.run.worker.kernels.clear();
  std::vector<std::string> suites;
  for (const std::string& suite : ab.run.suites) {
    use_suite(suite, root, checkouts, ab.base.suites, suites);
  }
  ab.run.suites = suites;
  ab.checkouts = std::move(checkouts);
}

po::options_description ab_flags(AbOptions& ab, std::vector<std::string>& variants,
                                 bool& measure_identical) {
  ab.base.label = "base";
  ab.head.label = "head";
  po::options_description flags("What to compare");
  flags.add_options()  //
      ("base-program", po::value(&ab.base.program)->value_name("PATH"),
       "the moegate before (default: this one); `ci/ab` builds them from commits")  //
      ("head-program", po::value(&ab.head.program)->value_name("PATH"),
       "the moegate after (default: this one)")  //
      ("base-kernels", kernels_of(ab.base.kernels),
       "kernels of the base (see --kernels), where the sides differ in them")  //
      ("head-kernels", kernels_of(ab.head.kernels), "kernels of the head")     //
      ("variant", po::value(&variants)->value_name("V"),
       "given twice: the first variant is the base, the second the head, of one program")    //
      ("base-label", po::value(&ab.base.label)->default_value("base")->value_name("L"), "")  //
      ("head-label", po::value(&ab.head.label)->default_value("head")->value_name("L"), "")  //
      ("screen-rounds",
       po::value(&ab.plan.screen_rounds)->default_value(ab.plan.screen_rounds)->value_name("N"),
       "process pairs that measure everything; what they show equal is done");
  flags.add(rounds_flag(ab.plan.rounds, "new process pairs that decide the rest"));
  flags.add_options()  //
      ("extra-rounds",
       po::value(&ab.plan.extra_rounds)->default_value(ab.plan.extra_rounds)->value_name("N"),
       "the one planned extension for what is then undecided")  //
      ("measure-identical", po::bool_switch(&measure_identical),
       "also measure what launches the same machine code on both sides");
  flags.add(new_db_flag(ab.run.db));
  return flags;
}

void check_ab(AbOptions& ab, const std::vector<std::string>& variants) {
  if (!variants.empty()) {
    if (variants.size() != 2) {
      usage_error("--variant is given {} times; give two, the base and the head", variants.size());
    }
    if (!ab.run.kernel.empty()) {
      usage_error("--kernel '{}' and --variant are both given; --variant names what is compared",
                  ab.run.kernel);
    }
    ab.base.variant = variants[0];
    ab.head.variant = variants[1];
  } else if (ab.base.program.empty() && ab.head.program.empty() && ab.base.kernels.empty()) {
    usage_error(
        "ab: nothing to compare; give --base-program or --variant A --variant B (or use "
        "`ci/ab BASE [HEAD]`, and `moegate selftest` for this program against itself)");
  }
  plain_name("--base-label", ab.base.label);
  plain_name("--head-label", ab.head.label);
  within("--screen-rounds", ab.plan.screen_rounds, 2, kMostRounds);
  within("--rounds", ab.plan.rounds, 2, kMostRounds);
  within("--extra-rounds", ab.plan.extra_rounds, 0, kMostRounds);
  require_suite(ab.run);
  check_measuring(ab.run);
  // What judges may be of another checkout than what it judges.
  if (!ab.head.program.empty()) ab.run.suites = suites_of(ab.head.program, ab.run.suites);
}

std::optional<AbCommand> read_ab(const Args& args) {
  AbCommand command;
  AbOptions& ab = command.ab;
  std::vector<std::string> variants;
  bool measure_identical = false;
  Commits commits;
  po::options_description flags = ab_flags(ab, variants, measure_identical);
  flags.add(commit_flags(commits));
  flags.add(selection_flags(ab.run)).add(measuring_flags(ab.run));
  flags.add(judging_flags(command.judging, kFailOnOfAb));
  flags.add(why_flag(command.why));
  if (!parse("moegate ab --base-program P --suite S [options]\n"
             "       moegate ab --variant A --variant B --suite S [options]\n"
             "       moegate ab --repo DIR BASE [HEAD] --kernels FILE --suite S [options]",
             flags, args, {"base", "head"})) {
    return std::nullopt;
  }
  if (commits.repo) {
    use_commits(commits, ab);
  } else if (!commits.base.empty() || !commits.build.empty()) {
    usage_error(
        "ab: --base, --head and --build are commits of another repository; give --repo DIR "
        "(commits of this one: `ci/ab BASE [HEAD]`)");
  }
  check_ab(ab, variants);
  // Variants of one folder share their host code's hash, and a pair is asked about for its numbers.
  ab.trust_code = variants.empty() && !measure_identical;
  // Set by ci/ab, whose commits are what a reader can repeat.
  const char* typed = std::getenv("MOEGATE_COMMAND");
  ab.run.command = typed ? typed : command_line("ab", args);
  return command;
}

}  // namespace

int cmd_ab(const Args& args) {
  const auto command = read_ab(args);
  if (!command) return 0;
  const AbOptions& ab = command->ab;
  PreparedAb prepared = prepare_ab(ab, worker_processes());  // first: a bad suite leaves no store
  const auto limits = [&](Backend backend) { return command->judging.limits.of(backend); };
  Store store = Store::open(ab.run.db, Store::Mode::write);
  fmt::print(stderr, "the order of the sides is drawn from seed {}\n",
             prepared.options.run.order_seed);
  Compared compared = keep_for_why(prepared);
  const Comparison result = run_ab(store, std::move(prepared), limits);
  if (ab.checkouts) {
    keep_added_files(ab.checkouts->first);
    keep_added_files(ab.checkouts->second);
  }
  if (result.interrupted) {  // there may be nothing to make a table of
    throw Error(Exit::interrupted,
                fmt::format("interrupted: nothing is judged; what was measured is "
                            "in {}",
                            ab.run.db));
  }
  GateReport report = report_of(store, ab.run.db, result, limits);
  report.exit = decide_exit(report.result, command->judging.fail_on, false);
  complete_for_why(compared, result);
  add_causes(store, {compared}, command->why, compared.head.plan.hello.device.backend, {},
             report.result, worker_processes());
  publish(store, report, command->judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
