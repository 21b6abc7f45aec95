// SPDX-License-Identifier: Apache-2.0
// Whether a cold span can be true: against the device's measured ceilings, and against the same
// case warm. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// The least seconds of a cold launch by its compulsory bytes, at `bandwidth` bytes per second.
/// Writes that fit in the cache need not reach memory in time and are left out.
double memory_s(const Cost& cost, int64_t cache_bytes, double bandwidth);
/// The least seconds by its operations, at `rate` per second.
double products_s(const Cost& cost, double rate);

/// Both at the ceilings measured on the device (read_bytes_per_s, and the higher of fp8_flops and
/// bf16_flops, which no case can beat). 0 where no ceiling was measured. The view `roof` of reports
/// has them at the rate of what a case multiplies.
struct Roofline {
  double bytes_s = 0, flops_s = 0;  // seconds
  double floor_s() const { return bytes_s > flops_s ? bytes_s : flops_s; }
};
Roofline roofline(const Cost& cost, const std::map<std::string, double>& ceilings,
                  int64_t cache_bytes);

/// Whether a cold launch was faster than its roofline allows by more than a tenth, which an honest
/// kernel may win over the program that measured the ceilings. False where none was measured.
bool is_impossible(double cold_ns, const Cost& cost, const std::map<std::string, double>& ceilings,
                   int64_t cache_bytes);

/// Whether a cold span is within 2 % of the warm one although the data fits in the cache and is
/// large enough (1 MiB read) for reading it from memory to show.
bool looks_warm(double cold_ns, double warm_ns, const Cost& cost, int64_t cache_bytes);

/// Whether a cold launch read less from DRAM than it must, by the counter that its result has: less
/// than 97 % of the compulsory bytes. False without the counter, and under 1 MiB, where code and
/// page tables are as much as what is missing.
bool came_from_cache(const Result& result, const Cost& cost);

}  // namespace moegate
