// SPDX-License-Identifier: Apache-2.0
// How host kernels choose between instruction sets at run time. The vectors are in vector_<isa>.h,
// each included once per source, below that source's target pragma.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#if defined(__x86_64__) && !defined(__clang__)  // clang has no `#pragma GCC target`
#define MOEGATE_HOST_X86
#endif

namespace moegate::host {

/// So many floats, rounded up to whole vectors of any instruction set.
constexpr int whole_vectors(int floats) {
  constexpr int kWidest = 16;
  return (floats + kWidest - 1) / kWidest * kWidest;
}

#ifdef MOEGATE_HOST_X86
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("f16c") != 0;
}
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}
#else
inline bool has_avx2() {
  return false;
}
inline bool has_avx512() {
  return false;
}
#endif

/// An operator's inner loops on those instruction sets that this processor has. Isa is the
/// operator's own type; its `present` is one of the functions above, or null: always.
template <class Isa>
class Isas {
 public:
  Isas(const Isa& portable, const Isa& avx2, const Isa& avx512) {
    for (const Isa* isa : {&avx512, &avx2, &portable}) {
      if (!isa->present || isa->present()) isas_[count_++] = isa;
    }
  }
  std::span<const Isa* const> best_first() const { return {isas_.data(), count_}; }

 private:
  std::array<const Isa*, 3> isas_;
  size_t count_ = 0;
};

}  // namespace moegate::host
