// SPDX-License-Identifier: Apache-2.0
// What a program's kernels take of an SM: listed by `list`, checked by `gate`, made a baseline by
// `bless`; and who blesses.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/commands/cli.h"

namespace moegate {

struct ResourcesCommand {
  std::optional<std::string> program;
  std::vector<std::string> modules;
  std::string klass = "nvidia-h200", variant, reason;
  std::string db;
  std::vector<std::string> runs;  // whose launches give shapes
  std::optional<std::string> baselines;
  Format format = Format::text;

  std::filesystem::path folder() const;
  std::filesystem::path file() const;
  int arch() const;
  /// What was typed of a store, of its runs (several: "3,4") and of a folder of baselines.
  void take(const std::set<std::string>& given, const std::string& store, const std::string& run,
            const std::optional<std::string>& typed);
};

Flag class_flag(ResourcesCommand& command);

/// Prints a row for each kernel. Each returns the exit code; throw Error(usage) for a class of
/// devices that is not known. Of files of Python `gate` and `bless` take what `runs` loaded.
int list_resources(const ResourcesCommand& command);
/// Compares with CLASS/resources.tsv: what is worse is exit 10, what else changed 13.
int check_resources(const ResourcesCommand& command);
/// Writes CLASS/resources.tsv and the ledger.
int bless_resources_of(const ResourcesCommand& command);

/// Whose blessing goes into the ledger: who git says one is, else who the system says.
std::string author();

}  // namespace moegate
