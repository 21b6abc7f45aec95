// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "harness/base/error.h"

namespace moegate {
namespace {

// A function-local static: registrations run before main() in an unspecified order.
std::vector<Chooser>& choosers() {
  static std::vector<Chooser> all;
  return all;
}

}  // namespace

bool is_configuration(const std::string& variant) {
  return variant.find('/') != std::string::npos;
}

std::string family_of(const std::string& variant) {
  return variant.substr(0, variant.find('/') + 1);
}

void register_chooser(Chooser chooser) {
  choosers().push_back(std::move(chooser));
}

const std::vector<Chooser>& all_choosers() {
  return choosers();
}

std::string shipped_block(const Case& c, const std::vector<std::string>& ops,
                          const DeviceFacts& device) {
  std::string block, whose;
  for (const Chooser& chooser : choosers()) {
    const bool asked = chooser.elsewhere && chooser.backend == device.backend;
    if (!asked || std::ranges::count(ops, chooser.op) == 0) continue;
    Case its = c;
    its.op = chooser.op;
    const std::string who = chooser.variant + " of " + chooser.op;
    std::string one;
    try {
      one = chooser.choose(its, device).runs.params.at("block");
    } catch (const Error& e) {
      usage_error("{}: block = shipped, but {} cannot be asked; give a number: {}", c.key(), who,
                  e.what());
    }
    if (!block.empty() && one != block) {
      usage_error(
          "{}: block = shipped, but {} ships {} and {} {}; a case has one block: give a number",
          c.key(), whose, block, who, one);
    }
    block = one;
    whose = who;
  }
  if (block.empty()) {
    usage_error(
        "{}: block = shipped, but no variant of --module chooses a configuration of {}; give a "
        "number, or a file that states choose=",
        c.key(), c.op);
  }
  return block;
}

const Variant* configured_variant(const std::string& op, Backend backend, const std::string& name) {
  static std::map<std::tuple<std::string, Backend, std::string>, Variant> made;
  if (!is_configuration(name)) return nullptr;
  const std::string family = family_of(name);
  for (const Chooser& chooser : choosers()) {
    const bool is_it =
        chooser.op == op && chooser.backend == backend && chooser.variant + "/" == family;
    if (!is_it || !chooser.configured) continue;
    const std::tuple key(op, backend, name);
    const auto known = made.find(key);
    if (known != made.end()) return &known->second;
    return &made.emplace(key, chooser.configured(name.substr(family.size()))).first->second;
  }
  return nullptr;
}

}  // namespace moegate
