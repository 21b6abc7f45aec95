// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops in plain C++ with GCC's vectors of four, for processors without
// AVX2 and other architectures.
#include "kernels/host/vector_portable.h"
#include "kernels/w4_moe/host/product_body.h"

namespace moegate::w4_moe::host {
namespace {

struct Portable : moegate::host::PortableVector {
  static constexpr int kColumnsOfFewRows = 4, kColumns = 2;
  struct Pair {
    Float even, odd;
  };

  static Pair widen_pairs(const uint16_t* from) {
    Pair wide;
    for (int i = 0; i < kWidth; ++i) {
      wide.even[i] = bf16_to_float(from[2 * i]);
      wide.odd[i] = bf16_to_float(from[2 * i + 1]);
    }
    return wide;
  }

  template <W4Weights kWeights>
  struct Decoder {
    Float scale;

    void scale_by(float by) { scale = all(by); }
    Pair decode(const uint8_t* codes) const {
      return {scale * Float{low(codes[0]), low(codes[1]), low(codes[2]), low(codes[3])},
              scale * Float{high(codes[0]), high(codes[1]), high(codes[2]), high(codes[3])}};
    }

   private:
    static float low(uint8_t both) { return value(both & 15); }
    static float high(uint8_t both) { return value(both >> 4); }
    static float value(int code) {
      static constexpr float kE2m1[] = {0.f,  .5f,  1.f,  1.5f,  2.f,  3.f,  4.f,  6.f,
                                        -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
      return kWeights == W4Weights::int4 ? static_cast<float>(code - 8) : kE2m1[code];
    }
  };
};

}  // namespace

const Isa kPortable = {"portable", nullptr, widen_row<Portable>, multiply<OnFloats<Portable>>,
                       finish<Portable>};

}  // namespace moegate::w4_moe::host
