// SPDX-License-Identifier: Apache-2.0
// moegate: the table of subcommands, the last try/catch, the exit codes. Linked with the kernels it is
// `moegate`, without them `moegate-judge`.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "harness/base/closest.h"
#include "harness/base/error.h"
#include "harness/base/notes.h"
#include "harness/commands/commands.h"
#include "harness/commands/moved_commands.h"
#include "harness/values/provenance.h"
#include "harness/worker/serve.h"

namespace moegate {
namespace {

std::span<const Command> commands();

constexpr auto kCommands = std::to_array<Command>({
    {"run", cmd_run, "verify, measure and store every variant of a suite"},
    {"verify", cmd_verify, "check outputs against the truth only"},
    {"profile", cmd_profile, "counters, stalls or energy of every variant of a suite"},
    {"gate", cmd_gate, "judge a run against the blessed baseline"},
    {"nightly", cmd_nightly, "the perf gate: verify, measure, judge, replay, report"},
    {"compare", cmd_compare, "judge one run against another"},
    {"explain", cmd_explain, "why the rows of one run differ from another's"},
    {"ab", cmd_ab, "judge two programs, or two variants, side by side"},
    {"bless", cmd_bless, "make a run the baseline"},
    {"waivers", cmd_waivers, "check ci/waivers.ini"},
    {"tune", cmd_tune, "find the fastest tile configurations, for variant tuned"},
    {"report", cmd_report, "print a table of a run"},
    {"resources", cmd_resources,
     "registers, local memory, blocks per SM of every kernel; needs no GPU"},
    {"history", cmd_history, "a case over the runs of a store, and where it changed"},
    {"pages", cmd_pages, "a store as pages for a browser, with charts"},
    {"merge", cmd_merge,
     "stores of several machines into one, and the shards of a campaign into one run"},
    {"prune", cmd_prune, "make a store smaller: old runs without their samples"},
    {"bisect", cmd_bisect, "the commit that made a case slower"},
    {"new", cmd_new, "a starting point of an operator, a variant or a suite"},
    {"list", cmd_list, "suites, kernels, cases, devices, runs, reports"},
    {"selftest", cmd_selftest,
     "does the gate stay silent when it should, and speak when it should"},
    {"doctor", cmd_doctor, "what this machine can measure, and how well"},
    {"repro", cmd_repro, "print or run the command that repeats a row"},
    // Not for people, so without help: a step of `git bisect run`, what shells and the installation
    // ask for, and the process that measures.
    {"bisect-step", cmd_bisect_step, nullptr},
    {"complete", [](const auto& words) { return cmd_complete(words, commands()); }, nullptr},
    {"man", [](const auto& args) { return cmd_man(args, commands()); }, nullptr},
    {"worker", [](const std::vector<std::string>&) -> int { serve_runner(); }, nullptr},
});

std::span<const Command> commands() {
  return kCommands;
}

std::string usage() {
  std::string text = "usage: moegate COMMAND [options]\n\n";
  for (const Command& c : kCommands) {
    if (c.help) text += fmt::format("  {:9} {}\n", c.name, c.help);
  }
  return text +
         "\n'moegate COMMAND --help' lists a command's options; 'moegate --version' the build.\n";
}

int dispatch(const std::vector<std::string>& args) {
  if (args.empty()) {
    say_text(usage());
    return static_cast<int>(Exit::usage);
  }
  const std::string& name = args[0];
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", usage());
    return 0;
  }
  if (name == "--version") {
    const Provenance& p = provenance();
    fmt::print("moegate {} ({}{}, {})\n", p.version, p.git_sha.empty() ? "no commit" : p.git_sha,
               p.dirty ? ", dirty" : "", p.build);
    return 0;
  }
  for (const Command& c : kCommands) {
    if (name == c.name) return c.run({args.begin() + 1, args.end()});
  }
  if (const std::string moved = moved_command(name); !moved.empty()) usage_error("{}", moved);
  std::vector<std::string> known;
  for (const Command& c : kCommands) {
    if (c.help) known.emplace_back(c.name);
  }
  usage_error("unknown command '{}'{}; 'moegate --help' lists them", name,
              did_you_mean(name, known));
}

int run(const std::vector<std::string>& args) {
  try {
    return dispatch(args);
  } catch (const Error& e) {
    say("moegate: {}\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    if (std::ferror(stdout) != 0) return 0;  // main() says so
    say("moegate: internal error: {}\n", e.what());
    return static_cast<int>(Exit::internal);
  }
}

}  // namespace
}  // namespace moegate

extern "C" void __lsan_do_leak_check() __attribute__((weak));  // where it is linked in

int main(int argc, char** argv) {
  moegate::keep_standard_streams();
  int exit = moegate::run({argv + 1, argv + argc});
  // A result that could not be printed is no success; another failure says more.
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!printed && exit == 0) {
    moegate::say(
        "moegate: standard output cannot be written; the command did not print its result\n");
    exit = static_cast<int>(moegate::Exit::usage);
  }
  std::fflush(nullptr);
  if (__lsan_do_leak_check != nullptr) __lsan_do_leak_check();
  // Not by return: what the file of a kernel has registered with atexit() must not have the last
  // word.
  _exit(exit);
}
