// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe_layer/steps.h"

#include "harness/kernel/workspace.h"

namespace moegate::qmoe_layer {

Buffers buffers_at(const QmoeLayerShape& shape, void* workspace) {
  WorkspaceCut take(workspace);
  const int64_t rows = shape.rows();
  Buffers b{};
  take(b.ids, rows);
  take(b.weights, rows);
  take(b.next, shape.experts());
  take(b.routed.row_source, rows);
  take(b.routed.row_expert, rows);
  take(b.routed.row_own, rows);
  take(b.routed.token_rows, rows);
  take(b.routed.token_weights, rows);
  take(b.a, rows * shape.inter());
  take(b.y, rows * shape.hidden());
  take(b.end, 0);
  return b;
}

size_t buffer_bytes(const QmoeLayerShape& shape) {
  return reinterpret_cast<uintptr_t>(buffers_at(shape, nullptr).end);
}

size_t workspace(const Case& c, const DeviceFacts&) {
  return buffer_bytes(QmoeLayerShape::of(c));
}

topk_sort::TopkSortArgs routing(const QmoeLayerArgs& args) {
  topk_sort::TopkSortArgs routing{};
  routing.logits = args.logits;
  routing.shape = args.shape.routing();
  return routing;
}

qmoe::QmoeArgs fc1(const QmoeLayerArgs& args, const Buffers& b) {
  qmoe::QmoeArgs fc1 = args.fc1;
  fc1.row_source = b.routed.row_source;
  fc1.row_expert = b.routed.row_expert;
  fc1.out = b.a;
  return fc1;
}

qmoe::QmoeArgs fc2(const QmoeLayerArgs& args, const Buffers& b) {
  qmoe::QmoeArgs fc2 = args.fc2;
  fc2.x = b.a;
  fc2.row_source = b.routed.row_own;
  fc2.row_expert = b.routed.row_expert;
  fc2.out = b.y;
  return fc2;
}

WeightedSumArgs sum(const QmoeLayerArgs& args, const Buffers& b) {
  const QmoeLayerShape& s = args.shape;
  return {b.y,
          b.routed.token_rows,
          b.routed.token_weights,
          args.out,
          s.tokens(),
          s.topk(),
          s.hidden(),
          s.dtype()};
}

}  // namespace moegate::qmoe_layer
