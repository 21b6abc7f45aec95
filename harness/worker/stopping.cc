// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/stopping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/worker/summary.h"

namespace moegate {

StoppingRule::StoppingRule(const Sampling& sampling, Backend backend)
    : sampling_(sampling),
      wanted_(sampling.precision > 0     ? sampling.precision
              : backend == Backend::host ? 0.02
                                         : 0.005) {}

int StoppingRule::next_batch(int taken, int least, double sample_s, double random) const {
  constexpr double kUsual = 100, kMost = 400, kBatch_s = 0.012;
  const double size = sample_s > 0 ? std::clamp(kBatch_s / sample_s, kUsual, kMost) : kUsual;
  const auto some = static_cast<int>(std::lround(size * (0.75 + 0.5 * random)));
  return std::min(some, std::max(least, sampling_.max_samples - taken));
}

bool StoppingRule::is_spent(int taken, double seconds) const {
  return taken >= sampling_.max_samples || seconds > sampling_.budget_s;
}

int StoppingRule::enough(bool spent) const {
  constexpr int kFewest = 50;
  return spent ? std::min(sampling_.min_samples, kFewest) : sampling_.min_samples;
}

bool StoppingRule::are_enough(int samples, bool spent) const {
  return samples >= enough(spent);
}

bool StoppingRule::is_precise(const Result& summary) const {
  return uncertainty(summary) <= wanted_;
}

std::string StoppingRule::why_noisy(const Result& summary) const {
  return fmt::format(
      "95 % interval of the {} is ± {:.2f} % after {} samples (wanted: ± {:.2f} % after {})",
      summary.ratio > 0 ? "median ratio" : "trimmed mean", 100 * uncertainty(summary),
      summary.samples, 100 * wanted_, enough(true));
}

}  // namespace moegate
