// SPDX-License-Identifier: Apache-2.0
// moegate bless: make a run the baseline.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "harness/base/home.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/judge/bless.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

/// Who git says one is, else who the system says.
std::string author() {
  const std::unique_ptr<FILE, int (*)(FILE*)> git(popen("git config user.name 2>/dev/null", "r"),
                                                  pclose);
  std::array<char, 256> line{};
  std::string name = git && fgets(line.data(), line.size(), git.get()) ? line.data() : "";
  while (!name.empty() && name.back() == '\n') name.pop_back();
  if (!name.empty()) return name;
  const char* user = std::getenv("USER");
  return user ? user : "unknown";
}

}  // namespace

int cmd_bless(const std::vector<std::string>& args) {
  po::options_description flags("Options");
  flags.add_options()  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store")  //
      ("run", po::value<std::string>()->default_value("latest")->value_name("R"),
       "latest, a number or a label")  //
      ("reason", po::value<std::string>()->default_value("")->value_name("TEXT"),
       "why the baseline moves; goes into the ledger")  //
      ("baselines", po::value<std::string>()->value_name("DIR"),
       "default: baselines/ of the tool's home")                                    //
      ("allow-dirty", po::bool_switch(), "bless a build with uncommitted changes")  //
      ("accept-creep", po::bool_switch(),
       "bless rows that are slower than their best by more than 3% (host: 20%), or a suite by 1% "
       "(10%)")  //
      ("new-conditions", po::bool_switch(),
       "replace a baseline of another GPU, timer, protocol or flush; its anchors are forgotten");
  const auto values = parse("moegate bless [options]", flags, args);
  if (!values) return 0;
  BlessOptions options;
  options.reason = (*values)["reason"].as<std::string>();
  options.allow_dirty = (*values)["allow-dirty"].as<bool>();
  options.accept_creep = (*values)["accept-creep"].as<bool>();
  options.new_conditions = (*values)["new-conditions"].as<bool>();
  options.author = author();
  const bool given = values->count("baselines") != 0;
  options.baselines = given ? std::filesystem::path((*values)["baselines"].as<std::string>())
                            : home() / "baselines";
  Store store = Store::open((*values)["db"].as<std::string>(), Store::Mode::read);
  const RunInfo run = store.run_info(store.find_run((*values)["run"].as<std::string>()));
  const Sides sides = collect(store.levels(run.id));
  fmt::print("{}", bless(run, sides, options));
  return 0;
}

}  // namespace moegate
