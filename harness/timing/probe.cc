// SPDX-License-Identifier: Apache-2.0
// Probes that are the same on both backends, and the choice between them.
#include "harness/timing/probe.h"

#include <cmath>

#include "harness/base/stats.h"

namespace moegate {
namespace {

constexpr int kWarmUp = 20;
constexpr int kRounds = 10, kPerRound = 20;  // A/A: 200 samples a side, in turns
constexpr double kQuietRatio = 0.01;         // regressions of 1 % are to be detected

void add_valid(Session& session, std::vector<double>& spans, int& invalid) {
  for (const Sample& s : session.collect()) {
    if (s.flags == 0) {
      spans.push_back(s.span_ns);
    } else {
      ++invalid;
    }
  }
}

RulerLevel level_of(const std::vector<double>& spans, int invalid) {
  RulerLevel level{.valid = static_cast<int>(spans.size()), .invalid = invalid};
  if (spans.empty()) return level;
  level.ns = trimmed_mean(spans);
  level.spread = stddev(spans) / level.ns;
  return level;
}

void run_samples(Session& session, int samples) {
  for (int i = 0; i < samples; ++i) session.enqueue();
}

}  // namespace

RulerProblem::RulerProblem(Device& device, int64_t bytes) : Problem(device) {
  buffer_ = &make_tensor("buffer", Role::weight, DType::u8, {bytes});
  buffer_->fill(1);
  device.synchronize();
}

Cost RulerProblem::cost() const {
  return {.flops = 0, .read_bytes = static_cast<double>(buffer_->bytes()), .write_bytes = 0};
}

Variant ruler_variant(const std::string& name, Backend backend,
                      void (*launch)(const RulerProblem&, const Launch&)) {
  Variant variant;
  variant.op = "ruler";
  variant.name = name;
  variant.backend = backend;
  variant.launch = [launch](Problem& problem, const Launch& where) {
    launch(static_cast<const RulerProblem&>(problem), where);
  };
  return variant;
}

RulerLevel sample_ruler(Timer& timer, const Subject& subject, const Conditions& conditions,
                        int samples) {
  const std::unique_ptr<Session> session = timer.open(subject, nullptr, conditions);
  run_samples(*session, kWarmUp);
  session->collect();
  run_samples(*session, samples);
  std::vector<double> spans;
  int invalid = 0;
  add_valid(*session, spans, invalid);
  return level_of(spans, invalid);
}

Probe probe_noise(Timer& timer, const Subject& subject, const Conditions& conditions) {
  const std::unique_ptr<Session> session_a = timer.open(subject, nullptr, conditions);
  const std::unique_ptr<Session> session_b = timer.open(subject, nullptr, conditions);
  for (Session* session : {session_a.get(), session_b.get()}) {
    run_samples(*session, kWarmUp);
    session->collect();
  }
  std::vector<double> a, b;
  int invalid = 0;
  for (int round = 0; round < kRounds; ++round) {
    const bool a_first = round % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      Session& session = is_a ? *session_a : *session_b;
      run_samples(session, kPerRound);
      add_valid(session, is_a ? a : b, invalid);
    }
  }
  Probe probe{.name = "A/A ratio", .value = "", .unit = "", .note = ""};
  if (a.empty() || b.empty()) {
    probe.value = "unavailable";
    probe.note = "no valid sample";
    probe.ok = false;
    return probe;
  }
  const double ratio = trimmed_mean(a) / trimmed_mean(b);
  probe.value = fmt::format("{:.4f}", ratio);
  probe.ok = std::abs(ratio - 1) <= kQuietRatio;
  probe.note = fmt::format(
      "same launch twice, {} + {} samples in turns; spread {:.1f} % and {:.1f} %, "
      "{} invalid",
      a.size(), b.size(), 100 * stddev(a) / mean(a), 100 * stddev(b) / mean(b), invalid);
  return probe;
}

std::vector<Probe> probe_device(Device& device) {
  return device.facts().backend == Backend::cuda ? probe_cuda(device) : probe_host(device);
}

std::map<std::string, double> measure_ceilings(Device& device) {
  return device.facts().backend == Backend::cuda ? measure_cuda_ceilings(device)
                                                 : measure_host_ceilings(device);
}

}  // namespace moegate
