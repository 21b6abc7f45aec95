// SPDX-License-Identifier: Apache-2.0
// The least that a cold sample can cost: flush and kernel, back to back.
#pragma once

#include "harness/kernel/kernel.h"

namespace moegate::test {

/// Seconds of the wall clock per flush and launch on a GPU, its launches as graphs. Nothing else is
/// done: no separator, no wait, no record, no look at an output. In a process without CUPTI.
double bare_loop_cuda(Device& device, const Subject& subject, int samples);

}  // namespace moegate::test
