// SPDX-License-Identifier: Apache-2.0
// The rows of a result in the store: written by a run, read by the gate and the reports.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/store/store.h"

namespace moegate {
namespace {

static_assert(std::endian::native == std::endian::little, "sample blobs are little-endian");

int64_t upsert_case(Database& db, const Case& c, const Cost& cost) {
  // The key identifies a case; an operator's new parameter with a default, or a corrected cost,
  // updates what is said about it. A row written before the problem exists knows no cost yet.
  Statement(db,
            "INSERT INTO bench_case (key, op, params, flops, read_bytes, write_bytes) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE SET "
            "params = excluded.params, flops = excluded.flops, read_bytes = excluded.read_bytes, "
            "write_bytes = excluded.write_bytes "
            "WHERE excluded.flops + excluded.read_bytes + excluded.write_bytes > 0")
      .bind(c.key(), c.op, nlohmann::json(c.params).dump(), cost.flops, cost.read_bytes,
            cost.write_bytes)
      .run();
  Statement q(db, "SELECT case_id FROM bench_case WHERE key = ?1");
  q.bind(c.key()).step();
  return q.integer(0);
}

void upsert_run_case(Database& db, int64_t process, int64_t case_id, const Case& c,
                     const std::vector<Fact>& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const Fact& f : facts) json[f.name] = f.value;
  // A row written before a launch knows no facts yet; it must not erase those known.
  Statement(db,
            "INSERT INTO run_case (run_id, case_id, suite, section, facts) "
            "SELECT run_id, ?2, ?3, ?4, ?5 FROM process WHERE process_id = ?1 "
            "ON CONFLICT (run_id, case_id) DO UPDATE SET facts = excluded.facts "
            "WHERE excluded.facts <> '{}'")
      .bind(process, case_id, c.suite, c.section, json.dump())
      .run();
}

int64_t replace_result(Database& db, int64_t process, int64_t case_id, const Result& r) {
  Statement(db, "DELETE FROM result WHERE process_id = ?1 AND case_id = ?2 AND variant = ?3")
      .bind(process, case_id, r.variant)
      .run();
  Statement(db,
            "INSERT INTO result (process_id, case_id, variant, status, why, path, deterministic, "
            "timer, tick_ns, samples, invalid, flags, span_ns, median_ns, low_ns, high_ns, min_ns, "
            "busy_ns, sum_ns, ratio, ratio_low, ratio_high, sm_mhz, impossible, suspect_warm, "
            "wall_s, code) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
            "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)")
      .bind(process, case_id, r.variant, name_of(r.status), r.why, r.path, r.deterministic, r.timer,
            r.tick_ns, r.samples, r.invalid, r.flags, r.span_ns, r.median_ns, r.low_ns, r.high_ns,
            r.min_ns, r.busy_ns, r.sum_ns, r.ratio, r.ratio_low, r.ratio_high, r.sm_mhz,
            r.impossible, r.suspect_warm, r.wall_s, r.code)
      .run();
  return db.last_id();
}

void insert_details(Database& db, int64_t result, const Result& r) {
  for (const Accuracy& a : r.accuracy) {
    Statement(db,
              "INSERT INTO accuracy (result_id, output, ok, why, elements, mismatches, nonfinite, "
              "rel_l2, cosine, scale, max_abs, max_rel, worst_row, worst_index, row_p999) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")
        .bind(result, a.output, a.ok, a.why, a.elements, a.mismatches, a.nonfinite, a.rel_l2,
              a.cosine, a.scale, a.max_abs, a.max_rel, a.worst_row, a.worst_index, a.row_p999)
        .run();
  }
  for (const SeedError& s : r.seeds) {
    Statement(db,
              "INSERT INTO seed_error (result_id, seed, hash, rel_l2, worst_row, bias) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(result, s.seed, fmt::format("{:016x}", s.hash), s.rel_l2, s.worst_row, s.bias)
        .run();
  }
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    const KernelRow& k = r.kernels[i];
    Statement(db,
              "INSERT INTO kernel (result_id, ordinal, name, grid, block, cluster, registers, "
              "static_shared, dynamic_shared, ns, gap_ns) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
        .bind(result, static_cast<int64_t>(i), k.name, k.grid, k.block, k.cluster, k.registers,
              k.static_shared, k.dynamic_shared, k.ns, k.gap_ns)
        .run();
  }
  if (!r.spans_ns.empty()) {
    Statement(db, "INSERT INTO sample (result_id, spans) VALUES (?1, ?2)")
        .bind(result, std::as_bytes(std::span(r.spans_ns)))
        .run();
  }
}

Result read_result(const Statement& q, int column) {
  int i = column;
  Result r;
  r.variant = q.text(i++);
  r.status = parse_status(q.text(i++));
  r.why = q.text(i++);
  r.path = q.text(i++);
  r.deterministic = q.integer(i++) != 0;
  r.timer = q.text(i++);
  r.tick_ns = q.real(i++);
  r.samples = static_cast<int>(q.integer(i++));
  r.invalid = static_cast<int>(q.integer(i++));
  r.flags = static_cast<uint32_t>(q.integer(i++));
  r.span_ns = q.real(i++);
  r.median_ns = q.real(i++);
  r.low_ns = q.real(i++);
  r.high_ns = q.real(i++);
  r.min_ns = q.real(i++);
  r.busy_ns = q.real(i++);
  r.sum_ns = q.real(i++);
  r.ratio = q.real(i++);
  r.ratio_low = q.real(i++);
  r.ratio_high = q.real(i++);
  r.sm_mhz = q.real(i++);
  r.impossible = q.integer(i++) != 0;
  r.suspect_warm = q.integer(i++) != 0;
  r.wall_s = q.real(i++);
  r.code = q.text(i++);
  return r;
}

Accuracy read_accuracy(const Statement& q) {
  Accuracy a;
  a.output = q.text(1);
  a.ok = q.integer(2) != 0;
  a.why = q.text(3);
  a.elements = q.integer(4);
  a.mismatches = q.integer(5);
  a.nonfinite = q.integer(6);
  a.rel_l2 = q.real(7);
  a.cosine = q.real(8);
  a.scale = q.real(9);
  a.max_abs = q.real(10);
  a.max_rel = q.real(11);
  a.worst_row = q.real(12);
  a.worst_index = q.integer(13);
  a.row_p999 = q.real(14);
  return a;
}

}  // namespace

void Store::add_result(int64_t process, const Case& c, const Cost& cost,
                       const std::vector<Fact>& facts, const Result& result) {
  Transaction transaction(db_);
  const int64_t case_id = upsert_case(db_, c, cost);
  upsert_run_case(db_, process, case_id, c, facts);
  insert_details(db_, replace_result(db_, process, case_id, result), result);
  transaction.commit();
}

void Store::mark_suspect_warm(int64_t run, const std::string& key, const std::string& variant) {
  Statement(db_,
            "UPDATE result SET suspect_warm = 1 WHERE variant = ?3 "
            "AND process_id IN (SELECT process_id FROM process WHERE run_id = ?1) "
            "AND case_id = (SELECT case_id FROM bench_case WHERE key = ?2)")
      .bind(run, key, variant)
      .run();
}

std::set<std::tuple<int, std::string, std::string>> Store::done(int64_t run) {
  Statement q(db_,
              "SELECT round, key, variant FROM result JOIN process USING (process_id) "
              "JOIN bench_case USING (case_id) WHERE run_id = ?1");
  q.bind(run);
  std::set<std::tuple<int, std::string, std::string>> rows;
  while (q.step()) rows.emplace(static_cast<int>(q.integer(0)), q.text(1), q.text(2));
  return rows;
}

std::vector<Level> Store::levels(int64_t run) {
  Transaction reading(db_, "BEGIN");  // the three statements of one state, whoever writes
  Statement q(db_,
              "SELECT result_id, key, op, suite, section, round, variant, r.status, why, path, "
              "deterministic, r.timer, tick_ns, samples, invalid, flags, span_ns, median_ns, "
              "low_ns, high_ns, min_ns, busy_ns, sum_ns, ratio, ratio_low, ratio_high, sm_mhz, "
              "impossible, suspect_warm, wall_s, code "
              "FROM result r JOIN process USING (process_id) JOIN bench_case USING (case_id) "
              "JOIN run_case USING (run_id, case_id) WHERE run_id = ?1 "
              "ORDER BY key, variant, round, result_id");
  q.bind(run);
  std::vector<Level> levels;
  std::map<int64_t, size_t> row_of;  // result_id -> index
  while (q.step()) {
    row_of[q.integer(0)] = levels.size();
    levels.push_back({q.text(1), q.text(2), q.text(3), q.text(4), q.text(6),
                      static_cast<int>(q.integer(5)), read_result(q, 6)});
  }
  Statement a(
      db_,
      "SELECT result_id, output, ok, a.why, elements, mismatches, nonfinite, rel_l2, cosine, "
      "scale, max_abs, max_rel, worst_row, worst_index, row_p999 FROM accuracy a "
      "JOIN result USING (result_id) JOIN process USING (process_id) WHERE run_id = ?1 "
      "ORDER BY result_id, output");
  a.bind(run);
  while (a.step()) levels[row_of.at(a.integer(0))].result.accuracy.push_back(read_accuracy(a));
  Statement s(db_,
              "SELECT result_id, seed, hash, rel_l2, worst_row, bias FROM seed_error "
              "JOIN result USING (result_id) JOIN process USING (process_id) WHERE run_id = ?1 "
              "ORDER BY result_id, seed");
  s.bind(run);
  while (s.step()) {
    levels[row_of.at(s.integer(0))].result.seeds.push_back(
        {s.integer(1), std::stoull(s.text(2), nullptr, 16), s.real(3), s.real(4), s.real(5)});
  }
  return levels;
}

}  // namespace moegate
