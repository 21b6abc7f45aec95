// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <unordered_set>

#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/kernel/choice.h"

namespace moegate {

std::vector<RowName> Plan::rows() const {
  std::vector<RowName> rows;
  for (const PlannedCase& c : cases) {
    const std::string key = c.spec.key();
    for (const std::string& variant : c.variants) rows.emplace_back(key, variant);
  }
  return rows;
}

std::vector<Case> load_cases(const RunOptions& options, const Hello& hello) {
  const Pattern filter = compile_pattern("--filter", options.filter);
  std::vector<Case> cases;
  std::unordered_set<std::string> seen;
  const auto add = [&](Case c) {
    c.get_int("seed", 0, std::numeric_limits<int64_t>::max());
    cache_of(c);
    launch_of(c);
    if (hello.device.backend == Backend::host) c.params["launch"] = "stream";  // its one mode
    if (!options.ops.empty() && std::ranges::count(options.ops, c.op) == 0) return;
    std::string key = c.key();
    if (!filter.found_in(key) || !seen.insert(std::move(key)).second) return;
    cases.push_back(std::move(c));
  };
  for (const std::string& suite : options.suites) {
    for_each_case(suite, options.axes, hello.operators, add);
  }
  return cases;
}

namespace {

std::vector<CaseAnswer> ask(Worker& worker, const std::vector<CaseQuestion>& questions) {
  std::vector<CaseAnswer> answers = worker.check(questions);
  for (const CaseAnswer& answer : answers) {
    if (!answer.error.empty()) throw Error(Exit::usage, answer.error);
  }
  return answers;
}

/// Whether its operator has all of a case's parameters, so that it need not be told the defaults.
bool knows_all_params(const Hello& hello, const Case& c) {
  const auto op = std::ranges::find(hello.operators, c.op, &OpDescription::name);
  if (op == hello.operators.end()) return false;
  return std::ranges::all_of(c.params, [&](const auto& param) {
    const auto is_it = [&](const Param& p) { return p.name == param.first; };
    return std::ranges::any_of(op->params, is_it) || std::ranges::any_of(common_params(), is_it);
  });
}

/// Has the worker look at `count` cases, some at a time: both sides hold a message as a tree. `put`
/// writes the i-th question over an earlier one, whose memory it takes.
template <class Put>
void ask_about_all(Worker& worker, size_t count, const Put& put) {
  constexpr size_t kAtATime = 1000;
  std::vector<CaseQuestion> questions;
  for (size_t first = 0; first < count; first += kAtATime) {
    questions.resize(std::min(kAtATime, count - first));
    for (size_t i = 0; i < questions.size(); ++i) {
      put(first + i, questions[i]);
      Case& spec = questions[i].spec;
      if (knows_all_params(worker.hello(), spec)) spec.defaults = {};
    }
    ask(worker, questions);
  }
}

double tolerance_of(const Hello& hello, const std::string& op, const std::string& variant) {
  const auto at = std::ranges::find_if(
      hello.variants, [&](const VariantDescription& v) { return v.op == op && v.name == variant; });
  return at == hello.variants.end() ? 1 : at->leeway.factor;
}

/// A pattern without the marks of exactly().
std::string plain_name(std::string pattern) {
  std::erase_if(pattern, [](char c) { return c == '^' || c == '$' || c == '\\'; });
  return pattern;
}

/// Configurations that a function makes from a case are in no list: "NAME/KEY=VALUE,…" is one.
void add_configuration(const std::string& name, const Hello& hello,
                       std::map<std::string, std::vector<std::string>>& variants) {
  if (!is_configuration(name) || name.find('=') == std::string::npos) return;
  for (const VariantDescription& v : hello.variants) {
    std::vector<std::string>& of_op = variants[v.op];
    const bool makes_it = v.language == "Python" && v.name + "/" == family_of(name);
    if (makes_it && std::ranges::count(of_op, name) == 0) of_op.push_back(name);
  }
}

bool is_mine(const Case& c, const RunOptions& options) {
  return options.shards == 1 || shard_of(c, options.shards) == options.shard;
}

/// "--filter 'x', --variant 'y'" of those that were given, a variant by its name where that is all.
std::string selected_by(const RunOptions& options) {
  const std::string name = plain_name(options.variant);
  const bool is_name = !name.empty() && options.variant == exactly(name);
  return flags_text({{"filter", options.filter}, {"variant", is_name ? name : options.variant}});
}

/// A variant whose name is close to a pattern that is one; of any operator, because none matched.
/// Nothing for a pattern that names a variant: the filter is to blame then.
std::string meant_variant(const std::string& pattern, const Hello& hello) {
  const Pattern kernel = compile_pattern("--variant", pattern);
  const auto named = [&](const VariantDescription& v) { return kernel.found_in(v.name); };
  if (std::ranges::any_of(hello.variants, named)) return "";
  return did_you_mean(plain_name(pattern), mapped(hello.variants, &VariantDescription::name));
}

/// Throws Error(coverage) when nothing is left, as select_rows() does.
Plan plan_of(std::vector<PlannedCase> planned, const RunOptions& options, const Hello& hello) {
  const bool any_case = !planned.empty();
  std::erase_if(planned, [](const PlannedCase& p) { return p.variants.empty(); });
  if (planned.empty()) {
    const std::string by = selected_by(options);
    const std::string suites = fmt::format("{}", fmt::join(options.suites, ", "));
    const std::string shown_by =
        any_case ? "`moegate list kernels` shows the variants"
                 : fmt::format("`moegate list cases --suite {}` shows the cases", suites);
    give_up(Exit::coverage, "nothing to run: no {} of {} on the {} device{}{}; {}",
            any_case ? "variant" : "case", suites, name_of(hello.device.backend),
            by.empty() ? "" : " matches " + by,
            options.variant.empty() ? "" : meant_variant(options.variant, hello), shown_by);
  }
  const size_t all = planned.size();
  Plan mine{hello, part_of(std::move(planned), options)};
  if (mine.cases.empty() && options.campaign.empty()) {
    give_up(Exit::coverage, "nothing to run: --shard {}/{} of {} cases is empty; use fewer shards",
            options.shard + 1, options.shards, all);
  }
  return mine;
}

/// A case says of a bad value where its suite is; one of an axis stands on the command line.
std::string blame_axes(const std::string& error, const Axes& axes) {
  constexpr std::string_view kThere = "; change it there";
  for (const auto& [name, values] : axes) {
    const bool has_flag = name == "seed" || name == "cache" || name == "launch";
    for (const std::string& value : values) {
      if (error.find(fmt::format(": {} = '{}' ", name, value)) == std::string::npos) continue;
      const size_t there = error.rfind(kThere);
      return fmt::format("{}; the value comes from {}--axis {}", error.substr(0, there),
                         has_flag ? fmt::format("--{} or ", name) : "", name);
    }
  }
  return error;
}

}  // namespace

void check_cases(const std::vector<Case>& cases, Worker& worker) {
  ask_about_all(worker, cases.size(), [&](size_t i, CaseQuestion& q) { q.spec = cases[i]; });
}

std::vector<PlannedCase> matching_cases(const RunOptions& options, std::vector<Case> cases,
                                        const Hello& hello) {
  const Pattern kernel = compile_pattern("--variant", options.variant);
  std::vector<PlannedCase> planned;
  planned.reserve(cases.size());
  std::map<std::string, std::vector<std::string>> variants;  // by operator
  for (const VariantDescription& v : hello.variants) {
    const bool hidden =
        is_configuration(v.name) && options.variant.find(family_of(v.name)) == std::string::npos;
    if (!hidden && kernel.found_in(v.name)) variants[v.op].push_back(v.name);
  }
  add_configuration(plain_name(options.variant), hello, variants);
  for (Case& c : cases) {
    const std::vector<std::string>& of_op = variants[c.op];
    planned.push_back({std::move(c), of_op});
  }
  return planned;
}

int shard_of(const Case& c, int shards) {
  Case cold = c;
  cold.params["cache"] = "cold";
  const std::string key = cold.key();
  return static_cast<int>(hash_bytes(key.data(), key.size()) % static_cast<uint64_t>(shards));
}

std::vector<PlannedCase> part_of(std::vector<PlannedCase> planned, const RunOptions& options) {
  std::erase_if(planned, [&](const PlannedCase& p) { return !is_mine(p.spec, options); });
  return planned;
}

Plan select_rows(const RunOptions& options, std::vector<Case> cases, const Hello& hello) {
  return plan_of(matching_cases(options, std::move(cases), hello), options, hello);
}

void check_on_device(const Plan& plan, Worker& worker) {
  ask_about_all(worker, plan.cases.size(), [&](size_t i, CaseQuestion& q) {
    q.spec = plan.cases[i].spec;
    q.resolve = true;
  });
}

Plan make_plan(const RunOptions& options, Worker& worker) {
  try {
    const Hello& hello = worker.hello();
    std::vector<PlannedCase> all = matching_cases(options, load_cases(options, hello), hello);
    ask_about_all(worker, all.size(), [&](size_t i, CaseQuestion& q) {
      q.spec = all[i].spec;
      q.resolve = !all[i].variants.empty() && is_mine(q.spec, options);
    });
    return plan_of(std::move(all), options, hello);
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    throw Error(Exit::usage, blame_axes(e.what(), options.axes));
  }
}

std::vector<PlannedCase> in_order(std::vector<PlannedCase> planned, uint32_t seed, int round) {
  const auto stream = static_cast<uint64_t>(round);
  for (size_t i = planned.size(); i > 1; --i) {
    std::swap(planned[i - 1], planned[random_bits(seed, stream, i) % i]);
  }
  for (PlannedCase& p : planned) {
    const auto shift = static_cast<std::ptrdiff_t>(stream % p.variants.size());
    std::rotate(p.variants.begin(), p.variants.begin() + shift, p.variants.end());
  }
  return planned;
}

uint32_t draw_order_seed() {
  return std::random_device{}() | 1;
}

size_t canary_slot(const RowName& row, size_t slots) {
  const std::string text = row.first + " " + row.second;
  return hash_bytes(text.data(), text.size()) % slots;
}

Canary canary_of(const RunOptions& options, const RowName& row) {
  Canary canary;
  canary.scale = options.canary_scale;
  if (!options.canary_slow_by.empty()) {
    canary.slow_by = options.canary_slow_by[canary_slot(row, options.canary_slow_by.size())];
  }
  return canary;
}

Plan one_per_tolerance(Plan plan, Worker& worker) {
  const auto question = [](const PlannedCase& c) {
    return CaseQuestion{.spec = c.spec, .resolve = true, .variants = c.variants};
  };
  const std::vector<CaseAnswer> answers = ask(worker, mapped(plan.cases, question));
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const auto op =
        std::ranges::find(plan.hello.operators, plan.cases[i].spec.op, &OpDescription::name);
    auto& variants = plan.cases[i].variants;
    std::stable_partition(variants.begin(), variants.end(), [&](const std::string& name) {
      return op != plan.hello.operators.end() && name == op->yardstick;
    });
    std::set<double> factors;
    std::erase_if(variants, [&](const std::string& name) {
      return answers.at(i).unsupported.contains(name) ||
             !factors.insert(tolerance_of(plan.hello, plan.cases[i].spec.op, name)).second;
    });
  }
  std::erase_if(plan.cases, [](const PlannedCase& c) { return c.variants.empty(); });
  return plan;
}

}  // namespace moegate
