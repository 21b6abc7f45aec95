// SPDX-License-Identifier: Apache-2.0
// Tensors of numbers out of a file in the safetensors format. Knows nothing of what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moegate {

struct NumberTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;  // row-major; whole numbers beyond 2^53 are rounded
};

/// The tensor called `name` in a file's `bytes`; `path` is for messages. Throws Error(usage) naming the path, what is
/// wrong with the file and what it has instead: damaged or truncated, no such tensor, a type that is no number of up
/// to 64 bits, too many elements.
NumberTensor read_safetensors(const std::string& path, const std::string& bytes,
                              const std::string& name);

}  // namespace moegate
