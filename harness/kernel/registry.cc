// SPDX-License-Identifier: Apache-2.0
// Operators and variants register themselves before main(). Registration only records; whether the
// pieces fit together is checked on first use, so that a mistake is an error message, not an abort.
#include "harness/kernel/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "harness/base/text.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/tuned.h"

namespace moegate {
namespace {

// A function-local static: registrations run before main() in an unspecified order.
Registry& registry() {
  static Registry instance;
  return instance;
}

/// Null: there is none.
const OpEntry* op_of(const Registry& r, const std::string& name) {
  const auto at = std::ranges::find(r.ops, name, &OpEntry::name);
  return at == r.ops.end() ? nullptr : &*at;
}

/// The first for a backend, of this name where one is given. Null: there is none.
const Variant* variant_of(const Registry& r, const std::string& op, Backend backend,
                          const std::string* name = nullptr) {
  const auto at = std::ranges::find_if(r.variants, [&](const Variant& v) {
    return v.op == op && v.backend == backend && (!name || v.name == *name);
  });
  return at == r.variants.end() ? nullptr : &*at;
}

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  give_up(Exit::internal, format, std::forward<Args>(args)...);
}

void check_befores(const Registry& r, const OpEntry& op, Backend backend,
                   const std::vector<Before>& befores) {
  if (!has_variants_of_its_own(r, op, backend)) return;  // and no use for its befores
  for (const Before& before : befores) {
    if (variant_of(r, op.name, backend, &before.variant)) continue;
    fail("operator '{}' names before '{}', but has no {} variant of that name", op.name,
         before.variant, name_of(backend));
  }
}

void check_op(const Registry& r, const OpEntry& op) {
  for (const std::string& part : op.parts) {
    if (op_of(r, part)) continue;
    fail("operator '{}' has a part '{}', which does not exist", op.name, part);
  }
  if (!op.yardstick.empty() && !variant_of(r, op.name, Backend::host, &op.yardstick)) {
    fail("operator '{}' names yardstick '{}', but has no host variant of that name", op.name,
         op.yardstick);
  }
  check_befores(r, op, Backend::host, op.before.host);
  check_befores(r, op, Backend::cuda, op.before.cuda);
}

}  // namespace

void register_op(OpEntry entry) {
  registry().ops.push_back(std::move(entry));
}
void register_variant(Variant variant) {
  registry().variants.push_back(std::move(variant));
}

bool has_variants_of_its_own(const Registry& r, const OpEntry& op, Backend backend) {
  const auto is_python = [](const std::string& file) { return file.ends_with(".py"); };
  return std::ranges::any_of(r.variants, [&](const Variant& v) {
    return v.op == op.name && v.backend == backend && is_python(v.file) == is_python(op.file);
  });
}

void sort_and_check(Registry& r) {
  add_tuned(r);
  std::ranges::sort(r.ops, {}, &OpEntry::name);
  const auto whose = [](const Variant& v) { return std::tie(v.op, v.backend, v.name); };
  std::ranges::sort(r.variants, {}, whose);
  const auto twice = std::ranges::adjacent_find(r.ops, {}, &OpEntry::name);
  if (twice != r.ops.end()) fail("operator '{}' is defined twice; rename one", twice->name);
  for (const Variant& v : r.variants) {
    if (!op_of(r, v.op)) {
      fail("variant '{}' belongs to operator '{}', which does not exist; define its Op", v.name,
           v.op);
    }
    if (!(v.leeway.factor >= 1 && v.leeway.factor <= kMostTolerance)) {
      fail("variant '{}' of operator '{}' states a tolerance of {}; a factor is 1 to {}", v.name,
           v.op, v.leeway.factor, kMostTolerance);
    }
    if (!(v.leeway.between >= 0 && v.leeway.between < 1)) {
      fail("variant '{}' of operator '{}' states that it rounds {} in between; a share is 0 to 1",
           v.name, v.op, v.leeway.between);
    }
  }
  const auto again = std::ranges::adjacent_find(r.variants, {}, whose);
  if (again != r.variants.end()) {
    fail("operator '{}' has two {} variants named '{}'; rename one", again->op,
         name_of(again->backend), again->name);
  }
  for (const OpEntry& op : r.ops) check_op(r, op);
}

const Registry& own_registry() {
  static const bool once = (sort_and_check(registry()), true);
  (void)once;
  return registry();
}

const std::vector<OpEntry>& all_ops() {
  return own_registry().ops;
}
const std::vector<Variant>& all_variants() {
  return own_registry().variants;
}

namespace {

/// What variants are compared with where the operator does not say: the yardstick, else its first
/// variant, so that no operator's table of speed-ups is empty.
std::vector<Before> usual_before(const Registry& registry, const OpEntry& op, Backend backend) {
  if (backend == Backend::host && !op.yardstick.empty()) return {{op.yardstick}};
  const Variant* first = variant_of(registry, op.name, backend);
  return first ? std::vector<Before>{{first->name}} : std::vector<Before>();
}

}  // namespace

std::vector<OpDescription> describe_operators(const Registry& registry, Backend backend) {
  std::vector<OpDescription> all;
  for (const OpEntry& op : registry.ops) {
    OpDescription described{.name = op.name,
                            .help = op.help,
                            .params = op.params,
                            .yardstick = op.yardstick,
                            .before = backend == Backend::host ? op.before.host : op.before.cuda};
    if (described.before.empty()) described.before = usual_before(registry, op, backend);
    all.push_back(std::move(described));
  }
  return all;
}

std::vector<VariantDescription> describe_variants(const Registry& registry, Backend backend) {
  std::vector<VariantDescription> all;
  for (const Variant& v : registry.variants) {
    if (v.backend != backend) continue;
    all.push_back({.op = v.op,
                   .name = v.name,
                   .backend = backend,
                   .language = v.file.ends_with(".py")    ? "Python"
                               : backend == Backend::cuda ? "CUDA"
                                                          : "C++",
                   .help = v.help,
                   .leeway = v.leeway,
                   .expected = v.expected});
  }
  return all;
}

const Variant& find_variant(const std::string& op, Backend backend, const std::string& name,
                            const Registry& registry) {
  if (const Variant* registered = variant_of(registry, op, backend, &name)) return *registered;
  if (const Variant* made = configured_variant(op, backend, name)) return *made;
  give_up(Exit::internal, "no {} variant '{}' of operator '{}'", name_of(backend), name, op);
}

const OpEntry& find_op(const std::string& name, const Registry& registry) {
  if (const OpEntry* op = op_of(registry, name)) return *op;
  std::vector<std::string> known;
  for (const OpEntry& op : registry.ops) known.push_back(op.name);
  usage_error("unknown operator '{}'{}; known: {}; name the file of one of your own with --module",
              name, did_you_mean(name, known), fmt::join(known, ", "));
}

const OpEntry& find_op(const std::string& name) {
  return find_op(name, own_registry());
}
const Variant& find_variant(const std::string& op, Backend backend, const std::string& name) {
  return find_variant(op, backend, name, own_registry());
}
Case resolved(Case c, const DeviceFacts& device) {
  return resolved(std::move(c), device, own_registry());
}

Case resolved(Case c, const DeviceFacts& device, const Registry& registry) {
  const OpEntry& op = find_op(c.op, registry);
  if (op.resolve) op.resolve(c, device);
  return c;
}

}  // namespace moegate
