// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: value i of stream (seed, stream) is a pure function of the three,
// with the same bits on host and device, so large inputs are made where they are used and a truth
// can compute only the elements it samples. Mixing function: SplitMix64 (Steele et al. 2014).
#pragma once

#include <cmath>
#include <cstdint>

/// MOEGATE_HD marks a function that host code and kernels both call.
#ifdef __CUDACC__
#define MOEGATE_HD __host__ __device__
#else
#define MOEGATE_HD
#endif

namespace moegate {

MOEGATE_HD inline uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// 64 random bits for element i of a stream.
MOEGATE_HD inline uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t i) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;  // SplitMix64's increment
  return mix64(mix64(seed * kGolden + stream) + (i + 1) * kGolden);
}

/// Uniform in (0, 1): never 0, so that its logarithm is finite.
MOEGATE_HD inline double random_uniform(uint64_t seed, uint64_t stream, uint64_t i) {
  return (static_cast<double>(random_bits(seed, stream, i) >> 11) + 0.5) * 0x1p-53;
}

/// Standard Gumbel. Host only: libm's logarithm is not bit-identical on a GPU.
inline double random_gumbel(uint64_t seed, uint64_t stream, uint64_t i) {
  return -std::log(-std::log(random_uniform(seed, stream, i)));
}

/// Standard normal (Box and Muller 1958). Host only, like random_gumbel.
inline double random_normal(uint64_t seed, uint64_t stream, uint64_t i) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(random_uniform(seed, stream, 2 * i)));
  return radius * std::cos(kTwoPi * random_uniform(seed, stream, 2 * i + 1));
}

}  // namespace moegate
