// SPDX-License-Identifier: Apache-2.0
// Four floats in plain C++ with GCC's vectors, for inner loops written once for several instruction
// sets, on processors without AVX2 and other architectures.
#pragma once

namespace moegate::host {
namespace {

struct PortableVector {
  static constexpr int kWidth = 4;
  using Float = float __attribute__((vector_size(16)));

  static Float load(const float* from) {
    Float v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(float* to, Float v) { __builtin_memcpy(to, &v, sizeof v); }
  static Float all(float x) { return Float{} + x; }
  static Float fma(Float a, Float b, Float c) { return a * b + c; }
  static float sum(Float v) { return (v[0] + v[2]) + (v[1] + v[3]); }
  /// The sums of four vectors; each takes the same steps.
  static void sums(Float a, Float b, Float c, Float d, float* to) {
    to[0] = sum(a), to[1] = sum(b), to[2] = sum(c), to[3] = sum(d);
  }
};

}  // namespace
}  // namespace moegate::host
