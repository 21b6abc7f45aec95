// SPDX-License-Identifier: Apache-2.0
// Weights and activations as floats in plain C++ with GCC's vectors of four. e4m3 codes are decoded
// by a table.
#pragma once

#include "kernels/host/vector_portable.h"
#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {
namespace {

struct Fp8Table {
  float values[256];
  Fp8Table() {
    for (int code = 0; code < 256; ++code) {
      values[code] = e4m3_to_float(static_cast<uint8_t>(code));
    }
  }
};
const Fp8Table fp8_table;

struct Portable : moegate::host::PortableVector {
  static constexpr int kAccumulators = 4;  // of a group of K, and as many of all of K
  static constexpr float kFp8Unit = 1;

  static Float fp8(const uint8_t* codes) {
    const float* values = fp8_table.values;
    return Float{values[codes[0]], values[codes[1]], values[codes[2]], values[codes[3]]};
  }
  using Whole = int32_t __attribute__((vector_size(16)));
  static Float int8(const int8_t* codes) {
    return Float{static_cast<float>(codes[0]), static_cast<float>(codes[1]),
                 static_cast<float>(codes[2]), static_cast<float>(codes[3])};
  }
  static Whole add_whole(Whole sums, Float whole) {
    return sums + __builtin_convertvector(whole, Whole);
  }
  static Float bf16(const uint16_t* from) {
    return Float{bf16_to_float(from[0]), bf16_to_float(from[1]), bf16_to_float(from[2]),
                 bf16_to_float(from[3])};
  }
};

}  // namespace

}  // namespace moegate::moe_gemm::host
