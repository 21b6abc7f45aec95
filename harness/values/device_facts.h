// SPDX-License-Identifier: Apache-2.0
// What a device is, what a launch must do at least, and what describes its data: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace moegate {

enum class Backend { host, cuda };
const char* name_of(Backend b);
void parse_name(const std::string& name, Backend& b);  // throws std::invalid_argument

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

}  // namespace moegate
