// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/setting.h"

#include <unistd.h>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "harness/campaign/git.h"
#include "harness/campaign/program.h"
#include "harness/worker/protocol.h"

namespace moegate {

RunInfo describe(const RunOptions& options, const Lanes& lanes, const Hello& hello,
                 const KernelFiles& kernels) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  RunInfo info;
  info.label = options.label;
  if (!options.campaign.empty()) {
    info.campaign = options.campaign;
    info.shard = options.shard + 1;
    info.shards = options.shards;
  }
  info.device = hello.device;
  info.protocol = kProtocol;
  info.task = name_of(options.worker.task);
  info.timer = hello.timer;
  const bool host = hello.device.backend == Backend::host;  // it flushes its operands' cache lines
  info.flush = host ? "lines" : name_of(options.worker.conditions.flush);
  info.rounds = options.rounds;
  info.git_sha = hello.git_sha;
  info.dirty = hello.dirty;
  info.build = hello.build;
  info.program = program_hash(
      options.worker.program.empty() ? own_program() : options.worker.program, kernels);
  info.host = name;
  info.command = options.command;
  info.options = options.to_json();
  for (const OpDescription& op : hello.operators) {
    info.operators.push_back(facts_of(op, hello.device.backend));
  }
  info.tags = options.tags;
  if (options.worker.conditions.sets > 0)
    info.tags[kSetsTag] = std::to_string(options.worker.conditions.sets);
  if (lanes.several()) info.tags[kGpusTag] = gpus_text(lanes.uuids());
  if (!options.worker.kernels.empty()) {
    info.tags.merge(repository_tags(options.worker.kernels[0]));  // what is there already stays
  }
  return info;
}

void use_named_kernels(RunOptions& stored, const std::vector<std::string>& named,
                       const std::string& whose) {
  std::vector<std::string>& kernels = stored.worker.kernels;
  if (kernels.size() == named.size()) {
    kernels = named;
    return;
  }
  std::string flags;
  for (const std::string& file : kernels) flags += " --module " + shell_word(one_line(file));
  if (flags.empty()) usage_error("{} has no kernels from elsewhere; leave out --module", whose);
  usage_error(
      "{} has kernels from elsewhere, and what a store names is not loaded; name all of them, if "
      "you "
      "trust them:{}",
      whose, flags);
}

void check_same_setting(const RunInfo& before, const RunInfo& now) {
  const auto same = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) {
      usage_error("--resume {}: its {} is '{}', this one is '{}'; start a new run", before.id, what,
                  a, b);
    }
  };
  same("device", uuids_of(before), uuids_of(now));
  same("timer", before.timer, now.timer);
  same("commit", before.git_sha, now.git_sha);
}

}  // namespace moegate
