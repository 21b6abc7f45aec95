// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/dtype.h"

#include "harness/base/error.h"

namespace moegate {

DType parse_float_dtype(const std::string& name) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    if (name == name_of(t)) return t;
  }
  usage_error("'{}' is not a floating type; use fp32, fp16 or bf16", name);
}

}  // namespace moegate
