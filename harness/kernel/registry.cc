// SPDX-License-Identifier: Apache-2.0
// Operators and variants register themselves before main(). Registration only records; whether the
// pieces fit together is checked on first use, so that a mistake is an error message, not an abort.
#include <algorithm>

#include "harness/kernel/description.h"
#include "harness/kernel/kernel.h"

namespace moegate {
namespace {

struct Registry {
  std::vector<OpEntry> ops;
  std::vector<Variant> variants;
};

// A function-local static: registrations run before main() in an unspecified order.
Registry& registry() {
  static Registry instance;
  return instance;
}

const OpEntry* find_or_null(const std::string& name) {
  for (const OpEntry& op : registry().ops) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

bool has_variant(const std::string& op, Backend backend, const std::string& name) {
  return std::any_of(registry().variants.begin(), registry().variants.end(), [&](const Variant& v) {
    return v.op == op && v.backend == backend && v.name == name;
  });
}

void check_registrations() {
  Registry& r = registry();
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(r.ops.begin(), r.ops.end(), by_name);
  std::sort(r.variants.begin(), r.variants.end(), [](const Variant& a, const Variant& b) {
    return std::tie(a.op, a.backend, a.name) < std::tie(b.op, b.backend, b.name);
  });
  const auto fail = [](const std::string& what) { throw Error(Exit::internal, what); };
  for (size_t i = 1; i < r.ops.size(); ++i) {
    if (r.ops[i].name == r.ops[i - 1].name) {
      fail(fmt::format("operator '{}' is defined twice; rename one", r.ops[i].name));
    }
  }
  for (size_t i = 0; i < r.variants.size(); ++i) {
    const Variant& v = r.variants[i];
    if (!find_or_null(v.op)) {
      fail(fmt::format("variant '{}' belongs to operator '{}', which does not exist; define its Op",
                       v.name, v.op));
    }
    const Variant* last = i > 0 ? &r.variants[i - 1] : nullptr;
    if (last && last->op == v.op && last->backend == v.backend && last->name == v.name) {
      fail(fmt::format("operator '{}' has two {} variants named '{}'; rename one", v.op,
                       name_of(v.backend), v.name));
    }
  }
  for (const OpEntry& op : r.ops) {
    for (const std::string& part : op.parts) {
      if (find_or_null(part)) continue;
      fail(fmt::format("operator '{}' has a part '{}', which does not exist", op.name, part));
    }
    if (!op.yardstick.empty() && !has_variant(op.name, Backend::host, op.yardstick)) {
      fail(fmt::format("operator '{}' names yardstick '{}', but has no host variant of that name",
                       op.name, op.yardstick));
    }
  }
}

const Registry& checked() {
  static const bool once = (check_registrations(), true);
  (void)once;
  return registry();
}

}  // namespace

void register_op(OpEntry entry) {
  registry().ops.push_back(std::move(entry));
}
void register_variant(Variant variant) {
  registry().variants.push_back(std::move(variant));
}

const std::vector<OpEntry>& all_ops() {
  return checked().ops;
}
const std::vector<Variant>& all_variants() {
  return checked().variants;
}

std::vector<OpDescription> own_operators() {
  std::vector<OpDescription> all;
  for (const OpEntry& op : all_ops()) {
    all.push_back(
        {.name = op.name, .help = op.help, .params = op.params, .yardstick = op.yardstick});
  }
  return all;
}

std::vector<VariantDescription> own_variants(Backend backend) {
  std::vector<VariantDescription> all;
  for (const Variant& v : all_variants()) {
    if (v.backend != backend) continue;
    all.push_back({.op = v.op,
                   .name = v.name,
                   .backend = backend,
                   .language = backend == Backend::cuda ? "CUDA" : "C++",
                   .help = v.help});
  }
  return all;
}

const Variant& find_variant(const std::string& op, Backend backend, const std::string& name) {
  for (const Variant& v : all_variants()) {
    if (v.op == op && v.backend == backend && v.name == name) return v;
  }
  throw Error(Exit::internal,
              fmt::format("no {} variant '{}' of operator '{}'", name_of(backend), name, op));
}

const OpEntry& find_op(const std::string& name) {
  for (const OpEntry& op : checked().ops) {
    if (op.name == name) return op;
  }
  std::string known;
  for (const OpEntry& op : all_ops()) known += (known.empty() ? "" : ", ") + op.name;
  usage_error("unknown operator '{}'; known: {}", name, known);
}

Case resolved(Case c, const DeviceFacts& device) {
  const OpEntry& op = find_op(c.op);
  if (op.resolve) op.resolve(c, device);
  return c;
}

}  // namespace moegate
