// SPDX-License-Identifier: Apache-2.0
#include "harness/store/result_checksum.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "harness/base/escape.h"
#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "harness/store/level_walk.h"

namespace moegate {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

uint64_t hash_of(std::string_view text) {
  return hash_bytes(text.data(), text.size());
}

/// Of what the store gives back for it: -0.0 comes back as 0.0, and every number that is not finite
/// as NaN.
template <class V>
uint64_t hash_of_value(const V& value) {
  if constexpr (std::is_same_v<V, std::string>) {
    return hash_of(value);
  } else if constexpr (std::is_enum_v<V>) {
    return hash_of(name_of(value));
  } else if constexpr (std::is_floating_point_v<V>) {
    return mix64(std::isfinite(value) ? std::bit_cast<uint64_t>(value + 0.0) : kGolden);
  } else {
    return mix64(static_cast<uint64_t>(value) + kGolden);
  }
}

/// The hashes of the names of T's columns, in the order of its fields.
template <class T>
const auto& column_hashes() {
  static const auto hashes = std::apply(
      [](const auto&... field) {
        return std::array<uint64_t, sizeof...(field)>{hash_of(field.column)...};
      },
      kFields<T>);
  return hashes;
}

/// The sum over the fields, so that their order may change.
template <class T>
uint64_t hash_of_fields(const T& value, LeftOut left_out = {}) {
  [[maybe_unused]] static const T nothing{};  // gcc 12 sees no use of numbers
  uint64_t sum = 0;
  size_t i = 0;
  for_each_field(kFields<T>, [&](const auto& f) {
    const uint64_t name = column_hashes<T>()[i++];
    if (f.of(value) == f.of(nothing) || is_left_out(left_out, f.column)) return;
    sum += mix64(name ^ hash_of_value(f.of(value)));
  });
  return sum;
}

/// In any order: they come back sorted by name.
template <class T>
uint64_t hash_of_rows(const std::vector<T>& rows, uint64_t seed) {
  uint64_t sum = 0;
  for (const T& row : rows) sum += mix64(hash_of_fields(row) + kGolden);
  return mix64(mix64(seed ^ sum) + rows.size());
}

int64_t as_checksum(uint64_t hash) {
  const auto sum = std::bit_cast<int64_t>(hash);
  return sum == kNoChecksum ? 1 : sum;
}

}  // namespace

uint64_t hash_of_key(std::string_view key) {
  return hash_of(key);
}

int64_t checksum_of_numbers(const Result& result, uint64_t key) {
  return as_checksum(mix64(hash_of_fields(result, kUnjudged) ^ key));
}

int64_t checksum_of_verified(const Result& result) {
  return as_checksum(hash_of_rows(result.seeds, hash_of_rows(result.accuracy, kGolden)));
}

void check_sum(const Database& db, int64_t run, int64_t row, std::string_view variant,
               const char* what, int64_t stored, int64_t is) {
  if (stored == kNoChecksum || stored == is) return;
  db.damaged(fmt::format("row {} of run {} (variant {}): {} are not what was stored", row, run,
                         one_line(std::string(variant)), what));
}

int64_t Verifications::give(Result& result, int64_t id) {
  if (id == given_) return checksum_;
  outputs_.read(id, result.accuracy);
  seeds_.read(id, result.seeds);
  given_ = id;
  return checksum_ = checksum_of_verified(result);
}

RowCheck::RowCheck(Database& db, const Statement& row)
    : db_(db),
      row_(row),
      at_{Columns(row)},
      reader_(row, kUnjudged),
      verifications_(db),
      key_of_(db, "SELECT key FROM bench_case WHERE case_id = ?1") {}

uint64_t RowCheck::key(int64_t case_id) {
  const auto [at, is_new] = keys_.try_emplace(case_id, 0);
  if (!is_new) return at->second;
  if (key_of_.bind(case_id).step()) at->second = hash_of_key(key_of_.view(0));
  key_of_.reset();
  return at->second;
}

int64_t RowCheck::verified(int64_t id) {
  const auto [at, is_new] = verified_.try_emplace(id, kNoChecksum);
  if (is_new) at->second = verifications_.give(result_, id);
  return at->second;
}

void RowCheck::check(int64_t run) {
  const int64_t numbers = row_.integer(at_.numbers), found = row_.integer(at_.verified);
  const bool unknown = numbers == kNoChecksum && found == kNoChecksum;
  if (unknown) {
    read_column(row_, at_.status, result_.status);
    read_column(row_, at_.judged, result_.judged);
  } else {
    reader_.read(result_);
  }
  const bool timed = result_.measured() && !row_.view(at_.timer).empty();
  if (timed && (row_.integer(at_.samples) <= 0 || !(row_.real(at_.span) > 0))) {
    db_.damaged(fmt::format("result {} is timed without a sample", row_.integer(at_.id)));
  }
  if (unknown) return;
  const int64_t row = row_.integer(at_.id);
  check_sum(db_, run, row, result_.variant, "its numbers", numbers,
            checksum_of_numbers(result_, key(row_.integer(at_.case_id))));
  check_sum(db_, run, row, result_.variant, "its accuracy and seeds", found,
            verified(row_.integer(at_.verification)));
}

}  // namespace moegate
