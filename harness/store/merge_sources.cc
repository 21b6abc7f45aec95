// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/base/text.h"

namespace moegate {

Source::Source(const std::string& path) : store(Store::open(path, Store::Mode::read)) {
  constexpr int64_t kQuicklyRead = int64_t{1} << 30;  // bytes
  const Transaction reading(db(), "BEGIN");
  store.check_intact(kQuicklyRead);
  Statement q(db(), "SELECT run_id FROM run ORDER BY started, uuid");
  while (q.step()) runs.push_back(store.run_info(q.integer(0)));
}

std::string Source::who(const RunInfo& run) {
  const std::string shard =
      run.shard == 0 ? "" : fmt::format(" (shard {} of {})", run.shard, run.shards);
  return fmt::format("{}: {}{}", db().path(), describe(run), shard);
}

std::vector<Shard> shards_of(Source& in, const RunInfo& run) {
  std::vector<Shard> shards;
  const auto add = [&](const Statement& q) {
    shards.push_back({static_cast<int>(q.integer(0)), q.integer(1), q.text(2), q.text(3), q.text(4),
                      q.text(5), q.text(6), q.text(7), q.text(8)});
  };
  Statement q(
      in.db(),
      run.shard > 0
          ? "SELECT shard, device_id, uuid, label, started, finished, host, command, "
            "(SELECT json_group_object(name, value) FROM (SELECT name, value FROM tag WHERE "
            "run_id = ?1 ORDER BY name)) FROM run WHERE run_id = ?1"
          : "SELECT shard, device_id, uuid, label, started, finished, host, command, tags "
            "FROM shard WHERE run_id = ?1 ORDER BY shard");
  q.bind(run.id);
  while (q.step()) add(q);
  return shards;
}

Sources open_sources(const std::vector<std::string>& paths, const std::string& out,
                     std::vector<std::string>& notes) {
  Sources sources;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::equivalent(path, out, ignored)) {
      usage_error("merge: {} is both what is merged and where to; name another OUT", path);
    }
    auto source = is_empty_store(path) ? nullptr : std::make_unique<Source>(path);
    if (source && !source->runs.empty()) {
      sources.push_back(std::move(source));
    } else {
      notes.push_back(
          fmt::format("{} holds no run, and is left out: what was to write it ended "
                      "before its first row",
                      path));
    }
  }
  std::ranges::stable_sort(sources, {}, [](const auto& source) {
    return std::pair(source->runs[0].started, source->runs[0].uuid);
  });
  return sources;
}

namespace {

/// Which runs are merged.
class Choice {
 public:
  Choice(Store& out, const MergeOptions& options) : options_(options) {
    Statement q(out.database(), "SELECT protocol, run_id FROM run ORDER BY run_id LIMIT 1");
    if (!q.step()) return;
    protocol_ = q.integer(0);
    whose_ = fmt::format("run {} of {}", q.integer(1), out.database().path());
    Statement shards(out.database(),
                     "SELECT campaign, s.shard FROM shard s JOIN run USING (run_id)");
    while (shards.step()) finished_.emplace(shards.text(0), shards.integer(1));
  }
  void choose(Sources& sources, std::vector<std::string>& notes);

 private:
  bool takes(Source& in, const RunInfo& run, std::vector<std::string>& notes);

  const MergeOptions options_;
  int64_t protocol_ = 0;  // of all runs
  std::string whose_;     // that it is known from; empty: it is not known
  std::set<std::pair<std::string, int64_t>> finished_;  // campaign and shard
};

void Choice::choose(Sources& sources, std::vector<std::string>& notes) {
  for (const auto& in : sources) {
    for (const RunInfo& run : in->runs) {
      if (run.shard > 0 && run.status == "complete") finished_.emplace(run.campaign, run.shard);
      if (!is_merged(run)) continue;
      for (const Shard& shard : shards_of(*in, run)) finished_.emplace(run.campaign, shard.shard);
    }
  }
  size_t chosen = 0;
  for (const auto& in : sources) {
    std::erase_if(in->runs, [&](const RunInfo& run) { return !takes(*in, run, notes); });
    chosen += in->runs.size();
  }
  if (chosen == 0) throw Error(Exit::coverage, "merge: no finished run in any of these stores");
}

bool Choice::takes(Source& in, const RunInfo& run, std::vector<std::string>& notes) {
  const std::string who = in.who(run);
  if (run.status != "complete" && !is_merged(run)) {
    const bool lost = run.task != "measure" || run.tags.contains("ab");
    const std::string remedy = lost ? ""
                                    : fmt::format("; `moegate run --resume {} --db {}` finishes it",
                                                  run.id, shell_word(in.db().path()));
    if (run.shard > 0 && finished_.contains({run.campaign, run.shard})) {
      notes.push_back(fmt::format("{} is {}, and left out: it was measured anew", who, run.status));
    } else if (options_.leave_unfinished) {
      notes.push_back(fmt::format("{} is {}, and left out{}", who, run.status, remedy));
    } else {
      usage_error("{} is {}{}; --leave-unfinished merges without it", who, run.status, remedy);
    }
    return false;
  }
  if (whose_.empty()) {
    protocol_ = run.protocol;
    whose_ = who;
  }
  if (run.protocol == protocol_) return true;
  usage_error(
      "{} is of protocol {}, {} of {}: such results are never compared; merge it into a store of "
      "its own",
      who, run.protocol, whose_, protocol_);
}

}  // namespace

void choose_runs(Store& out, const MergeOptions& options, Sources& sources,
                 std::vector<std::string>& notes) {
  Choice(out, options).choose(sources, notes);
}

}  // namespace moegate
