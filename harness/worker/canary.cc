// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/canary.h"

#include <chrono>
#include <cmath>

#include "harness/base/error.h"
#include "harness/device/cuda/delay.h"

namespace moegate {
namespace {

void scale_on_host(Tensor& t, float factor) {
  for (int64_t i = 0; i < t.size(); ++i) {
    write_float(t.dtype(), t.data(), i, factor * read_float(t.dtype(), t.data(), i));
  }
}

void scale_outputs(Problem& problem, float factor, bool host, void* stream) {
  for (Tensor* t : problem.tensors()) {
    if (t->role() != Role::output || !is_floating(t->dtype())) continue;
    if (host) {
      scale_on_host(*t, factor);
    } else {
      launch_scale(stream, t->data(), t->dtype(), t->size(), factor);
    }
  }
}

}  // namespace

CanaryVariant::CanaryVariant(const Variant& inner, const Canary& canary, const DeviceFacts& device)
    : canary_(canary), host_(device.backend == Backend::host), variant_(inner) {
  variant_.launch = [launch = inner.launch, c = canary, host = host_, steps = delay_steps_](
                        Problem& problem, const Launch& where) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    launch(problem, where);
    if (c.scale != 1) scale_outputs(problem, static_cast<float>(c.scale), host, where.stream);
    if (!c.delays()) return;
    if (!host) return launch_delay(where.stream, *steps);
    const auto end = Clock::now() + (Clock::now() - start) * c.slow_by;
    while (Clock::now() < end) {
    }
  };
}

void CanaryVariant::calibrate(double span_ns, double sm_mhz) {
  if (host_) return;  // it watches its own launch
  if (!(sm_mhz > 0)) {
    throw Error(Exit::environment, "canary: the SM clock is unknown, so no delay can be set");
  }
  const double cycles = canary_.slow_by * span_ns * sm_mhz / 1000;
  *delay_steps_ = std::llround(cycles / delay_cycles_per_step());
}

}  // namespace moegate
