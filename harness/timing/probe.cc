// SPDX-License-Identifier: Apache-2.0
// Probes that are the same on both backends, and the choice between them.
#include "harness/timing/probe.h"

#include <algorithm>
#include <cmath>

#include "harness/base/stats.h"
#include "harness/device/nvml.h"

namespace moegate {
namespace {

constexpr int kWarmUp = 20;
constexpr size_t kRounds = 10;  // A/A: 200 samples a side, in turns
constexpr int kPerRound = 20;

void add_valid(Session& session, std::vector<double>& spans, int& invalid) {
  for (const Sample& s : session.collect()) {
    if (s.flags == 0) {
      spans.push_back(s.span_ns);
    } else {
      ++invalid;
    }
  }
}

std::vector<double> all_of(const std::vector<std::vector<double>>& turns) {
  std::vector<double> all;
  for (const std::vector<double>& turn : turns) all.insert(all.end(), turn.begin(), turn.end());
  return all;
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

Quiet quiet_of(Backend backend) {
  // Of a GPU: an H200 shows 1.0001, 5 % and none. Of a host: threads share cores, and the gate's margin
  // is ten times as wide.
  if (backend == Backend::cuda) return {.ratio = 0.01, .spread = 0.2, .invalid = 0.05};
  return {.ratio = 0.10, .spread = 1.0, .invalid = 0.5};
}

Probe level_probe(const std::string& name, const RulerLevel& level, const std::string& timer,
                  const Quiet& quiet) {
  const int all = level.valid + level.invalid;
  return {
      .name = name,
      .value = fmt::format("{:.2f}", level.ns * 1e-3),
      .unit = "us",
      .note =
          fmt::format("{}, {} samples, {} invalid, spread {:.1f} % (good: below {:.0f} %)", timer,
                      level.valid, level.invalid, 100 * level.spread, 100 * quiet.spread),
      .ok = level.valid > 0 && level.invalid <= quiet.invalid * all && level.spread < quiet.spread};
}

Turns take_turns(Timer& timer, const Subject& subject, const Conditions& conditions) {
  const std::unique_ptr<Session> session_a = timer.open(subject, nullptr, conditions);
  const std::unique_ptr<Session> session_b = timer.open(subject, nullptr, conditions);
  for (Session* session : {session_a.get(), session_b.get()}) {
    run_samples(*session, kWarmUp);
    session->collect();
  }
  Turns turns;
  turns.a.resize(kRounds);
  turns.b.resize(kRounds);
  for (size_t round = 0; round < kRounds; ++round) {
    const bool a_first = round % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      Session& session = is_a ? *session_a : *session_b;
      run_samples(session, kPerRound);
      add_valid(session, is_a ? turns.a[round] : turns.b[round], turns.invalid);
    }
  }
  return turns;
}

void add_noise(const Turns& turns, double tick_ns, const Quiet& quiet, Health& health) {
  const std::vector<double> a = all_of(turns.a), b = all_of(turns.b);
  std::vector<double> ratios;
  for (size_t turn = 0; turn < turns.a.size(); ++turn) {
    if (turns.a[turn].empty() || turns.b[turn].empty()) continue;
    ratios.push_back(trimmed_mean(turns.a[turn]) / trimmed_mean(turns.b[turn]));
  }
  if (ratios.size() < 2) {
    health.probes.push_back(
        {.name = "A/A ratio", .value = "unavailable", .note = "no valid sample", .ok = false});
    return;
  }
  for (const double ratio : ratios) health.log_ratios.push_back(std::log(ratio));
  health.tick = tick_ns / trimmed_mean(b);
  const double ratio = trimmed_mean(a) / trimmed_mean(b);
  const Interval interval = geometric_mean_interval(ratios);
  const double reach = 0.5 * std::log(interval.high / interval.low);
  const auto valid = static_cast<double>(a.size() + b.size());
  health.quiet = std::abs(ratio - 1) <= quiet.ratio && reach <= 3 * quiet.ratio &&
                 turns.invalid <= quiet.invalid * (valid + turns.invalid);
  health.probes.push_back(
      {.name = "A/A ratio",
       .value = fmt::format("{:.4f}", ratio),
       .note =
           fmt::format("same launch twice, {} + {} samples in turns: known to {:.2g} % (good: 1 "
                       "within {:.0f} %, known to {:.0f} %); spread {:.1f} % and {:.1f} %, {} "
                       "invalid",
                       a.size(), b.size(), 100 * reach, 100 * quiet.ratio, 300 * quiet.ratio,
                       100 * stddev(a) / mean(a), 100 * stddev(b) / mean(b), turns.invalid),
       .ok = health.quiet});
}

std::optional<std::string> clock_limit(const Device& device) {
  if (device.facts().backend == Backend::host) return std::nullopt;
  const GpuState state = read_gpu_state(device.facts().uuid);
  if (!state.why_none.empty()) return std::nullopt;
  return throttle_text(state);
}

Probe limits_probe(std::span<const ClockLimit> limits) {
  Probe probe{.name = "clock held down by", .value = "nothing"};
  std::string looked;
  for (const ClockLimit& limit : limits) {
    looked += (looked.empty() ? "looked at " : ", ") + limit.when;
    if (limit.what.empty()) continue;
    probe.value = probe.value == "nothing" ? "" : probe.value + "; ";
    probe.value += fmt::format("{} ({})", limit.what, limit.when);
    probe.ok = probe.ok && limit.when == kBehindCeilings;
  }
  probe.note = looked;
  return probe;
}

Health probe_device(Device& device) {
  return device.facts().backend == Backend::cuda ? probe_cuda(device) : probe_host(device);
}

std::map<std::string, double> measure_ceilings(Device& device) {
  return device.facts().backend == Backend::cuda ? measure_cuda_ceilings(device)
                                                 : measure_host_ceilings(device);
}

}  // namespace moegate
