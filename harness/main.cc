// SPDX-License-Identifier: Apache-2.0
// moegate: the last try/catch, the exit codes. Linked with the kernels it is `moegate`, without
// them `moegate-judge`.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/verbs.h"
#include "harness/values/provenance.h"
#include "harness/worker/serve.h"

namespace moegate {
namespace {

std::string usage() {
  std::string text = "usage: moegate COMMAND [options]\n\n";
  for (const Verb& verb : verbs()) text += fmt::format("  {:9} {}\n", verb.name, verb.about);
  return text +
         "\n'moegate COMMAND -h' shows a command's most used flags, 'moegate help COMMAND' all,\n"
         "'moegate --version' the build.\n";
}

int run_verb(const std::string& name, const Args& args) {
  if (const Verb* verb = find_verb(name)) return verb->run(args);
  if (const std::string moved = moved_command(name); !moved.empty()) usage_error("{}", moved);
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) known.emplace_back(verb.name);
  usage_error("unknown command '{}'{}; 'moegate --help' lists them", name,
              did_you_mean(name, known));
}

int help(const std::vector<std::string>& args) {
  if (args.empty()) {
    fmt::print("{}", usage());
    return 0;
  }
  if (args.size() > 1) usage_error("help '{}': name one command", args[1]);
  return run_verb(args[0], {"--help"});
}

int dispatch(const std::vector<std::string>& args) {
  if (args.empty()) {
    say_text(usage());
    return static_cast<int>(Exit::usage);
  }
  const std::string& name = args[0];
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (name == "--help" || name == "-h" || name == "help")
    return help(name == "help" ? rest : Args());
  if (name == "--version") {
    const Provenance& p = provenance();
    fmt::print("moegate {} ({}{}, {})\n", p.version, p.git_sha.empty() ? "no commit" : p.git_sha,
               p.dirty ? ", dirty" : "", p.build);
    return 0;
  }
  // Not for people: a step of `git bisect run`, what shells and the installation ask for, and the
  // process that measures.
  if (name == "bisect-step") return cmd_bisect_step(rest);
  if (name == "complete") return cmd_complete(rest);
  if (name == "man") return cmd_man(rest);
  if (name == "worker") serve_runner();
  return run_verb(name, rest);
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
