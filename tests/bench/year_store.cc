// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/year_store.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "harness/base/rng.h"
#include "harness/store/packed_spans.h"

namespace moegate::test {
namespace {

constexpr uint64_t kSeed = 1;
constexpr std::array kOperators = {"topk_sort", "moe_down", "moe_gate_up", "silu_mul_quant"};
constexpr std::array kTokens = {1, 8, 64, 512, 2048};
constexpr std::array kVariants = {"chain3", "fused_cluster", "alpha_per_expert_n64", "split_k2"};
constexpr int kSeeds = 6, kOutputs = 2, kLaunches = 2;  // as H200 nights have them: 5.7, 2.2, 2.2
constexpr int kPool = 256;                              // different samples

/// Statements that are run millions of times: the store's own way prepares them anew each time.
class YearWriter {
 public:
  YearWriter(Database& db, const YearOptions& options, std::string against)
      : db_(db), o_(options), against_(std::move(against)) {}

  void add_all();

 private:
  struct Row {
    int64_t case_id;
    int variant;
    bool slower, random;
  };
  struct Moments {
    double sum = 0, squares = 0;
    void add(double x) { sum += x, squares += x * x; }
    double sd(int n) const {
      return n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
    }
  };

  void add_device();
  void add_cases();
  void add_samples();
  int64_t add_verification();
  void add_night(int night);
  void add_run(int night, const std::string& started);
  void add_results(int night, int64_t process, int round);
  void add_result(int night, int64_t process, int round, const Row& row);
  void add_levels(int night);
  void add_verdicts(int night);
  Row row_of(int c, int variant) const {
    const uint64_t bits =
        random_bits(kSeed, 1, static_cast<uint64_t>(c) * kVariants.size() + variant);
    return {c + 1, variant, bits % 50 == 0, bits / 64 % 32 == 0};
  }
  double normal() { return random_normal(kSeed, 2, drawn_++); }
  static double level_ns(const Row& row) {
    return 4000 + 3000 * row.variant + static_cast<double>(row.case_id % 997) * 100;
  }
  static std::string code_of(const Row& row, bool slow) {
    const auto code = static_cast<uint64_t>(row.case_id * 8 + row.variant * 2 + (slow ? 1 : 0));
    return fmt::format("{:016x}", random_bits(kSeed, 5, code));
  }
  bool is_slow(const Row& row, int night) const { return row.slower && night >= o_.nights * 2 / 3; }

  Database& db_;
  YearOptions o_;
  std::string against_;
  std::vector<std::string> keys_;
  std::vector<PackedSpans> pool_;
  std::vector<Moments> moments_;  // of the night's rows
  uint64_t drawn_ = 0;
  int64_t run_ = 0, process_ = 0, result_ = 0, verification_ = 0;

  Statement result_row_{
      db_,
      "INSERT INTO result (result_id, process_id, case_id, variant, status, why, path, "
      "deterministic, timer, tick_ns, samples, invalid, flags, span_ns, median_ns, low_ns, "
      "high_ns, "
      "min_ns, busy_ns, sum_ns, ratio, ratio_low, ratio_high, sm_mhz, impossible, suspect_warm, "
      "wall_s, code, judged, mean_ns, verification_id) VALUES (?1, ?2, ?3, ?4, 'ok', '', 'tma', "
      "?5, "
      "'cupti', 31.95890410958907, ?6, 1, 0, ?7, ?8, ?9, ?10, ?11, ?7 * 0.93, ?7 * 0.9, 0, 0, 0, "
      "1980.5, 0, 0, 0.31415926, ?12, 'span', ?7 * 1.001, ?13)"};
  Statement launch_row_{db_, "INSERT INTO launch VALUES (?1, ?2, ?3, ?4, ?5)"};
  Statement metric_row_{db_, "INSERT INTO metric_value VALUES (?1, -1, ?2, ?3)"};
  Statement sample_row_{db_, "INSERT INTO sample VALUES (?1, ?2, ?3)"};
  Statement verification_row_{db_, "INSERT INTO verification VALUES (?1, ?2)"};
  Statement output_row_{
      db_,
      "INSERT INTO verified_output (verification_id, output, ok, why, elements, mismatches, "
      "nonfinite, rel_l2, cosine, scale, max_abs, max_rel, worst_row, row_p999, worst_index) "
      "VALUES "
      "(?1, ?2, 1, '', 1536, 0, 0, ?3, 0.9999999, 0.9999983, "
      "?3 * 6, ?3 * 2, ?3 * 1.1, ?3 * 1.05, 6)"};
  Statement seed_row_{db_,
                      "INSERT INTO verified_seed (verification_id, seed, hash, rel_l2, worst_row, "
                      "bias) VALUES (?1, ?2, ?3, ?4, ?4 * 1.02, ?4 * -0.007)"};
  Statement level_row_{
      db_, "INSERT INTO row_level VALUES (?1, ?2, ?3, 'ok', 'span', ?4, ?5, ?6, 1, ?7)"};
  Statement verdict_row_{
      db_,
      "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base, head, "
      "effect, low, high, df, p, p_adjusted, mde, blind, family, waiver, why) VALUES (?1, ?2, "
      "'nightly', ?3, ?4, ?5, 1, ?6, ?7, ?7 / ?6 - 1, ?7 / ?6 - 1.01, ?7 / ?6 - 0.99, 8.25, 0.5, "
      "1, "
      "0.0123456, 0, ?8, '', 'not slower by 1.5 % or more: ' || round(?7 / ?6 * 100 - 100, 2) || "
      "' % [-0.3 %, +1.3 %], 5 against 5 processes that spread by 0.3 %; the sides are from two "
      "devices of this class, 1.1 % added to the standard error; output bit-identical')"};
};

void YearWriter::add_device() {
  db_.execute(
      "INSERT INTO device VALUES (1, 'cuda', 'NVIDIA H200', 'nvidia-h200', 'GPU-1', '580', 132, "
      "62914560, 150000000000, 233472);"
      "INSERT INTO ceiling VALUES (1, 'read_bytes_per_s', 4.4e12, '2026-01-01T00:00:00Z'), "
      "(1, 'fp8_flops', 1.5e15, '2026-01-01T00:00:00Z'), "
      "(1, 'bf16_flops', 8e14, '2026-01-01T00:00:00Z');"
      "INSERT INTO metric_name VALUES (1, 'launches_compared', 'launches'), "
      "(2, 'outputs_compared', 'share')");
}

void YearWriter::add_cases() {
  Statement add(db_, "INSERT INTO bench_case VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  Statement shape(
      db_,
      "INSERT INTO launch_shape VALUES (?1, 'void moegate::' || ?2 || '_kernel<8, 16, "
      "float, __nv_bfloat16>(moegate::Arguments, float const*, __nv_bfloat16*)', '132x1x1', "
      "'256x1x1', '1x1x1', 64, 0, 49152, 0)");
  for (int c = 0; c < o_.cases; ++c) {
    const std::string op = kOperators.at(static_cast<size_t>(c) % kOperators.size());
    const int tokens = kTokens.at(static_cast<size_t>(c) / kOperators.size() % kTokens.size());
    const int hidden = 1024 + c / 20 * 8;
    keys_.push_back(
        fmt::format("{}/cache=cold,dtype=fp8,experts=256,hidden={},launch=graph,"
                    "routing=uniform,tokens={},topk=8",
                    op, hidden, tokens));
    const std::string params = fmt::format(
        R"({{"cache":"cold","dtype":"fp8","experts":"256","hidden":"{}","launch":"graph",)"
        R"("routing":"uniform","tokens":"{}","topk":"8"}})",
        hidden, tokens);
    const double bytes = 1e4 * hidden;
    add.bind(c + 1, keys_.back(), op, params, bytes * 40.0 * tokens, bytes, bytes / 4).run();
    add_verification();
  }
  for (int i = 0; i < o_.variants * kLaunches; ++i)
    shape.bind(i + 1, fmt::format("part{}", i)).run();
}

/// Spans on a GPU: steps of 32 ns, one more or less at times, 1 % around 5 us, and some slow.
void YearWriter::add_samples() {
  for (int i = 0; i < kPool; ++i) {
    std::vector<float> spans;
    for (int k = 0; k < o_.samples; ++k) {
      const double ns = 5000 * (1 + 0.02 * normal()) + (normal() > 2.5 ? 600 : 0);
      const double rest = std::round(0.6 * normal());
      spans.push_back(static_cast<float>(std::round(ns / 32) * 32 + rest));
    }
    pool_.push_back(pack_spans(spans));
  }
}

int64_t YearWriter::add_verification() {
  const int64_t id = ++verification_;
  verification_row_.bind(id, fmt::format("{:032x}", id)).run();
  const double error = 2e-4 * (1 + 0.1 * normal());
  for (int i = 0; i < kOutputs; ++i)
    output_row_.bind(id, i == 0 ? "out" : "workspace", error * (i + 1)).run();
  for (int i = 0; i < kSeeds; ++i) {
    const uint64_t hash = random_bits(kSeed, 3, static_cast<uint64_t>(id * kSeeds + i));
    seed_row_.bind(id, 1 + i * 1000003, fmt::format("{:016x}", hash), error * (1 + 0.01 * i)).run();
  }
  return id;
}

void YearWriter::add_run(int night, const std::string& started) {
  db_.run(
      "INSERT INTO run (label, started, finished, status, device_id, protocol, timer, flush, "
      "rounds, git_sha, dirty, build, host, command, options, program, uuid, campaign) VALUES "
      "('nightly', ?1, ?1, 'complete', 1, 1, 'cupti', 'read', ?2, ?3, 0, 'g++, nvcc', 'h', "
      "'moegate run --suite nightly', '{}', ?4, ?4, ?4)",
      started, o_.processes, fmt::format("{:040x}", night + 1),
      fmt::format("{:032x}", random_bits(kSeed, 4, static_cast<uint64_t>(night))));
  run_ = db_.last_id();
  for (const char* op : kOperators) {
    db_.run("INSERT INTO operator VALUES (?1, ?2, '')", run_, op);
    db_.run("INSERT INTO before VALUES (?1, ?2, 0, 'chain3', '*')", run_, op);
  }
  Statement of_case(db_,
                    "INSERT INTO run_case VALUES (?1, ?2, 'nightly', 'deepseek-r1-tp8', "
                    "'{\"active_experts\":162.0,\"max_over_mean\":5.0,\"padded_rows\":10368.0}')");
  for (int c = 0; c < o_.cases; ++c) of_case.bind(run_, c + 1).run();
}

void YearWriter::add_result(int night, int64_t process, int round, const Row& row) {
  const bool slow = is_slow(row, night);
  const double ns = level_ns(row) * (slow ? 1.08 : 1) * std::exp(0.003 * normal());
  const int64_t id = ++result_;
  const bool sampled = night >= o_.nights - o_.sampled_nights;
  result_row_
      .bind(id, process, row.case_id, kVariants.at(static_cast<size_t>(row.variant)), !row.random,
            o_.samples, ns, std::round(ns), std::round(ns * 0.997), std::round(ns * 1.003),
            std::round(ns * 0.97), code_of(row, slow),
            row.random ? add_verification() : row.case_id)
      .run();
  for (int i = 0; i < kLaunches; ++i) {
    launch_row_.bind(id, i, row.variant * kLaunches + i + 1, ns * 0.45, i == 0 ? 0.0 : ns * 0.1)
        .run();
  }
  Moments& m = moments_[static_cast<size_t>((row.case_id - 1) * o_.variants + row.variant)];
  m.add(std::log(ns / 1000));
  metric_row_.bind(id, 1, o_.samples + 1.0).run();
  if (round >= 0)
    metric_row_.bind(id, 2, 0.1 + 1e-4 * static_cast<double>(row.case_id % 100)).run();
  if (!sampled) return;
  const PackedSpans& spans = pool_[static_cast<size_t>(id) % pool_.size()];
  sample_row_.bind(id, std::span(spans.bytes), static_cast<int>(spans.packing)).run();
}

void YearWriter::add_results(int night, int64_t process, int round) {
  for (int c = 0; c < o_.cases; ++c) {
    for (int v = 0; v < o_.variants; ++v) add_result(night, process, round, row_of(c, v));
  }
}

void YearWriter::add_levels(int night) {
  for (size_t i = 0; i < moments_.size(); ++i) {
    const auto variants = static_cast<size_t>(o_.variants);
    const Row row = row_of(static_cast<int>(i / variants), static_cast<int>(i % variants));
    const Moments& m = moments_[i];
    level_row_
        .bind(run_, row.case_id, kVariants.at(static_cast<size_t>(row.variant)), o_.processes,
              m.sum / o_.processes, m.sd(o_.processes), code_of(row, is_slow(row, night)))
        .run();
  }
}

void YearWriter::add_verdicts(int night) {
  for (int c = 0; c < o_.cases; ++c) {
    for (int v = 0; v < o_.variants; ++v) {
      const Row row = row_of(c, v);
      const bool slow = is_slow(row, night);
      const double base = level_ns(row) / 1000, head = base * (slow ? 1.08 : 1 + 0.002 * normal());
      verdict_row_
          .bind(run_, against_, keys_[static_cast<size_t>(c)], kVariants.at(static_cast<size_t>(v)),
                slow ? "regressed" : "pass", base, head, o_.cases * o_.variants)
          .run();
    }
  }
}

void YearWriter::add_night(int night) {
  Statement day(db_, "SELECT strftime('%Y-%m-%dT03:00:00Z', '2026-01-01', ?1 || ' days')");
  day.bind(night).step();
  const std::string started = day.text(0);
  day.reset();
  Transaction transaction(db_);
  moments_.assign(keys_.size() * static_cast<size_t>(o_.variants), {});
  add_run(night, started);
  const auto bytes = [&] {
    return (db_.integer("PRAGMA page_count") - db_.integer("PRAGMA freelist_count")) *
           db_.integer("PRAGMA page_size");
  };
  for (int round = 0; round < o_.processes; ++round) {
    const int64_t process = ++process_, before = bytes();
    db_.run(
        "INSERT INTO process (process_id, run_id, round, pid, started, uuid) VALUES "
        "(?1, ?2, ?3, 1, ?4, 'process ' || ?1)",
        process, run_, round, started);
    add_results(night, process, round);
    const int results = o_.cases * o_.variants;
    db_.run(
        "UPDATE process SET results = ?2, wall_s = 0.314 * ?2, bytes = ?3 "
        "WHERE process_id = ?1",
        process, results, bytes() - before);
  }
  add_levels(night);
  add_verdicts(night);
  transaction.commit();
}

void YearWriter::add_all() {
  add_samples();
  {
    Transaction transaction(db_);
    add_device();
    add_cases();
    transaction.commit();
  }
  for (int night = 0; night < o_.nights; ++night) add_night(night);
}

}  // namespace

Store make_year(const std::string& path, const YearOptions& options, const std::string& against) {
  Store store = Store::open(path, Store::Mode::write);
  Database& db = store.database();
  db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000");
  // In the end, sorted: each night has all rows in another place of it.
  db.execute("DROP INDEX result_series");
  YearWriter(db, options, against).add_all();
  db.execute("CREATE INDEX result_series ON result (case_id, variant)");
  analyze(db);
  return store;
}

}  // namespace moegate::test
