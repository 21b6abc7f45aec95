// SPDX-License-Identifier: Apache-2.0
// What `moegate doctor` finds out beyond the device itself: whether a worker may look at hardware
// counters, and which change the gate would see here; and the doctor for those who measure next.
#pragma once

#include <string>
#include <vector>

#include "harness/base/subprocess.h"
#include "harness/timing/probe.h"
#include "harness/worker/worker.h"

namespace moegate {

/// Whether a worker for each kind of profiler comes up, one after the other: CUPTI's share no
/// process with its timer. Call it before this process opens the device.
std::vector<Probe> probe_profilers(const std::string& device, WorkerSource& source);

/// The Python that would load a file of kernels.
Probe probe_python();

/// The smallest slow-down that the gate would fail with probability 0.9 if rounds were as quiet as
/// the turns of the A/A.
Probe visible_change(const Health& health, Backend backend);

/// `moegate doctor` on the first of the devices; its ceilings are then in the store. In a process
/// of its own, because opening a device pins the one that does. Its exit is 0 for a machine whose
/// timer is not the default one, too: the rows say so.
Finished run_doctor(const std::string& devices, const std::string& db);

}  // namespace moegate
