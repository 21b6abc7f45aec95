// SPDX-License-Identifier: Apache-2.0
// What a device is, what a launch must do at least, and what describes its data: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/names.h"

namespace moegate {

enum class Backend { host, cuda };
template <>
inline constexpr std::array kNames<Backend> = {"host", "cuda"};
template <>
inline constexpr const char* kNameKind<Backend> = "backend";

/// "NVIDIA H200" -> "nvidia-h200": a device class that can be a folder.
std::string class_name(const std::string& text);

/// What a device is: facts read once, stored with every run.
struct DeviceFacts {
  Backend backend = Backend::host;
  std::string name;         // "NVIDIA H200", "AMD EPYC ..."
  std::string klass;        // baseline class: "nvidia-h200", "host-amd-epyc-…-avx512-2t"
  std::string uuid;         // "GPU-…"; the host name for the host
  int processors = 0;       // SMs; hardware threads
  int64_t cache_bytes = 0;  // L2; last-level cache
  int64_t memory_bytes = 0;
  int64_t shared_per_block = 0;  // opt-in shared memory per block; 0 on the host
  std::string driver;            // driver and runtime versions; kernel release
  int capability = 0;  // compute capability, 89 for 8.9; 0: a host, or not asked. Not stored
};

/// Compulsory work of one launch: each input read once, each output written once.
struct Cost {
  double flops = 0;
  double read_bytes = 0;
  double write_bytes = 0;
};

/// A named number that describes a case's data, stored with it ("active_experts", 57).
struct Fact {
  std::string name;
  double value;
};

// What an operator's variants are compared with: stated by its author, stored with every run.

/// A variant that others of its operator replace.
struct Before {
  std::string variant;
  std::string after = "*";  // pattern (* and ?) of the variants that are compared with it
};

/// What an operator states for each backend. A variant is compared with the first one whose pattern
/// it matches and that was measured in the same case; a before is never an after.
struct Befores {
  std::vector<Before> host;  // empty: the yardstick
  std::vector<Before> cuda;  // empty: the first variant by name
};

/// An operator as a run on one backend knows it.
struct OperatorFacts {
  std::string name;
  std::string yardstick;       // host: what ratios are to; empty on a GPU
  std::vector<Before> before;  // by preference
};

}  // namespace moegate
