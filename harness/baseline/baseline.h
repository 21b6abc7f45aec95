// SPDX-License-Identifier: Apache-2.0
// Baseline files: what a device class is expected to deliver, as sorted text that diffs and merges
// well in review, and the ledger of who blessed what and why. Two lines per row, a constant key
// line and an indented value line: edits of neighbouring rows merge.
//
//   #moegate-baseline 1
//   #class nvidia-h200  suite nightly  protocol 1  timer cupti  flush read  gpu GPU-3f  judged span
//   topk_sort/experts=128,tokens=8 chain3
//   <TAB>span_us=5.123 sd=0.12% n=3 error=1.2e-06 det=1 by=B0001
//
// A file without `judged` is of an older program, which judged ratios where there was no gpu (-).
// Below the header each item of a known environment has a line, `#environment ["package","triton",
// "3.6.0","<digest>"]` without the blanks.
// Where known, the second line goes on with `program <hash>  commit <sha>` and a row with
// `anchor=<level> code=<hash> out=<hash>`, on a host with `yardstick=<variant>@<hash>`, too;
// `time=<us>`, too; then `tail=<mean/level>`. `inv=1`: a token's bits did not depend on its batch.
// Outputs of floats have `excess=<e>
// mis=<all>,<row>,<column> rows=<rms>,<largest> cols=<rms>,<largest>` (values/rounding.h).
// `retired=1` marks a row that left, as it last was.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/evidence.h"
#include "harness/values/rounding.h"
#include "harness/values/run.h"

namespace moegate {

struct BaselineRow : RowFacts {
  double level = 0;    // microseconds of span; on a host the ratio to the yardstick
  double sd = 0;       // between processes, as a share
  int n = 0;           // processes
  std::string by;      // id of the blessing
  double enqueue = 0;  // microseconds that the slowest process took to enqueue a launch; 0: unknown
  double time = 0;     // of a ratio: microseconds of span of its slowest process; 0: unknown
};

struct Baseline {
  BaselineHeader header;
  using Rows = std::map<std::pair<std::string, std::string>, BaselineRow, NaturalLess>;

  Rows rows;     // by key, variant
  Rows retired;  // left by a blessing, as they last were: what comes back is judged against it

  bool ratios() const { return header.judged == Judged::ratio; }
};

/// What it says of every row.
Sides collect(const Baseline& baseline);
/// The rows of one suite that are fit for a baseline, as its own by `by`, and what counts of the
/// environment that they were measured in.
Baseline to_baseline(const RunInfo& run, const std::string& suite, const Sides& sides,
                     const std::string& by, EnvironmentItems environment = {});

/// Throws Error(usage) naming file and line for anything that it does not know.
Baseline read_baseline(const std::filesystem::path& path);
std::string format_baseline(const Baseline& baseline);
/// Replaces the file as a whole. Throws Error(usage) when the folder is not writable.
void write_baseline(const std::filesystem::path& path, const Baseline& baseline);

struct BaselineChange {
  std::string key, variant;
  std::string what;  // "5.123 -> 4.9 us (-4.4 %)", "added", "removed", "no longer deterministic"
};

/// `now` with the rows of `before` that did not move: a row is rewritten only when its level moved
/// by more than max(sd / 3, 0.5 %), its error by more than a quarter, or another field changed, so
/// that a review sees only what matters. Different conditions rewrite every row. A row's anchor
/// stays, or becomes its level where that is faster. A row that leaves is kept as retired, with its
/// anchor, which it has again when it comes back.
Baseline settle(const Baseline& before, Baseline now, std::vector<BaselineChange>& changes);

/// Which condition they do not share: "timer is 'cupti', the run's is 'event'". Empty when a level
/// of one may replace the other's. Two GPUs of a class differ by more than a row may creep.
std::string other_conditions(const BaselineHeader& before, const BaselineHeader& now);

/// One line of baselines/blessings.tsv. `kind` is record, epoch, accept_regression, ratchet or
/// retire; `program` is the hash of the one that measured, empty for unknown; `sha256` is the
/// blessed file's, empty in lines from before it was recorded. A line ends with a hash of all
/// before it.
struct Blessing {
  std::string id, date, kind, author, klass, suite, run, git_sha, reason, program, sha256;
};

/// None of a file that is not there. Throws Error(usage) naming file and line of a broken one.
std::vector<Blessing> read_ledger(const std::filesystem::path& ledger);

/// Throws Error(usage) unless the file is what its class and suite's last line of the ledger says
/// was blessed, which a line without hash never says. So of any file that
/// is blessed: class and suite are those that its lines of the ledger name.
void check_recorded(const std::filesystem::path& path, const std::string& klass,
                    const std::string& suite, const std::filesystem::path& ledger);

/// What a blessing does: record the first file or new rows only, start an epoch (other conditions),
/// accept_regression (a row is slower by `fail_at` or more), retire (rows leave, none changes),
/// else ratchet. `now` is settled; its rows by `id` are those that changed.
std::string blessing_kind(const Baseline& before, const Baseline& now, const std::string& id,
                          double fail_at);

/// The next line's: B0001, B0002, ... Throws Error(usage) for a broken ledger.
std::string next_blessing(const std::filesystem::path& ledger);
void append_blessing(const std::filesystem::path& ledger, const Blessing& blessing);

// How a file of a device class and its line in the ledger change together, or not at all: whatever
// kills the process or fills the disk in whatever moment, and with other blessings meanwhile.

/// While it lives, no other process blesses in the ledger's folder. What a blessing that was killed
/// had stated in the ledger is then in place, and what it had not is removed. Throws Error(usage).
class BlessingLock {
 public:
  explicit BlessingLock(const std::filesystem::path& ledger);

 private:
  std::optional<FileLock> folder_, ledger_;
};

/// Before files that the ledger states are read: ends what was killed, if anything was.
void finish_blessings(const std::filesystem::path& ledger);

/// Makes `text` the content of `file`, and has the ledger say so, with the date and the hash: both,
/// or neither where it throws Error(usage). After it was killed, the next blessing or gate makes it
/// both or neither. The caller holds a BlessingLock.
void record_blessing(const std::filesystem::path& ledger, const std::filesystem::path& file,
                     const std::string& text, Blessing blessing);

}  // namespace moegate
