// SPDX-License-Identifier: Apache-2.0
// The weights of a w4 product as tensors of a problem: how they are drawn, and what of them comes
// to the host for the truth.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/w4_moe/product.h"

namespace moegate::w4_moe {

class WeightTensors {
 public:
  /// Makes a tensor of role weight.
  using Make =
      std::function<Tensor&(const std::string& name, DType dtype, std::vector<int64_t> dims)>;
  /// `prefix`: of the tensors' names.
  WeightTensors(const W4Shape& shape, bool has_bias, const Make& make,
                const std::string& prefix = "");

  /// Codes, scales, and biases of deviation one, so that sums have deviation `size`. Returns E: x
  /// is then uniform between -E and E. Where x is given, `size` is over its deviation, and E is
  /// what it is not.
  float draw(uint64_t seed, float size) const;
  /// Codes, scales and biases at the edges of what they may be.
  void make_edges(Device& device, uint64_t seed) const;
  /// What a product of one expert needs at these columns of its output, x and routing weights
  /// apart.
  W4Product product(Device& device, int32_t expert, const std::vector<int32_t>& columns,
                    W4Slip slip) const;
  /// Puts them into the arguments of a launch.
  void put_into(W4Args& args) const;
  /// Of so many experts.
  double bytes_of(double experts) const;

 private:
  float draw_mxfp4(uint64_t seed, float size) const;
  float draw_int4(uint64_t seed, float size) const;
  void put_beyond(uint64_t seed, std::vector<uint16_t>& scales) const;
  std::vector<uint16_t> scales_of(Device& device, int64_t width,
                                  const std::vector<int64_t>& rows) const;
  void upload_scales(const std::vector<uint16_t>& scales) const;

  const W4Shape shape_;
  Tensor& codes_;   // [E, N, K/2]
  Tensor& scales_;  // [E, N, K/group], as they are stored
  Tensor* bias_;    // [E, N] bf16, or null
};

}  // namespace moegate::w4_moe
