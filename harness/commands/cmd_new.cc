// SPDX-License-Identifier: Apache-2.0
// moegate new: a commented starting point of an operator, a variant or a suite, that builds and verifies.
#include <algorithm>
#include <cctype>

#include "harness/base/error.h"
#include "harness/base/notes.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/starting_point.h"
#include "harness/plugin/plugin.h"

namespace moegate {
namespace {

/// Also the name of a namespace, a class and files.
void check_name(const StartOptions& options) {
  const std::string& name = options.name;
  constexpr size_t kLongest = 64;
  if (name.empty()) usage_error("moegate new {}: give a NAME", options.what);
  const bool is_suite = options.what == "suite";
  const bool plain = std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           (is_suite && (c == '-' || (c >= 'A' && c <= 'Z')));
  });
  const bool starts = std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  if (!plain || !starts || name.size() > kLongest) {
    usage_error("NAME '{}' is no name of {} {}; use {}, a letter first, {} in all at most", name,
                options.what == "operator" ? "an" : "a", options.what,
                is_suite ? "letters, digits, - and _" : "lower-case letters, digits and _",
                kLongest);
  }
  if (name == "none" || name == "true" || name == "false") {
    usage_error("NAME '{}' is a word of Python; choose another", name);
  }
}

void check_flags(const StartOptions& options, const std::set<std::string>& given) {
  const auto refuse = [&](const char* name) {
    if (given.contains(name)) {
      usage_error("moegate new {}: --{} has no meaning here", options.what, name);
    }
  };
  if (options.what == "variant") {
    if (options.op.empty()) {
      usage_error("moegate new variant: give --op OPERATOR ('moegate list kernels' names them)");
    }
    return;
  }
  if (options.cuda) {
    usage_error("moegate new {}: --language cuda has no meaning here", options.what);
  }
  refuse(options.what == "suite" ? "language" : "op");
}

std::optional<StartOptions> read_new(const Args& args) {
  StartOptions options;
  Flags flags;
  flags.add(flag("op", options.op,
                 "the operator that a variant is of, or a suite (default there: moe_sum)"));
  std::string language;
  flags.add(choice_flag("language", language, "cpp"));
  flags.add(
      flag("out", options.dir,
           "where files go, made where it is missing (default: here; a project: NAME/). A "
           "folder with a CMakeLists.txt is a project that gets sources only. In a checkout of "
           "moegate, without --out, a variant in C++ goes into its operator's folder in "
           "kernels/"));
  flags.add(module_flag(options.kernels));
  flags.add(flag("suite", options.suite, "has a case of the operator, for its shapes"));
  std::set<std::string> given;
  if (!parse("new", flags, args,
             {{"WHAT", po::value(&options.what)}, {"NAME", po::value(&options.name)}}, &given)) {
    return std::nullopt;
  }
  options.python = language == "python";
  options.cuda = language == "cuda";
  if (options.what != "operator" && options.what != "variant" && options.what != "suite") {
    usage_error("moegate new: cannot make '{}'; choose operator, variant or suite", options.what);
  }
  check_name(options);
  check_flags(options, given);
  if (options.what == "suite" && options.op.empty()) options.op = "moe_sum";
  return options;
}

}  // namespace

int cmd_new(const Args& args) {
  const auto options = read_new(args);
  if (!options) return 0;
  StartingPoint start;
  with_kernels(options->kernels,
               [&](const Registry& registry) { start = starting_point(*options, registry); });
  write_new_files(start.files);
  for (const NewFile& file : start.files) fmt::print("{}\n", file.path.string());
  for (const std::string& note : start.notes) say("{}\n", note);
  say("next:\n");
  for (const std::string& line : start.next) say("  {}\n", line);
  return 0;
}

}  // namespace moegate
