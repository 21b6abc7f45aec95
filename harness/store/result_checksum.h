// SPDX-License-Identifier: Apache-2.0
// What tells whether the numbers of a result are those that its run stored. A flipped bit in one of
// them is a number like any other, which SQLite cannot see. No key: whoever forges a row can make
// its checksums, too.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "harness/store/rows.h"

namespace moegate {

/// A column `checksum` or `verified_checksum` that says nothing: a script inserted the row.
inline constexpr int64_t kNoChecksum = 0;

/// A hash of the key of a case. A result whose case is another one is damaged, too.
uint64_t hash_of_key(std::string_view key);

/// Over what a verdict reads of a result's own columns (all but kUnjudged) and its case. A field
/// that has its default adds nothing, so that the checksums of today stay true when a later schema
/// adds one.
int64_t checksum_of_numbers(const Result& result, uint64_t key);
/// Over its accuracy and seeds.
int64_t checksum_of_verified(const Result& result);

/// Throws Error(store) that names run and row where a checksum is known and is another than `is`.
/// `what`: its numbers.
void check_sum(const Database& db, int64_t run, int64_t row, std::string_view variant,
               const char* what, int64_t stored, int64_t is);

/// What verifications found, and its checksum. As a rule all processes of a row have one in common.
class Verifications {
 public:
  explicit Verifications(Database& db)
      : outputs_(db, "verified_output", "verification_id", "output"),
        seeds_(db, "verified_seed", "verification_id", "seed") {}
  /// Gives a result what its verification found; always the same one, which keeps it until the
  /// next. Returns its checksum.
  int64_t give(Result& result, int64_t id);

 private:
  PartReader<Accuracy> outputs_;
  PartReader<SeedError> seeds_;
  int64_t given_ = 0;  // nothing
  int64_t checksum_ = checksum_of_verified({});
};

/// Checks rows of the table `result` while they are copied, one after another.
class RowCheck {
 public:
  /// `row`: a statement that selects all columns of that table; both outlive it.
  RowCheck(Database& db, const Statement& row);
  /// Throws Error(store), as check_sum() does, for the row that the statement is at; also for one
  /// that the table's CHECKs forbid.
  void check(int64_t run);

 private:
  uint64_t key(int64_t case_id);
  int64_t verified(int64_t id);

  Database& db_;
  const Statement& row_;
  struct Places {
    Columns of;
    int id = of.at("result_id"), case_id = of.at("case_id");
    int verification = of.at("verification_id"), verified = of.at("verified_checksum");
    int numbers = of.at("checksum"), status = of.at("status"), judged = of.at("judged");
    int timer = of.at("timer"), samples = of.at("samples"), span = of.at("span_ns");
  };
  const Places at_;
  RowReader<Result> reader_;
  Verifications verifications_;
  Statement key_of_;
  std::unordered_map<int64_t, uint64_t> keys_;     // by case_id
  std::unordered_map<int64_t, int64_t> verified_;  // checksums, by verification_id
  Result result_;
};

}  // namespace moegate
