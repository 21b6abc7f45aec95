// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/quantiles.h"

#include <bit>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace moegate {
namespace {

uint64_t bits_of(double value) {
  return std::bit_cast<uint64_t>(value);
}

}  // namespace

double Quantiles::student(double df, double p) {
  const auto [known, first] = students_.try_emplace(Key{bits_of(df), bits_of(p), 0});
  if (first) {
    const boost::math::students_t t(df);
    known->second = boost::math::quantile(boost::math::complement(t, p));
  }
  return known->second;
}

bool Quantiles::is_beyond(double ratio, double df1, double df2, double p) {
  constexpr double kNear = 1e-6;  // of the quantile: far more than the error of boost's
  const boost::math::fisher_f f(df1, df2);
  const auto [known, first] = fishers_.try_emplace(Key{bits_of(df1), bits_of(df2), bits_of(p)});
  if (first) known->second = boost::math::quantile(boost::math::complement(f, p));
  if (ratio < known->second * (1 - kNear)) return false;
  if (ratio > known->second * (1 + kNear)) return true;
  return boost::math::cdf(boost::math::complement(f, ratio)) < p;
}

}  // namespace moegate
