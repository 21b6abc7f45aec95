// SPDX-License-Identifier: Apache-2.0
// The rows of a result in the store, as a run writes them; store_levels.cc reads them.
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "harness/base/hash.h"
#include "harness/store/packed_spans.h"
#include "harness/store/result_checksum.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

int64_t upsert_case(Database& db, const Case& c, const Cost& cost) {
  // The key identifies a case; an operator's new parameter with a default, or a corrected cost,
  // updates what is said about it. A row whose process died knows no cost.
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
  // A row whose process died knows no facts; it must not erase those known.
  Statement(db,
            "INSERT INTO run_case (run_id, case_id, suite, section, facts) "
            "SELECT run_id, ?2, ?3, ?4, ?5 FROM process WHERE process_id = ?1 "
            "ON CONFLICT (run_id, case_id) DO UPDATE SET facts = excluded.facts "
            "WHERE excluded.facts <> '{}'")
      .bind(process, case_id, c.suite, c.section, json.dump())
      .run();
}

/// Every field of every row as text; doubles bit by bit.
template <class T>
void add_to_digest(std::string& text, const std::vector<T>& rows) {
  for (const T& row : rows) {
    for_each_field(kFields<T>, [&](const auto& f) {
      const auto& value = f.of(row);
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
        text += fmt::format("{}:{}|", value.size(), value);
      } else if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>) {
        text += fmt::format("{:a}|", value);
      } else {
        text += fmt::format("{}|", value);
      }
    });
    text += '\n';
  }
  text += '\f';
}

/// The number of what verifying found, 0 for nothing; most results find what was found before.
int64_t upsert_verification(Database& db, const Result& r) {
  if (r.accuracy.empty() && r.seeds.empty()) return 0;
  constexpr size_t kDigits = 32;  // 128 bits
  std::string text;
  add_to_digest(text, r.accuracy);
  add_to_digest(text, r.seeds);
  const std::string digest = sha256(text).substr(0, kDigits);
  Statement known(db, "SELECT verification_id FROM verification WHERE digest = ?1");
  if (known.bind(digest).step()) return known.integer(0);
  Statement(db, "INSERT INTO verification (digest) VALUES (?1)").bind(digest).run();
  const std::pair of("verification_id", db.last_id());
  for (const Accuracy& a : r.accuracy) insert_row(db, "verified_output", a, of);
  for (const SeedError& s : r.seeds) insert_row(db, "verified_seed", s, of);
  return of.second;
}

void insert_parts(Database& db, int64_t result, const Result& r) {
  const std::pair of("result_id", result);
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    insert_row(db, "kernel", r.kernels[i], of, std::pair("ordinal", static_cast<int64_t>(i)));
  }
  for (const Metric& m : r.metrics) insert_row(db, "metric", m, of);
  for (const StallRow& s : r.stalls) insert_row(db, "stall", s, of);
  if (!r.spans_ns.empty()) {
    const PackedSpans packed = pack_spans(r.spans_ns);
    Statement(db, "INSERT INTO main.sample (result_id, spans, packing) VALUES (?1, ?2, ?3)")
        .bind(result, std::span(packed.bytes), static_cast<int>(packed.packing))
        .run();
  }
}

/// Changes status, reason or suspicion of results of a case and variant. What is damaged stays so: its checksum is
/// not made anew.
void change_results(Database& db, const char* of, int64_t id, const std::string& key,
                    const std::string& variant, const std::function<void(Result&)>& change) {
  Transaction transaction(db);
  Statement q(db,
              fmt::format("SELECT result_id, checksum, {} FROM result r WHERE {} AND r.variant = "
                          "?3 AND case_id = (SELECT case_id FROM bench_case WHERE key = ?2)",
                          columns_of<Result>("r"), of));
  const uint64_t hash = hash_of_key(key);
  const RowReader<Result> row(q);
  struct Changed {
    int64_t id, checksum;
    Result result;
  };
  std::vector<Changed> all;  // nothing is written while it is read
  for (q.bind(id, key, variant); q.step();) {
    all.push_back({q.integer(0), q.integer(1), row.read()});
    Changed& one = all.back();
    const bool is_whole = one.checksum == checksum_of_numbers(one.result, hash);
    change(one.result);
    if (is_whole) one.checksum = checksum_of_numbers(one.result, hash);
  }
  Statement update(db,
                   "UPDATE result SET status = ?2, why = ?3, suspect_warm = ?4, checksum = ?5 "
                   "WHERE result_id = ?1");
  for (const auto& [result, checksum, r] : all) {
    update.bind(result, name_of(r.status), r.why, r.suspect_warm, checksum).run();
  }
  transaction.commit();
}

int64_t bytes_in_use(Database& db) {
  return (db.integer("PRAGMA page_count") - db.integer("PRAGMA freelist_count")) *
         db.integer("PRAGMA page_size");
}

}  // namespace

void Store::add_result(int64_t process, const Case& c, const Cost& cost,
                       const std::vector<Fact>& facts, const Result& result) {
  Transaction transaction(db_);
  const int64_t before = bytes_in_use(db_);
  const int64_t case_id = upsert_case(db_, c, cost);
  upsert_run_case(db_, process, case_id, c, facts);
  insert_row(db_, "result", result, std::pair("process_id", process), std::pair("case_id", case_id),
             std::pair("verification_id", upsert_verification(db_, result)),
             std::pair("checksum", checksum_of_numbers(result, hash_of_key(c.key()))),
             std::pair("verified_checksum", checksum_of_verified(result)));
  insert_parts(db_, db_.last_id(), result);
  Statement(db_,
            "UPDATE process SET results = results + 1, wall_s = wall_s + ?3, bytes = bytes + ?2 "
            "WHERE process_id = ?1")
      .bind(process, bytes_in_use(db_) - before, result.wall_s)
      .run();
  transaction.commit();
}

void Store::mark_suspect_warm(int64_t run, const std::string& key, const std::string& variant) {
  change_results(db_, "process_id IN (SELECT process_id FROM process WHERE run_id = ?1)", run, key,
                 variant, [](Result& r) { r.suspect_warm = true; });
}

void Store::mark_crashed(int64_t process, const std::string& key, const std::string& variant,
                         const std::string& why) {
  change_results(db_, "process_id = ?1", process, key, variant, [&](Result& r) {
    r.status = Status::crashed;
    r.why = why;
  });
}

}  // namespace moegate
