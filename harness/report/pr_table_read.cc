// SPDX-License-Identifier: Apache-2.0
// What the tables of a pull request are made of, from the store.
#include "harness/base/error.h"
#include "harness/base/stats.h"
#include "harness/report/pr_table.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

/// The parameters of a key but the tokens: "op/experts=256,tokens=8,topk=8" -> "experts=256
/// topk=8".
std::string config_of(const std::string& key) {
  std::string config;
  for (size_t start = key.find('/'); start != std::string::npos;) {
    const size_t end = key.find(',', ++start);
    const std::string param = key.substr(start, end == std::string::npos ? end : end - start);
    if (!param.empty() && !param.starts_with("tokens="))
      config += (config.empty() ? "" : " ") + param;
    start = end;
  }
  return config;
}

void read_cases(Store& store, int64_t run, std::map<std::string, PrCase>& cases) {
  Statement q(
      store.database(),
      "SELECT key, section, op, params ->> 'tokens' AS tokens, flops, read_bytes, write_bytes "
      "FROM run_case JOIN bench_case USING (case_id) WHERE run_id = ?1");
  q.bind(run);
  const Columns c(q);
  while (q.step()) {
    const std::string key = c.text("key");
    // SQLite reads the number at the start of a text.
    cases[key] = {.model = c.text("section"),
                  .op = c.text("op"),
                  .config = config_of(key),
                  .tokens = c.is_null("tokens") ? -1 : c.integer("tokens"),
                  .cost = {.flops = c.real("flops"),
                           .read_bytes = c.real("read_bytes"),
                           .write_bytes = c.real("write_bytes")}};
  }
}

struct OneSide {
  Sides sides;
  SpansUs us;
};

/// `only`: the one variant that counts; `shown`: what it is called. Both empty: all, as they are.
OneSide read_side(Store& store, const RunInfo& run, const std::string& only,
                  const std::string& shown) {
  const std::vector<Level> levels = store.levels(run.id);
  OneSide side;
  const auto called = [&](const CaseId& id) {
    return CaseId{id.suite, id.key, shown.empty() ? id.variant : shown};
  };
  for (const auto& [id, s] : collect(levels)) {
    if (only.empty() || id.variant == only) side.sides[called(id)] = s;
  }
  std::map<CaseId, std::vector<double>, CaseIdLess> spans;
  for (const Level& l : levels) {
    const CaseId id = called({l.suite, l.key, l.variant});
    if (!only.empty() && l.variant != only) continue;
    // The spans of the processes that are behind the level.
    if (side.sides[id].by_round.count(l.round) > 0) spans[id].push_back(l.result.span_ns / 1000);
  }
  for (const auto& [id, us] : spans) side.us[id] = geometric_mean(us);
  if (!only.empty() && side.sides.empty()) {
    usage_error("{} holds no result of variant '{}'; `moegate list kernels` shows the variants",
                describe(run), only);
  }
  return side;
}

}  // namespace

PrTables read_pr_tables(Store& store, int64_t base, int64_t head,
                        const std::optional<VariantPair>& pair) {
  PrTables tables;
  tables.base = store.run_info(base);
  tables.head = store.run_info(head);
  if (tables.base.device.uuid != tables.head.device.uuid) {
    usage_error("{} was measured on {}, {} on {}; a table needs both on one device: use ci/ab",
                describe(tables.base), tables.base.device.uuid, describe(tables.head),
                tables.head.device.uuid);
  }
  const std::string shown = pair ? pair->first + " → " + pair->second : "";
  OneSide before = read_side(store, tables.base, pair ? pair->first : "", shown);
  OneSide after = read_side(store, tables.head, pair ? pair->second : "", shown);
  tables.base_sides = std::move(before.sides);
  tables.head_sides = std::move(after.sides);
  tables.base_us = std::move(before.us);
  tables.head_us = std::move(after.us);
  read_cases(store, base, tables.cases);
  read_cases(store, head, tables.cases);
  tables.ceilings = store.ceilings(tables.head.device);
  return tables;
}

}  // namespace moegate
