// SPDX-License-Identifier: Apache-2.0
// How a file of a device class and its line in the ledger (baseline.h) change together, or not at all: whatever
// kills the process, or fills the disk, in whatever moment, and with other blessings at the same time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/base/files.h"
#include "harness/baseline/baseline.h"

namespace moegate {

/// While it lives, no other process blesses in the ledger's folder. What a blessing that was killed had
/// stated in the ledger is then in place, and what it had not is removed. Throws Error(usage).
class BlessingLock {
 public:
  explicit BlessingLock(const std::filesystem::path& ledger);

 private:
  std::optional<FileLock> folder_, ledger_;
};

/// To be called before files that the ledger states are read: ends what was killed, if anything was.
void finish_blessings(const std::filesystem::path& ledger);

/// Makes `text` the content of `file`, and has the ledger say so: both, or neither where it throws
/// Error(usage). After it was killed, the next blessing or gate makes it both or neither. The caller holds
/// a BlessingLock.
void record_blessing(const std::filesystem::path& ledger, const std::filesystem::path& file,
                     const std::string& text, Blessing blessing);

}  // namespace moegate
