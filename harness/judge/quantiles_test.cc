// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/quantiles.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace moegate {
namespace {

TEST(Quantiles, AreThoseOfTheDistributionHoweverOftenTheyAreAsked) {
  Quantiles quantiles;
  for (int again = 0; again < 2; ++again) {
    for (const double df : {1.0, 8.0, 14.0, 8.25}) {
      for (const double p : {0.05, 0.1, 0.9, 0.05 / 30000}) {
        const boost::math::students_t t(df);
        EXPECT_EQ(quantiles.student(df, p), boost::math::quantile(boost::math::complement(t, p)));
      }
    }
  }
}

TEST(Quantiles, ARatioIsBeyondWhereItsProbabilitySaysSo) {
  Quantiles quantiles;
  for (const double df : {2.0, 8.0}) {
    for (const double p : {0.05, 0.2}) {
      const boost::math::fisher_f f(df, 6);
      const double limit = boost::math::quantile(boost::math::complement(f, p));
      for (const double of_limit : {0.0, 0.5, 1 - 2e-6, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 2e-6, 50.0}) {
        const double ratio = limit * of_limit;
        const double exceeds = boost::math::cdf(boost::math::complement(f, ratio));
        EXPECT_EQ(quantiles.is_beyond(ratio, df, 6, p), exceeds < p) << df << " " << of_limit;
      }
    }
  }
}

}  // namespace
}  // namespace moegate
