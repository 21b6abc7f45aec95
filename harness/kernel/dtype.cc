// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/dtype.h"

#include <array>

#include "harness/base/error.h"

namespace moegate {

const char* name_of(DType t) {
  constexpr std::array kNames = {"fp32", "fp16", "bf16", "fp8", "int32", "uint8"};
  static_assert(kNames.size() == static_cast<size_t>(DType::u8) + 1);
  return kNames.at(static_cast<size_t>(t));
}

DType parse_float_dtype(const std::string& name) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    if (name == name_of(t)) return t;
  }
  usage_error("'{}' is not a floating type; use fp32, fp16 or bf16", name);
}

}  // namespace moegate
