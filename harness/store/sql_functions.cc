// SPDX-License-Identifier: Apache-2.0
// What reports share: statistics that SQLite lacks, the roofline and the wording of speed-ups,
// beside the views of views.sql and report_views.sql. reports/README.md lists them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/stats.h"
#include "harness/store/packed_spans.h"
#include "harness/store/query_report.h"
#include "harness/values/resources.h"
#include "harness/values/result.h"
#include "harness/values/roofline.h"
#include "store_sql.h"  // made by the build from views.sql and report_views.sql

namespace moegate {
namespace {

/// Welford's running mean and sum of squares; SQLite zeroes it before the first row.
struct Moments {
  int64_t n;
  double mean, squares;
};

void sd_step(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  auto* m = static_cast<Moments*>(sqlite3_aggregate_context(context, sizeof(Moments)));
  if (!m) return sqlite3_result_error_nomem(context);
  const double x = sqlite3_value_double(values[0]);
  const double delta = x - m->mean;
  m->mean += delta / static_cast<double>(++m->n);
  m->squares += delta * (x - m->mean);
}

/// Of fewer than two rows: NULL.
void sd_final(sqlite3_context* context) {
  const auto* m = static_cast<const Moments*>(sqlite3_aggregate_context(context, 0));
  if (!m || m->n < 2) return;
  sqlite3_result_double(context, std::sqrt(m->squares / static_cast<double>(m->n - 1)));
}

void reach95_final(sqlite3_context* context) {
  const auto* m = static_cast<const Moments*>(sqlite3_aggregate_context(context, 0));
  if (!m || m->n < 2) return;
  const auto n = static_cast<double>(m->n);
  sqlite3_result_double(context,
                        student_975(n - 1) * std::sqrt(m->squares / (n - 1)) / std::sqrt(n));
}

bool any_null(int count, sqlite3_value** values) {
  return std::any_of(values, values + count,
                     [](sqlite3_value* value) { return sqlite3_value_type(value) == SQLITE_NULL; });
}

// The functions. One that does not answer says NULL.

/// NULL below one degree of freedom: an interval that does not exist.
void t975(sqlite3_context* context, sqlite3_value** values) {
  const double df = sqlite3_value_double(values[0]);
  if (df >= 1 && std::isfinite(df)) sqlite3_result_double(context, student_975(df));
}

void memory_ns(sqlite3_context* context, sqlite3_value** values) {
  const Cost cost{.read_bytes = sqlite3_value_double(values[0]),
                  .write_bytes = sqlite3_value_double(values[1])};
  sqlite3_result_double(context, 1e9 * memory_s(cost, sqlite3_value_int64(values[2]),
                                                sqlite3_value_double(values[3])));
}

void products_ns(sqlite3_context* context, sqlite3_value** values) {
  sqlite3_result_double(context, 1e9 * products_s({.flops = sqlite3_value_double(values[0])},
                                                  sqlite3_value_double(values[1])));
}

/// SQLite's own digits, as its printf() writes them.
void answer(sqlite3_context* context, char* text) {
  if (!text) return sqlite3_result_error_nomem(context);
  sqlite3_result_text(context, text, -1, sqlite3_free);
}

bool is_change(double x, double reach) {
  return x - reach > 0 || x + reach < 0;
}

/// Answers "~" where the interval of the log x includes 0 or does not exist.
bool is_none(sqlite3_context* context, sqlite3_value** values) {
  const double x = sqlite3_value_double(values[0]), reach = sqlite3_value_double(values[1]);
  if (!any_null(3, values) && is_change(x, reach)) return false;
  sqlite3_result_text(context, "~", -1, SQLITE_STATIC);
  return true;
}

/// "1.25x", or "~"
void speedup_text(sqlite3_context* context, sqlite3_value** values) {
  if (is_none(context, values)) return;
  const double x = sqlite3_value_double(values[0]);
  answer(context, sqlite3_mprintf("%.*fx", sqlite3_value_int(values[2]), std::exp(x)));
}

/// The same as a number; NULL where that is "~".
void speedup(sqlite3_context* context, sqlite3_value** values) {
  const double x = sqlite3_value_double(values[0]), reach = sqlite3_value_double(values[1]);
  if (is_change(x, reach)) sqlite3_result_double(context, std::exp(x));
}

/// "1.25x (1.20–1.30)", or "~"
void speedup_with_interval(sqlite3_context* context, sqlite3_value** values) {
  if (is_none(context, values)) return;
  const double x = sqlite3_value_double(values[0]), reach = sqlite3_value_double(values[1]);
  const int digits = sqlite3_value_int(values[2]);
  answer(context, sqlite3_mprintf("%.*fx (%.*f–%.*f)", digits, std::exp(x), digits,
                                  std::exp(x - reach), digits, std::exp(x + reach)));
}

void interval_text(sqlite3_context* context, sqlite3_value** values) {
  const double x = sqlite3_value_double(values[0]), reach = sqlite3_value_double(values[1]);
  const int digits = sqlite3_value_int(values[2]);
  answer(context,
         sqlite3_mprintf("%.*f–%.*f", digits, std::exp(x - reach), digits, std::exp(x + reach)));
}

std::string text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text ? text : "";
}

/// NULL for a text that is no extent, such as a memory operation's.
void size_of_extent(sqlite3_context* context, sqlite3_value** values) {
  const int64_t size = extent_size(text_of(values[0]));
  if (size != 0) sqlite3_result_int64(context, size);
}

void blocks_on_sm(sqlite3_context* context, sqlite3_value** values) {
  KernelRow kernel;
  kernel.block = text_of(values[1]);
  kernel.registers = sqlite3_value_int(values[2]);
  kernel.dynamic_shared = sqlite3_value_int64(values[3]);
  const auto blocks = blocks_per_sm(kernel, text_of(values[0]));
  if (blocks) sqlite3_result_int(context, *blocks);
}

/// The spans in a blob; of the view sample they are plain.
std::optional<std::vector<float>> spans_of(sqlite3_value* value, Packing packing = Packing::plain) {
  const auto bytes = static_cast<size_t>(sqlite3_value_bytes(value));
  return unpack_spans(packing, {static_cast<const std::byte*>(sqlite3_value_blob(value)), bytes});
}

/// The spans of a row of the table sample as little-endian f32, ns; NULL for bytes that are none.
void unpacked_spans(sqlite3_context* context, sqlite3_value** values) {
  const auto spans = spans_of(values[0], static_cast<Packing>(sqlite3_value_int(values[1])));
  if (!spans) return;
  sqlite3_result_blob64(context, spans->data(), spans->size() * sizeof(float), SQLITE_TRANSIENT);
}

/// A bound of the 95 % interval of the trimmed mean of spans: the upper one of side 1, else the
/// lower. NULL for fewer than two.
void span_bound(sqlite3_context* context, sqlite3_value** values) {
  const std::vector<float> spans = *spans_of(values[0]);
  if (spans.size() < 2) return;
  const Interval interval = trimmed_mean_interval(std::vector<double>(spans.begin(), spans.end()));
  sqlite3_result_double(context, sqlite3_value_int(values[1]) == 1 ? interval.high : interval.low);
}

/// A quantile of spans. NULL for none.
void span_quantile(sqlite3_context* context, sqlite3_value** values) {
  std::vector<float> spans = *spans_of(values[0]);
  if (spans.empty()) return;
  const double share = std::clamp(sqlite3_value_double(values[1]), 0.0, 1.0);
  const auto at = std::lround(share * static_cast<double>(spans.size() - 1));
  std::nth_element(spans.begin(), spans.begin() + at, spans.end());
  sqlite3_result_double(context, spans[static_cast<size_t>(at)]);
}

/// Which of kWorstFirst were seen; zeroed as Moments are.
struct SeenStatuses {
  bool seen[kWorstFirst.size()];
};

void statuses_step(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (!text) return;
  const auto at = std::ranges::find_if(
      kWorstFirst, [&](Status s) { return std::string_view(text) == name_of(s); });
  if (at == kWorstFirst.end()) return sqlite3_result_error(context, "statuses: no status", -1);
  auto* all = static_cast<SeenStatuses*>(sqlite3_aggregate_context(context, sizeof(SeenStatuses)));
  if (!all) return sqlite3_result_error_nomem(context);
  all->seen[at - kWorstFirst.begin()] = true;
}

/// Each status once, the worst first, "wrong,noisy,ok"; NULL of no row.
void statuses_final(sqlite3_context* context) {
  const auto* all = static_cast<const SeenStatuses*>(sqlite3_aggregate_context(context, 0));
  if (!all) return sqlite3_result_null(context);
  std::string names;
  for (size_t i = 0; i < kWorstFirst.size(); ++i) {
    if (!all->seen[i]) continue;
    names += (names.empty() ? "" : ",") + std::string(name_of(kWorstFirst[i]));
  }
  sqlite3_result_text(context, names.c_str(), -1, SQLITE_TRANSIENT);
}

struct Scalar {
  const char* name;
  int arguments;
  void (*does)(sqlite3_context*, sqlite3_value**);
  int needs = arguments;  // so many; where one of these is NULL, the answer is
};
constexpr std::array kScalars = {
    Scalar{"t975", 1, t975},
    Scalar{"memory_ns", 4, memory_ns},
    Scalar{"products_ns", 2, products_ns},
    Scalar{"speedup_text", 3, speedup_text, 1},
    Scalar{"speedup", 2, speedup},
    Scalar{"speedup_with_interval", 3, speedup_with_interval, 1},
    Scalar{"interval_text", 3, interval_text},
    Scalar{"extent_size", 1, size_of_extent},
    Scalar{"blocks_per_sm", 4, blocks_on_sm},
    Scalar{"span_quantile", 2, span_quantile},
    Scalar{"span_bound", 2, span_bound},
    Scalar{"unpack_spans", 2, unpacked_spans},
};

void call_scalar(sqlite3_context* context, int, sqlite3_value** values) {
  const auto& f = *static_cast<const Scalar*>(sqlite3_user_data(context));
  if (!any_null(f.needs, values)) f.does(context, values);
}

struct Aggregate {
  const char* name;
  void (*step)(sqlite3_context*, int, sqlite3_value**);
  void (*final)(sqlite3_context*);
};
constexpr std::array kAggregates = {Aggregate{"sd", sd_step, sd_final},
                                    Aggregate{"reach95", sd_step, reach95_final},
                                    Aggregate{"statuses", statuses_step, statuses_final}};

}  // namespace

void add_sql_functions(Database& db) {
  if (db.integer("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'gain'") > 0) return;
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  int failures = 0;
  for (const Scalar& f : kScalars) {
    failures += SQLITE_OK != sqlite3_create_function_v2(db.handle(), f.name, f.arguments, kFlags,
                                                        const_cast<Scalar*>(&f), call_scalar,
                                                        nullptr, nullptr, nullptr);
  }
  for (const Aggregate& f : kAggregates) {
    failures += SQLITE_OK != sqlite3_create_function_v2(db.handle(), f.name, 1, kFlags, nullptr,
                                                        nullptr, f.step, f.final, nullptr);
  }
  if (failures > 0) db.fail("cannot add the functions of reports");
  // Temporary views are the connection's own; the store stays as it is.
  const TempWrites writes(db);
  db.execute(kViews);
  db.execute(kReportViews);
}

std::string plain_views() {
  return kViews;
}

}  // namespace moegate
