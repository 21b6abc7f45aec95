// SPDX-License-Identifier: Apache-2.0
// What both sides of an A/B are to measure, before anything is measured or stored.
#include <algorithm>
#include <iterator>

#include "harness/base/environment.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/night/ab.h"

namespace moegate {
namespace {

RunOptions options_of(const AbOptions& ab, const AbSide& side, const char* role) {
  RunOptions options = ab.run;
  options.worker.program = side.program;
  if (!side.kernels.empty()) options.worker.kernels = side.kernels;
  if (!side.variant.empty()) options.kernel = exactly(side.variant);
  options.worker.variables = side.variables;
  options.label = side.label;
  options.rounds = 0;  // as many as it takes
  options.tags["ab"] = role;
  for (const auto& [name, value] : side.tags) options.tags[name] = value;
  options.canary_slow_by = side.canary_slow_by;
  return options;
}

/// The head's operators, and what only the base has: an operator, a parameter with a default.
std::vector<OpDescription> merged(std::vector<OpDescription> head,
                                  const std::vector<OpDescription>& base) {
  for (const OpDescription& op : base) {
    const auto at = std::ranges::find(head, op.name, &OpDescription::name);
    if (at == head.end()) {
      head.push_back(op);
      continue;
    }
    for (const Param& param : op.params) {
      const bool known =
          std::ranges::find(at->params, param.name, &Param::name) != at->params.end();
      if (!known && !param.default_value.empty()) at->params.push_back(param);
    }
  }
  return head;
}

/// Of two programs; suspects are rows of a plan that was compared when it was made.
Changes changes_of(const AbOptions& options, const std::pair<const Hello&, const Plan&>& base,
                   const std::pair<const Hello&, const Plan&>& head) {
  const bool same = options.base.program.empty() && options.base.kernels.empty();
  if (same || !options.base.variant.empty() || options.suspects) return {};
  const auto home_of_side = [](const AbSide& side) {
    return home_of(side.program.empty() ? "/proc/self/exe" : side.program);
  };
  std::vector<RowName> planned = head.second.rows();
  const std::vector<RowName> also = base.second.rows();
  planned.insert(planned.end(), also.begin(), also.end());
  return changes_between({base.first, home_of_side(options.base), options.base.suites},
                         {head.first, home_of_side(options.head), options.run.suites}, options.run,
                         planned);
}

}  // namespace

PreparedAb prepare_ab(AbOptions options, WorkerSource& source) {
  if (options.run.order_seed == 0) options.run.order_seed = draw_order_seed();
  const InterruptGuard guard;  // before a worker starts: one that dies at once must not kill us
  RunOptions base = options_of(options, options.base, "base");
  RunOptions head = options_of(options, options.head, "head");
  Lanes base_lanes(source, base.worker);
  Lanes head_lanes(source, head.worker, base_lanes.shared_dealer());
  base_lanes.open();
  head_lanes.open();
  KernelFiles base_kernels = loaded_kernels(base.worker, base_lanes);
  KernelFiles head_kernels = loaded_kernels(head.worker, head_lanes);
  Worker &base_worker = base_lanes.seat(0).worker(), &head_worker = head_lanes.seat(0).worker();
  const Hello base_hello = base_worker.hello();
  const Hello head_hello = head_worker.hello();
  Hello both = head_hello;
  both.operators = merged(head_hello.operators, base_hello.operators);
  const std::vector<Case> cases = load_cases(options.run, both);
  const auto known_to = [](const Hello& hello) {
    return [&hello](const Case& c) {
      return std::ranges::find(hello.operators, c.op, &OpDescription::name) !=
             hello.operators.end();
    };
  };
  std::vector<Case> heads, bases_only;
  std::ranges::partition_copy(cases, std::back_inserter(heads), std::back_inserter(bases_only),
                              known_to(head_hello));
  check_cases(heads, head_worker);
  check_cases(bases_only, base_worker);
  Plan base_plan = select_rows(base, cases, base_hello);
  Plan head_plan = select_rows(head, cases, head_hello);
  // Not the base's: what an older program cannot resolve is unsupported there.
  check_on_device(head_plan, head_worker);
  note_timer(base_hello);
  note_timer(head_hello);
  if (InterruptGuard::interrupted()) {
    throw Error(Exit::interrupted, "interrupted before anything was measured");
  }
  Changes changes = changes_of(options, {base_hello, base_plan}, {head_hello, head_plan});
  return {options,
          {std::move(base), std::move(base_lanes), std::move(base_plan), std::move(base_kernels)},
          {std::move(head), std::move(head_lanes), std::move(head_plan), std::move(head_kernels)},
          std::move(changes)};
}

}  // namespace moegate
