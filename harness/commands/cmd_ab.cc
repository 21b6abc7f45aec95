// SPDX-License-Identifier: Apache-2.0
// moegate ab: two programs, commits or variants against each other.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/campaign/checkout.h"
#include "harness/campaign/git.h"
#include "harness/commands/ab_sides.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/doctor_probes.h"
#include "harness/commands/first_launches.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/night/ab.h"
#include "harness/night/night.h"
#include "harness/report/gate_report.h"

namespace moegate {
namespace {

/// A change that noise hides is not judged, and a pull request is about its changes.
constexpr const char* kFailOnOfAb = "latency,accuracy,coverage,environment,changed";

/// Two commits of another repository.
struct Commits {
  std::optional<std::string> repo;
  std::string base, head, build;
  std::vector<std::string> base_modules;  // where the base's project names others than the head's
  std::string program;                    // that a checkout builds, instead of modules
};

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
    usage_error("--module {}: this file is not in --repo {}; give a file of the repository", file,
                root);
  }
  return below;
}

/// A file of kernels in a checkout that is built. Throws Error where it is not there: usage for the
/// base, for which a wrong path was given; environment for a head, as where that does not build.
std::string kernels_in(const Checkout& checkout, const std::filesystem::path& file,
                       const std::string& build, bool of_base) {
  const std::filesystem::path path = checkout.folder / file;
  std::error_code absent;
  if (std::filesystem::exists(path, absent)) return path.string();
  give_up(
      of_base ? Exit::usage : Exit::environment, "--module {}: {} has no such file{}{}",
      file.string(), checkout.name, of_base ? "" : ", which the base has",
      build.empty()
          ? "; give another file, or --build CMD if the build makes it"
          : fmt::format(" after --build '{}'; give the path to which the build writes it", build));
}

/// The program that a checkout's build left there. Throws as kernels_in() does.
std::string program_in(const Checkout& checkout, const std::string& program, bool of_base) {
  const std::filesystem::path path = checkout.folder / program;
  if (is_file(path)) return path.string();
  give_up(of_base ? Exit::usage : Exit::environment,
          "{0}: {1} has no program {2} after its build; correct 'program' or 'build' in {0}",
          kProjectFile, checkout.name, program);
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
    give_up(Exit::coverage,
            "--suite {}: {} has no such file, and the base has it, so none of its cases would be "
            "measured; restore the file, or give another suite",
            suite, head.name);
  }
  const std::string now = head_has ? (head.folder / below).string() : suite;
  of_head.push_back(now);
  of_base.push_back(base_has ? (base.folder / below).string() : now);
}

/// Checks out and builds both commits; gives each side kernels, suites and caches of its own.
void use_commits(const Commits& commits, AbOptions& ab) {
  forget_git_environment();
  const std::string root = checkout_around(*commits.repo);
  if (root.empty()) usage_error("--repo {}: this folder is not in a git repository", *commits.repo);
  if (commits.base.empty()) usage_error("ab --repo: which commit is the base? give --base REF");
  if (ab.run.worker.modules.empty() && commits.program.empty()) {
    usage_error("ab --repo: which file of {} has the kernels? give --module FILE", root);
  }
  const std::vector<std::string>& modules = ab.run.worker.modules;
  auto checkouts =
      check_out(root, {"--base", commits.base}, {"--head", commits.head}, commits.build);
  const auto use = [&](AbSide& side, const Checkout& checkout, const std::string& name) {
    const bool of_base = &side == &ab.base;
    for (const std::string& file :
         of_base && !commits.base_modules.empty() ? commits.base_modules : modules) {
      side.kernels.push_back(
          kernels_in(checkout, kernels_in_repository(file, root), commits.build, of_base));
    }
    if (!commits.program.empty()) side.program = program_in(checkout, commits.program, of_base);
    side.label = short_commit(checkout.commit);
    if (name != checkout.commit) {
      side.label = fmt::format("{} at {}", name.empty() ? "working tree" : name, side.label);
    }
    side.tags = {{kRepositoryTag, std::filesystem::path(root).filename()},
                 {kCommitTag, checkout.commit}};
    side.variables = checkout.variables;
  };
  use(ab.base, checkouts.first, commits.base);
  use(ab.head, checkouts.second, commits.head);
  ab.run.worker.modules.clear();
  std::vector<std::string> suites;
  for (const std::string& suite : ab.run.suites) {
    use_suite(suite, root, checkouts, ab.base.suites, suites);
  }
  ab.run.suites = suites;
  ab.checkouts = std::move(checkouts);
}

/// "12", or "4,12,24": what screens, what decides, what extends.
void read_rounds(const std::string& text, ReplayPlan& plan) {
  std::vector<int> numbers;
  for (const std::string& part : parse_list("--rounds", text)) {
    const auto number = parse_number<int>(part);
    if (!number) usage_error("--rounds '{}': use N, or SCREEN,N,EXTRA", text);
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) {
    plan.rounds = numbers[0];
  } else if (numbers.size() == 3) {
    plan.screen_rounds = numbers[0];
    plan.rounds = numbers[1];
    plan.extra_rounds = numbers[2];
  } else {
    usage_error("--rounds '{}': use N, or SCREEN,N,EXTRA", text);
  }
  within("--rounds, screening:", plan.screen_rounds, 2, kMostRounds);
  within("--rounds", plan.rounds, 2, kMostRounds);
  within("--rounds, extension:", plan.extra_rounds, 0, kMostRounds);
}

struct AbCommand {
  AbOptions ab;
  JudgingOptions judging;
  WhyMode why = WhyMode::automatic;
  // As typed.
  std::vector<std::string> base, head, variants;  // of the sides
  bool measure_identical = false;
  Commits commits;
  std::set<std::string> given;  // flags
};

Flags ab_flags(AbCommand& typed) {
  AbOptions& ab = typed.ab;
  Commits& commits = typed.commits;
  Flags flags("What to compare");
  flags.add(flag("base", typed.base)).add(flag("head", typed.head));
  flags.add(flag("repo", commits.repo)).add(flag("build", commits.build));
  flags.add(flag(
      "rounds", [&](const std::string& text) { read_rounds(text, ab.plan); }, nullptr,
      "process pairs: SCREEN,N,EXTRA. SCREEN pairs measure all rows; rows that they show equal are "
      "done. N new pairs decide the other rows. EXTRA pairs extend undecided rows once (default: "
      "4,12,24; one number is N)"));
  flags.add(flag("measure-identical", typed.measure_identical));
  return flags.add(new_db_flag(ab.run.db, kAbStore));
}

void check_ab(AbOptions& ab, const std::vector<std::string>& variants) {
  if (variants.size() > 1) {
    usage_error(
        "--variant is given {} times; it selects rows. To compare two variants write --base "
        "variant={} --head variant={}",
        variants.size(), variants[0], variants[1]);
  }
  if (!variants.empty() && !ab.base.variant.empty())
    usage_error("--variant {}: --base and --head name the variants; leave it out", variants[0]);
  if (!variants.empty()) ab.run.variant = variants[0];
  if (ab.base.variant.empty() != ab.head.variant.empty()) {
    usage_error("--{0} names a variant and --{1} none; give --{1} variant=V, too",
                ab.head.variant.empty() ? "base" : "head",
                ab.head.variant.empty() ? "head" : "base");
  }
  if (ab.base.variant.empty() && ab.base.program.empty() && ab.head.program.empty() &&
      ab.base.kernels.empty() && !ab.environments) {
    usage_error(
        "ab: nothing to compare; give a commit (in a project), --base program=PATH, --base "
        "python=PATH or --base variant=A --head variant=B (or use `ci/ab BASE [HEAD]`, and "
        "`moegate selftest` for this program against itself)");
  }
  const bool own_kernels =
      ab.run.worker.modules.empty() && ab.base.kernels.empty() && !ab.checkouts;
  if (ab.run.suites.empty() && own_kernels)
    ab.run.suites = default_suites(backend_of(ab.run.worker.device));
  require_suite(ab.run);
  check_measuring(ab.run);
  // What judges may be of another checkout than what it judges.
  if (!ab.head.program.empty()) ab.run.suites = suites_of(ab.head.program, ab.run.suites);
}

/// What a commit of the project says of itself; nothing where it has no file.
std::optional<Project> project_of(const Project& project, const char* flag,
                                  const std::string& commit) {
  const std::string root = checkout_around(project.root);
  if (root.empty())
    usage_error("{}: is in no git repository, so that it has no commits", project.root.string());
  const Finished file =
      git(project.root, {"show", commit_of(root, flag, commit) + ":./" + kProjectFile});
  if (file.exit != 0) return std::nullopt;
  return parse_project(file.out, project.file);
}

/// False after help was printed.
bool parse_ab(const Args& args, const Project& project, AbCommand& typed) {
  AbOptions& ab = typed.ab;
  Commits& commits = typed.commits;
  ab.base.label = "base";
  ab.head.label = "head";
  Flags flags = ab_flags(typed);
  flags.add(selection_flags(ab.run)).add(measuring_flags(ab.run));
  flags.add(judging_flags(typed.judging, kFailOnOfAb));
  Flags why("Why");
  flags.add(why.add(why_flag(typed.why)));
  flags.replace(flag("variant", typed.variants, "only variants whose name matches"));
  if (!parse("ab", flags, args,
             {{"BASE", po::value(&commits.base)}, {"HEAD", po::value(&commits.head)}}, &typed.given,
             &project)) {
    return false;
  }
  read_side("base", typed.base, ab.base, commits.base);
  read_side("head", typed.head, ab.head, commits.head);
  return true;
}

/// Of two commits of the project: each side has its commit's kernels, the base's limits judge.
AbCommand of_commits(const Args& args, const Project& project, const Commits& typed) {
  forget_git_environment();
  const auto base = project_of(project, "--base", typed.base);
  Project head = project;
  if (!typed.head.empty()) {
    if (const auto of_head = project_of(project, "--head", typed.head)) head = *of_head;
  }
  AbCommand all;
  parse_ab(args, base ? judged_by(*base, head) : head, all);
  all.commits.repo = project.root;
  if (base && base->values("module") != head.values("module"))
    all.commits.base_modules = base->values("module");
  const auto program = head.values("program");
  if (!program.empty() && all.ab.run.worker.modules.empty()) all.commits.program = program[0];
  return all;
}

std::optional<AbCommand> read_ab(const Args& args) {
  const Project project = find_project();
  AbCommand command;
  if (!parse_ab(args, project, command)) return std::nullopt;
  if (project.is_there() && !command.commits.repo && !command.commits.base.empty())
    command = of_commits(args, project, command.commits);
  AbOptions& ab = command.ab;
  const Commits& commits = command.commits;
  if (commits.repo) {
    use_commits(commits, ab);
  } else if (!commits.base.empty() || !commits.head.empty() || command.given.contains("build")) {
    usage_error(
        "ab: a commit and --build need a repository; give --repo DIR or write its moegate.ini; for "
        "commits of moegate itself use `ci/ab BASE [HEAD]`");
  }
  const bool is_pair = !ab.base.variant.empty();
  // Variants of one folder share their host code's hash, and a pair is asked about for its numbers.
  ab.trust_code = !is_pair && !command.measure_identical;
  use_environments(ab, project.out(), command.measure_identical);
  check_ab(ab, command.variants);
  // Two variants are two codes, whatever their hashes say: what noise hides is undecided (20).
  if (is_pair && command.judging.fail_on.changed) command.judging.fail_on.inconclusive = true;
  // Set by ci/ab, whose commits are what a reader can repeat.
  const char* repeated = std::getenv("MOEGATE_COMMAND");
  ab.run.command = repeated ? repeated : command_line("ab", without_secrets(args));
  return command;
}

}  // namespace

int cmd_ab(const Args& args) {
  const auto command = read_ab(args);
  if (!command) return 0;
  const AbOptions& ab = command->ab;
  PreparedAb prepared = prepare_ab(ab, worker_processes());  // first: a bad suite leaves no store
  const auto limits = [&](Backend backend) { return command->judging.limits.of(backend); };
  // The ceilings that a table gives percentages of, once per store.
  if (!is_file(ab.run.db)) {
    if (const Finished doctor = run_doctor(ab.run.worker.device, ab.run.db); doctor.exit != 0)
      return doctor.exit;
  }
  Store store = Store::open(ab.run.db, Store::Mode::write);
  fmt::print(stderr, "the order of the sides is drawn from seed {}\n",
             prepared.options.run.order_seed);
  Compared compared = keep_for_why(prepared);
  const Comparison result = run_ab(store, std::move(prepared), limits);
  if (ab.checkouts) {
    keep_added_files(ab.checkouts->first);
    keep_added_files(ab.checkouts->second);
  }
  const auto is_whole = [&](const auto& row) { return !result.decided.cut_short(row.first); };
  if (result.decided.interrupted && std::ranges::none_of(result.head, is_whole)) {
    give_up(Exit::interrupted,
            "interrupted: nothing is judged; compare again (what was measured is in {})",
            ab.run.db);
  }
  GateReport report = report_of(store, ab.run.db, result, limits);
  note_first_launches(store, result.base_run, result.head_run, report.result);
  report.exit = decide_exit(report.result, command->judging.fail_on, false);
  complete_for_why(compared, result);
  const WhyMode why = result.decided.interrupted ? WhyMode::off : command->why;
  add_causes(store, {compared}, why, compared.head.plan.hello.device.backend, {}, report.result,
             worker_processes());
  publish(store, report, command->judging.publish);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
