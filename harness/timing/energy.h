// SPDX-License-Identifier: Apache-2.0
// From readings of a GPU's energy counter to the energy of a launch (timing/README.md says how).
// Power is the slope between two steps of the counter, and energy is power times the time of a
// launch. Pure; knows neither CUDA nor NVML.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

/// The counter at a moment.
struct EnergyReading {
  double at_s = 0;
  double mj = 0;
};

/// What the counter said while something went on.
struct Power {
  double watts = 0;
  double step_mj = 0;  // the largest between two readings: what one of them may be off by
  double step_s = 0;   // mean time between two steps
  int steps = 0;
};

/// Of the steps seen from `from_s` on: the slope from the first to the last. Absent for fewer than
/// three. Readings are in their order, close to each other in comparison with the steps.
std::optional<Power> power_of(std::span<const EnergyReading> readings, double from_s);

/// One thing done over and over.
struct EnergyBatch {
  double seconds = 0;  // from the first to the end of the last
  double times = 0;
  double busy_s = 0;  // of the GPU for one of them, back to back behind a queue that is full
  Power power;

  double period_s() const { return seconds / times; }
  double each_mj() const { return 1e3 * power.watts * period_s(); }
};

/// A batch of launches, each with what makes it cold, beside a batch of that alone.
struct EnergyPair {
  EnergyBatch launches;
  std::optional<EnergyBatch> flushes;  // absent: launches had nothing before them
};

/// Why the batches do not say what a launch takes; empty where they do. An idle GPU's power is
/// booked as the launch's: one of them may take at most 1.2 times as long as back to back. No mean
/// power may be above the board's limit, whose watts are absent where it is unknown.
std::string energy_fault(std::span<const EnergyPair> pairs, std::optional<double> limit_watts);

/// Whether an instrument is true that says this of some work, and of twice that work; why not, or
/// empty.
std::string proportion_fault(const EnergyBatch& once, const EnergyBatch& twice);

/// The metrics of a launch, means over the pairs:
///   energy_per_launch    mJ  that a launch adds to what goes on without it
///   energy_uncertainty   mJ  half the range of energy_per_launch over the pairs
///   energy_resolution    mJ  a step of the counter, per launch of a batch
///   energy_launches          of all batches
///   energy_update_interval ms  between two steps
///   energy_busy          share  of the time of the idlest batch in which the GPU had work
///   mean_power           W   energy_per_launch over the time that a launch adds; unknown where it
///                            adds none
/// and where there are flushes:
///   energy_with_flush, energy_flush  mJ  of a launch with its flush, and of a flush alone
///   power_with_flush     W   while launches with their flushes go on
std::vector<Metric> energy_metrics(std::span<const EnergyPair> pairs);

}  // namespace moegate
