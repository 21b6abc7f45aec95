// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/planning.h"

#include "harness/base/notes.h"
#include "harness/campaign/run_options.h"
#include "harness/device/open.h"
#include "harness/kernel/registry.h"
#include "harness/plugin/plugin.h"

namespace moegate {

Planner planner_of(RunOptions options) {
  options.worker.task = Task::verify;  // a plan needs no timer
  // Those of one run are alike.
  const std::string device = devices_of(options.worker.device)[0];
  options.worker.device = device;
  std::string why_none;
  const bool means_gpu = device != "auto" && cuda_ordinal(device) >= 0;
  Planner planner;
  planner.elsewhere = means_gpu && cuda_devices(&why_none).empty();
  if (planner.elsewhere) {
    say("planned without a GPU, by what this program has for one: {}\n", why_none);
    options.worker.device = "host";
  }
  planner.worker = worker_processes().start(options.worker);
  planner.hello = planner.worker->hello();
  if (!planner.elsewhere) return planner;
  planner.hello.device = {};
  planner.hello.device.backend = Backend::cuda;
  with_kernels(options.worker.modules, [&](const Registry& registry) {
    planner.hello.operators = describe_operators(registry, Backend::cuda);
    planner.hello.variants = describe_variants(registry, Backend::cuda);
  });
  return planner;
}

Plan plan_by(const Planner& planner, const RunOptions& options) {
  if (!planner.elsewhere) return make_plan(options, *planner.worker);
  std::vector<Case> cases = load_cases(options, planner.hello);
  check_cases(cases, *planner.worker);
  return select_rows(options, std::move(cases), planner.hello);
}

}  // namespace moegate
