// SPDX-License-Identifier: Apache-2.0
// What reports need of statistics and SQLite lacks: sd(x) and t975(df).
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>

#include "harness/store/query_report.h"

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

void sd_final(sqlite3_context* context) {
  const auto* m = static_cast<Moments*>(sqlite3_aggregate_context(context, 0));
  if (!m || m->n < 2) return sqlite3_result_null(context);
  sqlite3_result_double(context, std::sqrt(m->squares / static_cast<double>(m->n - 1)));
}

/// NULL below one degree of freedom: an interval that does not exist.
void t975(sqlite3_context* context, int, sqlite3_value** values) {
  const double df = sqlite3_value_double(values[0]);
  if (sqlite3_value_type(values[0]) == SQLITE_NULL || !(df >= 1) || !std::isfinite(df)) {
    return sqlite3_result_null(context);
  }
  sqlite3_result_double(context, boost::math::quantile(boost::math::students_t(df), 0.975));
}

}  // namespace

void add_sql_functions(Database& db) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  const int sd = sqlite3_create_function_v2(db.handle(), "sd", 1, kFlags, nullptr, nullptr, sd_step,
                                            sd_final, nullptr);
  const int t = sqlite3_create_function_v2(db.handle(), "t975", 1, kFlags, nullptr, t975, nullptr,
                                           nullptr, nullptr);
  if (sd != SQLITE_OK || t != SQLITE_OK) db.fail("cannot add the functions of reports");
}

}  // namespace moegate
