// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops in plain C++ with GCC's vectors of four, for processors without
// AVX2 and other architectures.
#include "kernels/host/vector_portable.h"
#include "kernels/qmoe/host/dot_body.h"

namespace moegate::qmoe::host {
namespace {

struct Portable : moegate::host::PortableVector {
  static constexpr int kAccumulators = 8;
  struct Pair {
    Float even, odd;
  };

  static float narrow_to_float(DType dtype, uint16_t bits) {
    return dtype == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
  }
  /// One value to all lanes.
  static Float widen(DType dtype, const uint16_t* from) {
    return all(narrow_to_float(dtype, *from));
  }

  static Pair widen_pairs(DType dtype, const uint16_t* from) {
    Pair wide;
    for (int i = 0; i < kWidth; ++i) {
      wide.even[i] = narrow_to_float(dtype, from[2 * i]);
      wide.odd[i] = narrow_to_float(dtype, from[2 * i + 1]);
    }
    return wide;
  }

  struct Decoder {
    using Int = int32_t __attribute__((vector_size(16)));
    Float scale;

    void scale_by(Float by) { scale = by; }
    Pair decode(const uint8_t* codes) const {
      const Int q = {codes[0], codes[1], codes[2], codes[3]};
      return {__builtin_convertvector((q & 15) - 8, Float) * scale,
              __builtin_convertvector((q >> 4) - 8, Float) * scale};
    }
  };
};

}  // namespace

const Isa kPortable = {"portable", nullptr, widen_row<Portable>, multiply<Portable>};

}  // namespace moegate::qmoe::host
