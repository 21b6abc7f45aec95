// SPDX-License-Identifier: Apache-2.0
// Machine code of the kernels in every module that the process loads, from CUPTI's callbacks. No
// CUDA headers, so anything may include it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace moegate {

/// All static: CUPTI has one subscriber per process.
class CuptiCode {
 public:
  /// Watches modules from now on; call before the CUDA context exists. Where CUPTI takes no
  /// subscriber (another tool is one), no kernel is ever known, and timing goes on.
  /// `keep_cubins` keeps a copy of every module for cubins(). Returns whether it watches.
  static bool watch(bool keep_cubins = false) noexcept;
  /// The same, and no stop() ends it.
  static bool watch_for_good() noexcept;
  /// Gives the subscription back.
  static void stop() noexcept;
  /// Hash of a kernel's code by its mangled name, over all modules that have one of that name
  /// (templates in several files); nothing when no module has.
  static std::optional<uint64_t> of(const std::string& kernel);
  /// Modules in the order in which they were loaded, until now; unloaded ones too. The bytes stay
  /// where they are.
  static std::vector<std::span<const uint8_t>> cubins();
};

}  // namespace moegate
