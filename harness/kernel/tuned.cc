// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tuned.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "harness/base/error.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/expert_rank.h"
#include "harness/kernel/object_code.h"
#include "harness/kernel/tile_file.h"

namespace moegate {
namespace {

constexpr const char* kTuned = "tuned";

/// A backend's variants of an operator that `tuned` may launch.
struct Candidates {
  const std::string op;
  const Tuning tuning;
  std::vector<Variant> variants;

  const Variant* find(const std::string& name) const {
    const auto at = std::ranges::find(variants, name, &Variant::name);
    return at == variants.end() ? nullptr : &*at;
  }
  std::string names() const {
    std::vector<std::string> all;
    for (const Variant& v : variants) all.push_back(v.name);
    return fmt::format("{}", fmt::join(all, ", "));
  }
};
using Shared = std::shared_ptr<const Candidates>;

/// "experts" is E in a file's name.
std::string letter_of(const std::string& param) {
  return param == "experts" ? "E" : param == "hidden" ? "H" : param == "inter" ? "N" : param;
}

std::string name_of_file(const std::string& op, const Tuning& tuning, const Case& c) {
  const Case even = even_share(c);
  std::string name = op;
  for (const std::string& param : tuning.shape) {
    name += fmt::format(",{}={}", letter_of(param), even.get(param));
  }
  for (const std::string& param : tuning.unusual) {
    const std::string* usual = c.defaults.find(param);
    if (usual && c.get(param) != *usual) name += fmt::format(",{}={}", param, c.get(param));
  }
  return name;
}

void refuse_faults(const Candidates& all, const TunedTile& tile) {
  const auto fail = [&](const std::string& why) {
    usage_error("{} {}; correct it or tune again", tile.where, why);
  };
  if (tile.op != all.op) fail(fmt::format("stands in the file of operator {}", all.op));
  if (!all.find(tile.config.kernel)) {
    fail(fmt::format("kernel = {} is no variant that {} launches; there are {}", tile.config.kernel,
                     kTuned, all.names()));
  }
  if (tile.config.block != 0 || !tile.config.knobs.empty()) {
    fail("has more than kernel and us, the keys of this operator");
  }
}

/// What is launched for a case, and how that came about.
struct Decision {
  const Variant* runs = nullptr;  // null: nothing, for the reason `why`
  std::string why;
  const TunedTile* entry = nullptr;  // null: by Tuning::usual()

  std::string path() const {
    return entry ? fmt::format("tuned: {} for {} tokens", runs->name, entry->tokens)
                 : "default: " + runs->name;
  }
};

Decision decide(const Candidates& all, const Case& c, const DeviceFacts& device) {
  Decision decision;
  decision.entry =
      tuned_entry({device.klass, name_of_file(all.op, all.tuning, c), routing_of(c)}, all.op,
                  tuned_tokens(c), [&](const TunedTile& t) { refuse_faults(all, t); });
  if (decision.entry) {
    decision.runs = all.find(decision.entry->config.kernel);
    decision.why = why_unsupported(*decision.runs, c, device);
    return decision;
  }
  for (const std::string& usual : all.tuning.usual(c, device)) {
    const Variant* v = all.find(usual);
    if (!v || !why_unsupported(*v, c, device).empty()) continue;
    decision.runs = v;
    return decision;
  }
  decision.why = fmt::format("none of {} takes the case", all.names());
  return decision;
}

Variant tuned_variant(const OpEntry& op, Backend backend, const Shared& all) {
  Variant v;
  v.op = op.name;
  v.name = kTuned;
  v.backend = backend;
  v.help = "the fastest variant known for the shape (moegate tune, suites/tiles)";
  v.launch = [](Problem& problem, const Launch& where) { problem.tuned->launch(problem, where); };
  v.prepare = [all](Problem& problem, const Launch& where) {
    problem.tuned = decide(*all, problem.spec, where.device).runs;
    if (problem.tuned->prepare) problem.tuned->prepare(problem, where);
  };
  v.workspace = [all](const Case& c, const DeviceFacts& device) -> size_t {
    const Variant& runs = *decide(*all, c, device).runs;
    return runs.workspace ? runs.workspace(c, device) : 0;
  };
  v.unsupported = [all](const Case& c, const DeviceFacts& device) {
    return decide(*all, c, device).why;
  };
  v.path = [all](const Case& c, const DeviceFacts& device) {
    const Decision decision = decide(*all, c, device);
    const Variant& runs = *decision.runs;
    return decision.path() + (runs.path ? "; " + runs.path(c, device) : "");
  };
  for (const Variant& one : all->variants) {
    v.leeway.factor = std::max(v.leeway.factor, one.leeway.factor);
    v.leeway.between = std::max(v.leeway.between, one.leeway.between);
  }
  v.file = op.file;
  return v;
}

Chooser tuned_chooser(Backend backend, const Shared& all) {
  const auto choose = [all](const Case& c, const DeviceFacts& device) -> Choice {
    const Decision decision = decide(*all, c, device);
    if (!decision.why.empty()) usage_error("{}: {}", c.key(), decision.why);
    return {.runs = {kTilePrefix + decision.runs->name, {}},
            .source = decision.entry ? "file" : "default",
            .entry = decision.entry ? fmt::format("for {} tokens", decision.entry->tokens) : "",
            .path = decision.path()};
  };
  const auto candidates = [all](const Case& c, const DeviceFacts& device) {
    std::vector<Configuration> takes;
    for (const Variant& v : all->variants) {
      if (why_unsupported(v, c, device).empty()) takes.push_back({kTilePrefix + v.name, {}});
    }
    return takes;
  };
  return {.op = all->op,
          .variant = kTuned,
          .backend = backend,
          .choose = choose,
          .candidates = candidates};
}

void add_tuned(Registry& registry, const OpEntry& op, Backend backend) {
  if (!has_variants_of_its_own(registry, op, backend)) return;
  Candidates all{op.name, op.tuning, {}};
  for (const Variant& v : registry.variants) {
    if (v.op != op.name || v.backend != backend) continue;
    if (v.name == kTuned) return;  // of a registry that this one was made of
    const bool is_candidate = v.expected.status == Status::ok && !is_configuration(v.name) &&
                              std::ranges::count(op.tuning.without, v.name) == 0;
    if (is_candidate) all.variants.push_back(v);
  }
  if (all.variants.empty()) return;
  const auto shared = std::make_shared<const Candidates>(std::move(all));
  registry.variants.push_back(tuned_variant(op, backend, shared));
  for (Variant one : shared->variants) {
    one.name = kTilePrefix + one.name;
    one.help = "what variant tuned may launch, for moegate tune";
    registry.variants.push_back(std::move(one));
  }
  register_chooser(tuned_chooser(backend, shared));
}

}  // namespace

void add_tuned(Registry& registry) {
  for (const OpEntry& op : registry.ops) {
    if (!op.tuning.usual) continue;
    add_tuned(registry, op, Backend::host);
    add_tuned(registry, op, Backend::cuda);
  }
}

std::string tuned_name(const Case& c) {
  const OpEntry& op = find_op(c.op);
  return op.tuning.usual ? name_of_file(op.name, op.tuning, c) : tile_shape(c).name();
}

int tuned_tokens(const Case& c) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(even_share(c).get_int("tokens", 1, kMost));
}

bool launches_others(const Variant& variant) {
  return variant.name == kTuned && find_op(variant.op).tuning.usual != nullptr;
}

}  // namespace moegate
