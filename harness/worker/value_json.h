// SPDX-License-Identifier: Apache-2.0
// Measured values as JSON objects. A field that the other side does not name keeps its default; one
// that this side does not know is ignored.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "harness/kernel/controls.h"
#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// The enumerator of a name among `all`. Throws std::invalid_argument for a name that this build
/// does not know.
template <class E>
E named(const std::string& name, std::initializer_list<E> all) {
  for (const E e : all) {
    if (name == name_of(e)) return e;
  }
  throw std::invalid_argument("'" + name + "' is no name that this build knows");
}

inline void parse_name(const std::string& name, Backend& b) {
  b = named(name, {Backend::host, Backend::cuda});
}
inline void parse_name(const std::string& name, Status& s) {
  s = parse_status(name);
}
inline void parse_name(const std::string& name, ControlOutcome& o) {
  o = named(name, {ControlOutcome::rejected, ControlOutcome::accepted, ControlOutcome::unchanged,
                   ControlOutcome::not_applicable});
}

/// Enumerators travel by name: two builds may number them differently.
template <class E>
concept Named = std::is_enum_v<E> && requires(E e) {
  name_of(e);
  parse_name(std::string(), e);
};

template <Named E>
void to_json(nlohmann::json& json, const E& value) {
  json = name_of(value);
}
/// Throws std::invalid_argument for a name that this build does not know.
template <Named E>
void from_json(const nlohmann::json& json, E& value) {
  parse_name(json.get<std::string>(), value);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceFacts, backend, name, klass, uuid, processors,
                                                cache_bytes, memory_bytes, shared_per_block, driver)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fact, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Accuracy, output, ok, why, elements, mismatches,
                                                nonfinite, rel_l2, cosine, scale, max_abs, max_rel,
                                                worst_row, row_p999, worst_index)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SeedError, seed, hash, rel_l2, worst_row, bias)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Control, name, output, outcome, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KernelRow, name, grid, block, cluster, registers,
                                                static_shared, dynamic_shared, ns, gap_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Result, variant, status, why, path, code, accuracy,
                                                seeds, controls, deterministic, timer, tick_ns,
                                                samples, invalid, slow, flags, span_ns, median_ns,
                                                low_ns, high_ns, min_ns, busy_ns, sum_ns, ratio,
                                                ratio_low, ratio_high, sm_mhz, impossible,
                                                suspect_warm, kernels, spans_ns, wall_s)

}  // namespace moegate
