// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/dtype.h"

#include "harness/base/error.h"

namespace moegate {

const char* name_of(DType t) {
  switch (t) {
    case DType::f32:
      return "fp32";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::e4m3:
      return "fp8";
    case DType::i32:
      return "int32";
    case DType::u8:
      return "uint8";
  }
  throw Error(Exit::internal,
              fmt::format("no element type has the number {}", static_cast<int>(t)));
}

DType parse_float_dtype(const std::string& name) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    if (name == name_of(t)) return t;
  }
  usage_error("'{}' is not a floating type; use fp32, fp16 or bf16", name);
}

}  // namespace moegate
