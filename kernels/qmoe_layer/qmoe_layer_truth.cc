// SPDX-License-Identifier: Apache-2.0
// The truth of qmoe_layer: the truths of its parts one after the other, rounded where the layer
// rounds. No variant shares a line with it.
#include <numeric>

#include "kernels/qmoe_layer/qmoe_layer.h"

namespace moegate::qmoe_layer {

Assignment assigned(const QmoeLayerShape& shape, const std::vector<float>& logits) {
  const auto routed = topk_sort::topk_sort_truth(shape.routing(), logits, {});
  return {routed.topk_ids, routed.topk_weights};
}

std::vector<double> qmoe_layer_truth(const QmoeLayerShape& shape, const QmoeLayerInputs& inputs) {
  const auto rounded = [&](const std::vector<double>& values) {
    return qmoe::widened(shape.dtype(), qmoe::narrowed(shape.dtype(), values));
  };
  // Row r is slot r % k of token r / k: in which order rows lie changes nothing.
  std::vector<int32_t> own(inputs.assignment.experts.size()), token;
  std::iota(own.begin(), own.end(), 0);
  for (const int32_t r : own) token.push_back(r / shape.topk());

  const auto& experts = inputs.assignment.experts;
  const auto a = rounded(qmoe_truth(shape.fc1, {inputs.x, token, experts, inputs.fc1}));
  const auto y = rounded(qmoe_truth(shape.fc2, {a, own, experts, inputs.fc2}));
  const auto width = static_cast<size_t>(shape.hidden());
  std::vector<double> out(static_cast<size_t>(shape.tokens()) * width);
  for (size_t r = 0; r < experts.size(); ++r) {
    double* row = out.data() + static_cast<size_t>(token[r]) * width;
    for (size_t i = 0; i < width; ++i) row[i] += inputs.assignment.weights[r] * y[r * width + i];
  }
  return out;
}

}  // namespace moegate::qmoe_layer
