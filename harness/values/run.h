// SPDX-License-Identifier: Apache-2.0
// A run of the store as values: what it states about itself, and the levels that it measured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "harness/values/device_facts.h"
#include "harness/values/environment_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// Tag of a run that launched on fewer problem sets than usual (--sets): its rows compare with
/// those of such runs only.
constexpr const char* kSetsTag = "sets";

/// Tag of a run whose cases were dealt out to several GPUs, each with a worker at the same time:
/// "0=GPU-… 1=GPU-…", by number. Its rows say in this metric which of them measured them.
constexpr const char* kGpusTag = "gpus";
constexpr const char* kGpuMetric = "gpu";

/// What the uuid of a device begins with that stands for several of one class, on which the shards
/// of a campaign were measured: "several:GPU-1,GPU-2".
constexpr const char* kSeveralDevices = "several:";

/// Everything a run states about itself before the first sample. Each field is listed in
/// result_fields.h, which is all that the store needs.
struct RunInfo {
  int64_t id = 0;        // in its store
  std::string uuid;      // in every store; empty: the store makes one
  std::string campaign;  // uuid of what it is one run of; empty: its own
  int shard = 0;         // of the campaign, from 1; 0: all that there is of it
  int shards = 0;        // that the campaign has; 0: it is no campaign
  std::string label;
  std::string started, finished, status;  // filled in by the store
  DeviceFacts device;
  int protocol = 0;
  std::string task = "measure";  // what its rows are of: worker/worker.h, Task
  std::string timer;
  std::string flush;
  int rounds = 0;
  std::string git_sha;
  bool dirty = false;
  std::string build, host, command;
  std::string program;         // content hash of the program that measured; empty: unknown
  std::string options = "{}";  // JSON
  std::vector<OperatorFacts> operators;
  std::map<std::string, std::string> tags;
};

/// One measured level: a process's judged quantity for a case and variant.
struct Level {
  std::string key, op, suite, section, variant;
  int round = 0;
  Result result;  // without launches, samples, controls
};

/// What holds for every row of a baseline file; rows measured otherwise do not compare.
struct BaselineHeader {
  std::string klass, suite;
  int protocol = 0;
  std::string timer, flush;
  std::string gpu;  // uuid; "-" on a host, whose class says it all
  // What measured it, for a replay; no condition. Empty: unknown, or no commit as it is.
  std::string program, git_sha;
  Judged judged = Judged::none;       // what levels are: span or ratio; none only without rows
  EnvironmentItems environment = {};  // that counts; no condition. Empty: unknown
};

/// Calls what it is given with levels, one after another, each of which lasts until the next.
using EachLevel = std::function<void(const std::function<void(const Level&)>&)>;

/// Of a result's metrics a verdict reads this and the next. What a timer says that enqueuing a
/// launch took the host, in nanoseconds.
constexpr const char* kEnqueueMetric = "enqueue";
/// The smallest batch, in tokens, in which a token's output bits were not those of a smaller one;
/// 0: none of those that were tried. Not there where nothing was asked.
constexpr const char* kInvarianceMetric = "invariance_broken_at";
/// Of such a token: its place in that batch, and the share of its elements that differ.
constexpr const char* kBrokenPlaceMetric = "invariance_broken_place";
constexpr const char* kBrokenShareMetric = "invariance_broken_share";

/// Whether `moegate store merge` made it of the shards of a campaign.
inline bool is_merged(const RunInfo& run) {
  return run.shard == 0 && run.shards > 0;
}
/// Whether two runs, by the uuids of their devices, are known to have measured a row on the
/// same one.
bool same_device(const std::string& a, const std::string& b);
/// Whether less than the whole of its suites was run, so that an absent case means nothing.
bool is_partial(const RunInfo& run);
/// Tags of a run of kernels from elsewhere: their repository, and what was checked out there
/// ("…-dirty": with uncommitted changes).
constexpr const char* kRepositoryTag = "repository";
constexpr const char* kCommitTag = "commit";
/// The commit of what was measured: of its kernels' repository, where they are from elsewhere, else
/// of the program; "…+dirty": with uncommitted changes. Empty: unknown.
std::string measured_commit(const RunInfo& run);
/// Its start, as people are shown it; "unknown" where it is.
std::string short_measured_commit(const RunInfo& run);
/// Of kGpusTag: uuids by number; empty for a run on one device.
std::map<int, std::string> gpus_of(const RunInfo& run);
/// What kGpusTag says of them.
std::string gpus_text(const std::map<int, std::string>& uuids);
/// Of the run's device, or of all of its GPUs: "GPU-…,GPU-…".
std::string uuids_of(const RunInfo& run);
/// Of the device that measured a row, whose kGpuMetric is `gpu`; negative: it has none.
std::string uuid_of(const RunInfo& run, int gpu);
/// "run 3 'nightly'"
std::string describe(const RunInfo& run);

}  // namespace moegate
