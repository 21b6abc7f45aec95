// SPDX-License-Identifier: Apache-2.0
// moegate bisect: find the commit that made a case slower; and the step it gives to git.
#include "harness/campaign/bisect.h"

#include <filesystem>

#include "harness/base/pattern.h"
#include "harness/base/subprocess.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

po::options_description bisect_flags() {
  po::options_description flags("Options");
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()  //
      ("case", text()->value_name("REGEX"),
       "the cases that became slower, by key; best a single one")             //
      ("variant", text()->value_name("V"), "name of the variant")             //
      ("good", text()->value_name("COMMIT"), "a commit where it was faster")  //
      ("bad", text()->default_value("HEAD")->value_name("COMMIT"),
       "a commit where it is slower")                                                      //
      ("suite", text()->value_name("S"), "suite that holds the case (default: of ci/ab)")  //
      ("rounds", po::value<int>()->value_name("N"),
       "process pairs that decide a step (default: of ci/ab)")           //
      ("device", text()->value_name("D"), "auto, host, cuda or cuda:N")  //
      ("ab", text()->default_value("")->value_name("PATH"),
       "script that compares two commits (default: ci/ab of the repository)");
  return flags;
}

const std::string& required(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) {
    usage_error(
        "moegate bisect: --{} is missing: moegate bisect --case REGEX --variant V --good COMMIT",
        name);
  }
  return values[name].as<std::string>();
}

/// A step fails for more than latency and accuracy, so that a commit where the case crashed is
/// skipped and not taken for a good one.
constexpr const char* kFailOn = "latency,accuracy,coverage,environment,inconclusive";

std::vector<std::string> flags_of_ab(const po::variables_map& values) {
  const std::string& cases = required(values, "case");
  compile_pattern("--case", cases);
  std::vector<std::string> flags = {
      "--filter", cases, "--kernel", exactly(required(values, "variant")), "--fail-on", kFailOn};
  if (values.count("suite") != 0) {
    const auto suite = values["suite"].as<std::string>();
    // A path, where it is one, is the user's; steps run in another folder.
    const bool path = suite.find('/') != std::string::npos;
    flags.insert(flags.end(),
                 {"--suite", path ? std::filesystem::absolute(suite).string() : suite});
  }
  if (values.count("device") != 0)
    flags.insert(flags.end(), {"--device", values["device"].as<std::string>()});
  if (values.count("rounds") != 0) {
    const int rounds = values["rounds"].as<int>();
    if (rounds < 2) usage_error("--rounds {} is too few; give 2 or more", rounds);
    flags.insert(flags.end(), {"--rounds", std::to_string(rounds)});
  }
  return flags;
}

}  // namespace

int cmd_bisect(const std::vector<std::string>& args) {
  const auto values = parse("moegate bisect --case REGEX --variant V --good COMMIT [options]",
                            bisect_flags(), args);
  if (!values) return 0;
  BisectQuery query;
  query.ab_flags = flags_of_ab(*values);
  query.good = required(*values, "good");
  query.bad = (*values)["bad"].as<std::string>();
  query.ab = (*values)["ab"].as<std::string>();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Culprit culprit = bisect(query, {self, "bisect-step"});
  fmt::print("first bad commit: {}\n{}\n\n{}\n", culprit.commit, culprit.details, culprit.log);
  return 0;
}

int cmd_bisect_step(const std::vector<std::string>& args) try {
  if (args.size() < 2) usage_error("bisect-step is run by `moegate bisect`, not by hand");
  forget_git_environment();
  const Finished head = run_program({"git", "rev-parse", "HEAD"}, Output::capture);
  if (head.exit != 0) usage_error("bisect-step: the current folder is in no git repository");
  std::vector<std::string> command = {args[0], args[1], head.out.substr(0, head.out.find('\n'))};
  command.insert(command.end(), args.begin() + 2, args.end());
  return bisect_code(run_program(command, Output::show).exit);
} catch (const std::exception& e) {
  // Here and not in main.cc, because git takes the exit codes of errors for "bad".
  fmt::print(stderr, "moegate: {}\n", e.what());
  return kBisectGiveUp;
}

}  // namespace moegate
