// SPDX-License-Identifier: Apache-2.0
// Whether a cold span can be true: against the device's measured ceilings, and against the same
// case warm. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/values/device_facts.h"

namespace moegate {

/// The least time of a cold launch: its compulsory bytes and operations at the ceilings measured on
/// the device (read_bytes_per_s, fp8_flops, bf16_flops). Writes that fit in the cache need not
/// reach memory in time and are left out. 0 where no ceiling was measured. reports/roofline.sql has
/// the same.
struct Roofline {
  double bytes_s = 0, flops_s = 0;  // seconds
  double floor_s() const { return bytes_s > flops_s ? bytes_s : flops_s; }
};
Roofline roofline(const Cost& cost, const std::map<std::string, double>& ceilings,
                  int64_t cache_bytes);

/// Whether a cold launch was faster than its roofline allows. False where no ceiling was measured.
bool is_impossible(double cold_ns, const Cost& cost, const std::map<std::string, double>& ceilings,
                   int64_t cache_bytes);

/// Whether a cold span is within 2 % of the warm one although the data fits in the cache and is
/// large enough (1 MiB read) for reading it from memory to show.
bool looks_warm(double cold_ns, double warm_ns, const Cost& cost, int64_t cache_bytes);

}  // namespace moegate
