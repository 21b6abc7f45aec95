// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/canary.h"

#include <chrono>
#include <cmath>

#include "harness/base/error.h"
#include "harness/device/cuda/delay.h"

namespace moegate {

struct CanaryVariant::State {
  Variant inner;
  Canary canary;
  bool host;
  int64_t delay_steps = 0;  // GPU: set by calibrate()
};

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
    : state_(new State{inner, canary, device.backend == Backend::host}), variant_(inner) {
  variant_.launch = [state = state_](Problem& problem, const Launch& where) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    state->inner.launch(problem, where);
    const Canary& c = state->canary;
    if (c.scale != 1) {
      scale_outputs(problem, static_cast<float>(c.scale), state->host, where.stream);
    }
    if (!c.delays()) return;
    if (!state->host) return launch_delay(where.stream, state->delay_steps);
    const auto end = Clock::now() + (Clock::now() - start) * c.slow_by;
    while (Clock::now() < end) {
    }
  };
}

void CanaryVariant::calibrate(double span_ns, double sm_mhz) {
  if (state_->host) return;  // it watches its own launch
  if (!(sm_mhz > 0)) {
    throw Error(Exit::environment, "canary: the SM clock is unknown, so no delay can be set");
  }
  const double cycles = state_->canary.slow_by * span_ns * sm_mhz / 1000;
  state_->delay_steps = std::llround(cycles / delay_cycles_per_step());
}

}  // namespace moegate
