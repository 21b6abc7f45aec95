// SPDX-License-Identifier: Apache-2.0
// moegate waivers lint: check the waivers, without a store or a device.
#include <fmt/chrono.h>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/home.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/judge/waivers.h"

namespace moegate {

namespace po = boost::program_options;

int cmd_waivers(const Args& args) {
  std::string action;
  std::optional<std::string> file;
  po::options_description flags("Options");
  flags.add_options()  //
      ("action", po::value(&action)->value_name("lint"),
       "what to do (positional): lint checks every waiver; one that expired is exit 24")  //
      ("file", into(file)->value_name("FILE"), "default: ci/waivers.ini of the tool's home");
  if (!parse("moegate waivers lint [options]", flags, args, {"action"})) return 0;
  if (action != "lint") usage_error("waivers: action '{}' is unknown; use lint", action);
  const auto path = file ? std::filesystem::path(*file) : home() / "ci" / "waivers.ini";
  const std::vector<Waiver> waivers = read_waivers(path);
  const auto day = today();
  bool expired = false;
  for (const Waiver& w : waivers) {
    const auto left = (w.expires - day).count();
    expired = expired || left < 0;
    fmt::print("{}", printable(fmt::format("{} ({}, {}): {} {:%F}\n", w.id, w.owner, w.issue,
                                           left < 0 ? "EXPIRED" : "holds until", w.expires)));
  }
  fmt::print("{}: {} waivers{}\n", path.string(), waivers.size(),
             expired ? "; fix what they waived, or delete them" : "");
  return static_cast<int>(expired ? Exit::waiver : Exit::ok);
}

}  // namespace moegate
