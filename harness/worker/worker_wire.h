// SPDX-License-Identifier: Apache-2.0
// What the runner and a worker say to each other beside results: the two ends are worker.cc and
// cmd_worker.cc.
#pragma once

#include "harness/worker/wire.h"
#include "harness/worker/worker.h"

namespace moegate {

/// The child's ends of the pipes; 0 to 2 stay what they are, so that a kernel may print.
constexpr int kRequests = 3, kReplies = 4;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Case, suite, section, op, params, defaults)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Canary, slow_by, scale)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Sampling, min_samples, max_samples, precision,
                                                budget_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerOptions, device, tiles, timer, task, flush,
                                                flush_factor, sampling)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Param, name, default_value, help)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(OpDescription, name, help, params, yardstick)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(VariantDescription, op, name, backend, language,
                                                help)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Hello, device, timer, timer_note, operators,
                                                variants, git_sha, build, dirty)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CaseQuestion, spec, resolve, variants)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CaseAnswer, error, unsupported)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Request, spec, variant, canary)

}  // namespace moegate
