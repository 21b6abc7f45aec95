// SPDX-License-Identifier: Apache-2.0
// How host kernels choose between instruction sets at run time. The vectors are in vector_<isa>.h,
// each included once per source, behind that source's MOEGATE_TARGET_BEGIN.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#ifdef __x86_64__
#define MOEGATE_HOST_X86
#endif

/// What a source defines between these two is compiled for the instruction sets named, as in
/// MOEGATE_TARGET_BEGIN("avx2,fma"). For GCC, which includes nothing behind it, the file's end
/// ends it.
#define MOEGATE_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define MOEGATE_TARGET_BEGIN(sets) \
  MOEGATE_PRAGMA(clang attribute push(__attribute__((target(sets))), apply_to = function))
#define MOEGATE_TARGET_END MOEGATE_PRAGMA(clang attribute pop)
#else
#define MOEGATE_TARGET_BEGIN(sets) MOEGATE_PRAGMA(GCC target(sets))
#define MOEGATE_TARGET_END
#endif

namespace moegate::host {

/// So many floats, rounded up to whole vectors of any instruction set.
constexpr int whole_vectors(int floats) {
  constexpr int kWidest = 16;
  return (floats + kWidest - 1) / kWidest * kWidest;
}

#ifdef MOEGATE_HOST_X86
#ifdef __clang__
// Clang 14 cannot ask for F16C, which every processor with AVX2 has.
inline bool has_f16c() {
  return true;
}
#else
inline bool has_f16c() {
  return __builtin_cpu_supports("f16c") != 0;
}
#endif
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c();
}
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}
inline bool has_avx512_bf16() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16") != 0;
}
#else
inline bool has_avx2() {
  return false;
}
inline bool has_avx512() {
  return false;
}
inline bool has_avx512_bf16() {
  return false;
}
#endif

/// An operator's inner loops on those instruction sets that this processor has, up to kMost. Isa is
/// the operator's own type; its `present` is one of the functions above, or null: always.
template <class Isa, size_t kMost = 3>
class Isas {
 public:
  Isas(const Isa& portable, const Isa& avx2, const Isa& avx512)
      : Isas({&avx512, &avx2, &portable}) {}
  explicit Isas(const Isa* const (&best_first)[kMost]) {
    for (const Isa* isa : best_first) {
      if (!isa->present || isa->present()) isas_[count_++] = isa;
    }
  }
  std::span<const Isa* const> best_first() const { return {isas_.data(), count_}; }

 private:
  std::array<const Isa*, kMost> isas_;
  size_t count_ = 0;
};

}  // namespace moegate::host
