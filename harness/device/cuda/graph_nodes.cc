// SPDX-License-Identifier: Apache-2.0
#include "harness/device/cuda/graph_nodes.h"

#include "harness/kernel/cuda_check.h"

namespace moegate {

const GraphDriver& graph_driver() {
  static const GraphDriver functions;
  return functions;
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  MOEGATE_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  MOEGATE_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  MOEGATE_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
  return type;
}

}  // namespace moegate
