// SPDX-License-Identifier: Apache-2.0
#include "harness/night/bisect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/campaign/checkout.h"
#include "harness/campaign/git.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kGood = 0, kBad = 1, kSkip = 125;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string find_repository(const std::string& folder) {
  const std::string root = checkout_around(folder);
  if (root.empty()) {
    usage_error(
        "bisect: {} is not in a git repository; run the command in a checkout, or give --repo",
        fs::absolute(folder).string());
  }
  return root;
}

Words find_ab(const std::string& root, const BisectQuery& query) {
  if (!query.repo.empty()) return query.ab;
  const std::string asked = query.ab.empty() ? "" : query.ab[0];
  const std::string path = fs::absolute(asked.empty() ? root + "/ci/ab" : asked).string();
  if (access(path.c_str(), X_OK) != 0) {
    usage_error("{}: there is no program that compares two commits; give --script PATH", path);
  }
  return {path};
}

void throw_if_interrupted() {
  if (InterruptGuard::interrupted())
    throw Error(Exit::interrupted, "bisect: interrupted; its worktree is removed");
}

/// A worktree with its bisect state: both go with it.
class Worktree {
 public:
  Worktree(const std::string& root, const std::string& commit)
      : root_(root),
        path_((cache_of_repository(root) / fmt::format("bisect-{}", getpid())).string()) {
    const int exit = run_program({"git", "-C", root_, "worktree", "add", "--quiet", "--force",
                                  "--detach", path_, commit},
                                 Output::show)
                         .exit;
    if (exit == 0) return;
    remove();
    give_up(Exit::environment, "{}: git could not make this worktree, see above", path_);
  }
  ~Worktree() { remove(); }
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;
  const std::string& path() const { return path_; }

 private:
  void remove() const {
    try {
      git(root_, {"worktree", "remove", "--force", path_});
      std::error_code ignored;
      fs::remove_all(path_, ignored);
      git(root_, {"worktree", "prune"});
    } catch (const Error&) {  // git cannot be started: nothing more can be done
    }
  }
  std::string root_, path_;
};

/// The flags of a step. It fails for coverage and the like, too, so that a commit where the case
/// crashed is skipped and not taken for a good one. Which commit made an output wrong is found
/// whatever the noise of its time.
Words asking(const BisectQuery& query, bool output_alone) {
  return joined(query.ab_flags,
                {"--fail-on", output_alone ? "accuracy,coverage"
                                           : "latency,accuracy,coverage,environment,inconclusive"});
}

/// Else it would blame any commit. Returns whether the output is wrong and nothing else.
bool expect_regression(const BisectQuery& query, const Words& ab, const std::string& good,
                       const std::string& bad) {
  const int exit = run_interruptible(joined(joined(ab, {good, bad}), asking(query, false)));
  throw_if_interrupted();
  const int code = bisect_code(exit);
  if (code == kGood) {
    usage_error("--head '{}' is no worse than --base '{}' in this case; give commits that differ",
                query.bad, query.good);
  }
  if (code == kSkip) {
    give_up(Exit::inconclusive,
            "the A/B cannot tell whether '{}' is worse than '{}' (it exited {}, see above); a "
            "small regression may need more --rounds, a noisy row a quieter machine",
            query.bad, query.good, exit);
  }
  if (code == kBisectGiveUp)
    usage_error("{} gave up with exit code {}, see above", fmt::join(ab, " "), exit);
  return static_cast<Exit>(exit) == Exit::accuracy;
}

/// The lines of a git bisect log that name what is left when the rest was skipped.
std::string candidates(const std::string& log) {
  const std::string kMark = "# possible first bad commit: [";
  std::string list;
  for (size_t at = log.find(kMark); at != std::string::npos; at = log.find(kMark, at + 1)) {
    list += (list.empty() ? "" : ", ") + short_commit(log.substr(at + kMark.size()));
  }
  return list;
}

/// The A/Bs that are started while it lives ask of no row, or of every row, why it differs. By the
/// environment: the judge is the good commit's and may not know the flag.
class AskWhy {
 public:
  explicit AskWhy(const char* mode) { setenv("MOEGATE_WHY", mode, 1); }
  ~AskWhy() { unsetenv("MOEGATE_WHY"); }
  AskWhy(const AskWhy&) = delete;
  AskWhy& operator=(const AskWhy&) = delete;
};

/// An A/B of the commit against its parent, which asks why.
std::string why_of(const std::string& root, const BisectQuery& query, const Words& ab,
                   const std::string& commit) {
  const std::string verdict =
      (cache_of_repository(root) / fmt::format("why-{}.json", getpid())).string();
  const AskWhy ask("all");
  const std::string parent = git(root, {"rev-parse", commit + "^"}).out;
  const Words command = joined(joined(ab, {parent, commit}), asking(query, false));
  const int exit = run_interruptible(joined(command, {"--out", verdict}));
  std::error_code ignored;
  const std::string causes = fs::exists(verdict, ignored) ? causes_in(read_file(verdict)) : "";
  fs::remove(verdict, ignored);
  if (!causes.empty()) return causes;
  return fmt::format("unknown: the A/B of the commit and its parent exited {} and found no cause\n",
                     exit);
}

}  // namespace

std::string causes_in(const std::string& verdict) {
  using Json = nlohmann::json;
  const Json json = Json::parse(verdict, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return "";
  std::string lines;
  for (const Json& row : json.value("cases", Json::array())) {
    if (!row.is_object()) continue;
    const std::string sentence = row.value(Json::json_pointer("/cause/sentence"), "");
    if (sentence.empty()) continue;
    lines += fmt::format("{} {}: {}\n", row.value("key", ""), row.value("variant", ""), sentence);
  }
  return lines;
}

int bisect_code(int exit) {
  switch (static_cast<Exit>(exit)) {
    case Exit::ok:
      return kGood;
    case Exit::latency:
    case Exit::accuracy:
    case Exit::both:
      return kBad;
    case Exit::internal:  // ci/ab: a commit does not build
    case Exit::coverage:
    case Exit::inconclusive:
    case Exit::environment:
      return kSkip;
    default:
      return kBisectGiveUp;
  }
}

Culprit bisect(const BisectQuery& query, const Words& step) {
  forget_git_environment();
  const std::string root = find_repository(query.repo.empty() ? "." : query.repo);
  const std::string good = commit_of(root, "--base", query.good);
  const std::string bad = commit_of(root, "--head", query.bad);
  if (good == bad) usage_error("--base and --head are both {}; give two commits", good);
  if (git(root, {"merge-base", "--is-ancestor", good, bad}).exit != 0) {
    usage_error(
        "--base '{}' is not an ancestor of --head '{}'; give an ancestor, for example `git "
        "merge-base {} {}`",
        query.good, query.bad, query.good, query.bad);
  }
  const Words ab = find_ab(root, query);

  const InterruptGuard guard;
  std::optional<AskWhy> ask(std::in_place,
                            "off");  // of every step: that would take longer than it does
  const bool output_alone = expect_regression(query, ab, good, bad);
  const Worktree worktree(root, bad);
  const Finished started = git(worktree.path(), {"bisect", "start", bad, good, "--"});
  if (started.exit != 0) give_up(Exit::environment, "git bisect start exited {}", started.exit);
  const Words run = joined({"git", "-C", worktree.path(), "bisect", "run"}, step);
  const Words command = joined(joined({std::to_string(ab.size())}, ab), {good});
  const int exit = run_interruptible(joined(joined(run, command), asking(query, output_alone)));
  throw_if_interrupted();
  const std::string log = git(worktree.path(), {"bisect", "log"}).out;
  if (exit != 0) {
    const std::string left = candidates(log);
    say("{}\n", log);
    if (left.empty())
      usage_error("the A/B gave up on a commit (git bisect run exited {}), see above", exit);
    give_up(Exit::inconclusive,
            "the first bad commit is one of {}: the A/B cannot tell them apart, see above; try "
            "more --rounds",
            left);
  }
  const std::string first = git(worktree.path(), {"rev-parse", "refs/bisect/bad"}).out;
  ask.reset();
  return {git(root, {"show", "-s", "--format=%H %s", first}).out,
          git(root, {"show", "-s", "--format=%an, %ad", "--date=iso", first}).out, log,
          query.why ? why_of(root, query, ab, first) : ""};
}

}  // namespace moegate
