// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "harness/campaign/suite.h"
#include "harness/kernel/registry.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

/// A suite that lists a case value by value.
std::string suite_of(const Case& c) {
  std::string text = "[s]\nop = " + c.op + "\n";
  for (const auto& [name, value] : c.params) text += name + " = " + value + "\n";
  return text;
}

/// What a worker asks before it runs a case.
void look_at(const Case& c) {
  static const DeviceFacts host{Backend::host, "CPU", "host", "a-host", 2, 1 << 25, 1 << 30, 0, ""};
  accepted({Exit::usage}, [&] {
    const OpEntry& op = find_op(c.op);
    if (op.validate) op.validate(c);
    const Case here = resolved(c, host);
    for (const Variant& v : all_variants()) {
      if (v.op == c.op && v.unsupported) v.unsupported(here, host);
    }
  });
}

}  // namespace

void suite(std::string_view bytes) {
  static const auto operators = describe_operators(own_registry(), Backend::host);
  const std::string path = write_own_file("input.suite", bytes).string();
  std::vector<Case> cases;
  if (!accepted({Exit::usage}, [&] { cases = load_suite(path, {}, operators); })) return;
  std::set<std::string> keys;
  constexpr size_t kLookedAt = 20;  // of what may be a hundred thousand
  for (const Case& c : cases) {
    require(keys.insert(c.key()).second, "a key twice: " + c.key());
    if (keys.size() > kLookedAt) return;
    look_at(c);
    const std::string again = write_own_file("again.suite", suite_of(c)).string();
    const std::vector<Case> same = load_suite(again, {}, operators);
    require(same.size() == 1 && same[0].params == c.params, "another case than " + c.key());
  }
}

}  // namespace moegate::fuzz
