// SPDX-License-Identifier: Apache-2.0
// How a launch is measured: what the caches hold, how they are made cold, how it is launched. Every
// name that a suite, a flag or the store spells is here.
#pragma once

#include "harness/values/case.h"
#include "harness/values/device_facts.h"

namespace moegate {

/// What the caches hold before a launch (suite parameter `cache`).
enum class Cache { cold, warm, cold_weights };
/// How the GPU's L2 is made cold: by reading (clean lines), by writing (dirty lines), not at all.
enum class Flush { read, write, none };
template <>
inline constexpr std::array kNames<Flush> = {"read", "write", "none"};
/// How the host launches (suite parameter `launch`); the host device knows only `stream`.
enum class LaunchMode { stream, graph };

/// Stored with every result; series never mix them.
struct Conditions {
  Cache cache = Cache::cold;
  Flush flush = Flush::read;
  LaunchMode launch = LaunchMode::stream;
  double flush_factor = 2;  // flushed bytes over cache size (beyond 2 nothing gets colder)
  int sets = 0;             // problem sets to launch on in turn, at most; 0: all that are built
};

/// The conditions that a case asks for. Throw Error(usage).
inline Cache cache_of(const Case& c) {
  return static_cast<Cache>(c.get_choice("cache", {"cold", "warm", "cold-weights"}));
}
inline LaunchMode launch_of(const Case& c) {
  return static_cast<LaunchMode>(c.get_choice("launch", {"stream", "graph"}));
}

}  // namespace moegate
