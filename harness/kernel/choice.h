// SPDX-License-Identifier: Apache-2.0
// Variants that have several configurations and choose one of them for each case, as an engine
// does from a file or by a rule; and the configurations that they could have chosen.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

/// Whether a variant is one configuration of another ("NAME/KEY=VALUE") or of a kernel
/// ("tile/swap_ab/splits=4"). Such a variant runs only where --variant names what is before its
/// first '/', that included, or where `moegate tune` asks for it.
bool is_configuration(const std::string& variant);
/// "NAME/", of a variant that is a configuration.
std::string family_of(const std::string& variant);

/// A configuration as a row: the variant that runs it, and parameters that its case needs for it
/// (a block of rows).
struct Configuration {
  std::string variant;
  std::map<std::string, std::string> params;

  auto operator<=>(const Configuration&) const = default;
};

/// What a variant runs for a case, and how that came about.
struct Choice {
  Configuration runs;
  std::string source;  // "file", "default", "autotuned"
  std::string entry;   // file and entry, in words; empty: there is none
  std::string path;    // all of it, as the result's path says it
  std::string stale;   // "made with triton 3.4.0, here 3.6.0"; empty: it fits, or says nothing
};

/// What a variant that chooses can be asked.
struct Chooser {
  std::string op, variant;
  Backend backend;
  bool elsewhere = false;  // of a file of --module
  /// Throws Error where the lookup fails.
  std::function<Choice(const Case&, const DeviceFacts&)> choose;
  /// What there is to choose from.
  std::function<std::vector<Configuration>(const Case&, const DeviceFacts&)> candidates;
  /// Makes the variant of a configuration that is not registered; empty: all are.
  std::function<Variant(const std::string& configuration)> configured = {};
};

void register_chooser(Chooser chooser);
const std::vector<Chooser>& all_choosers();

/// What a parameter `block` may say instead of a number: the rows of a block (BLOCK_SIZE_M) of the
/// configuration that a variant of --module chooses.
constexpr const char* kShippedBlock = "shipped";
/// These rows, as all variants choose that are of operators `ops`: those of a layer share its
/// aligned rows. Throws Error(usage) where none chooses, one cannot, or two choose otherwise.
std::string shipped_block(const Case& c, const std::vector<std::string>& ops,
                          const DeviceFacts& device);

/// The variant that runs a configuration which was not registered, "NAME/KEY=VALUE". Null where
/// NAME has none.
const Variant* configured_variant(const std::string& op, Backend backend, const std::string& name);

}  // namespace moegate
