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

namespace po = boost::program_options;

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

void refuse_flag(const StartOptions& options, bool given, const char* flag) {
  if (given) usage_error("moegate new {}: {} has no meaning here", options.what, flag);
}

void check_flags(const StartOptions& options) {
  if (options.what == "variant") {
    if (options.op.empty()) {
      usage_error("moegate new variant: give --op OPERATOR ('moegate list kernels' names them)");
    }
    if (options.python && options.cuda) {
      usage_error(
          "--python and --cuda are both given; a file of Python says itself where it runs "
          "(python/README.md): leave --cuda out");
    }
    return;
  }
  refuse_flag(options, options.cuda, "--cuda");
  if (options.what == "suite") {
    refuse_flag(options, options.python, "--python");
  } else {
    refuse_flag(options, !options.op.empty(), "--op");
  }
}

std::optional<StartOptions> read_new(const Args& args) {
  StartOptions options;
  po::options_description flags("Options");
  flags.add_options()  //
      ("what", po::value(&options.what)->default_value(""),
       "operator, variant or suite (positional)")  //
      ("name", po::value(&options.name)->default_value("")->value_name("NAME"),
       "of what is made, and of its files (positional)")  //
      ("op", po::value(&options.op)->default_value("")->value_name("OPERATOR"),
       "the operator that a variant is of, or a suite (default there: moe_sum)")  //
      ("python", po::bool_switch(&options.python),
       "one file for --kernels, with numpy on the host; without: C++, as a project")  //
      ("cuda", po::bool_switch(&options.cuda),
       "a variant for a GPU (.cu) instead of a host (.cc)")  //
      ("dir", po::value(&options.dir)->default_value("")->value_name("DIR"),
       "where files go, made where it is missing (default: here; a project: NAME/). A folder with "
       "a CMakeLists.txt is a project that gets sources only. In a checkout of moegate, without "
       "--dir, a variant in C++ goes into its operator's folder in kernels/");
  flags.add(kernels_flag(options.kernels));
  flags.add_options()("suite",
                      po::value(&options.suite)->default_value(options.suite)->value_name("S"),
                      "has a case of the operator, for its shapes");
  if (!parse("moegate new operator|variant|suite NAME [options]", flags, args, {"what", "name"})) {
    return std::nullopt;
  }
  if (options.what != "operator" && options.what != "variant" && options.what != "suite") {
    usage_error("moegate new: cannot make '{}'; choose operator, variant or suite", options.what);
  }
  check_name(options);
  check_flags(options);
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
