// SPDX-License-Identifier: Apache-2.0
#include "harness/device/cuda/captured_launch.h"

#include <vector>

#include "harness/base/dynlib.h"
#include "harness/device/cannot_capture.h"
#include "harness/device/cuda/graph_nodes.h"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

std::string extent_text(unsigned int x, unsigned int y, unsigned int z) {
  return fmt::format("{}x{}x{}", x, y, z);
}

std::string name_of_kernel(const CUDA_KERNEL_NODE_PARAMS& p) {
  const GraphDriver& d = graph_driver();
  const char* name = nullptr;
  const bool named = p.func ? d.function_name && d.function_name(&name, p.func) == CUDA_SUCCESS
                            : d.kernel_name && d.kernel_name(&name, p.kern) == CUDA_SUCCESS;
  return named && name ? demangle(name) : "?";
}

KernelRow kernel_row(cudaGraphNode_t node) {
  const GraphDriver& d = graph_driver();
  CUDA_KERNEL_NODE_PARAMS p{};
  KernelRow row;
  row.name = "?";
  if (!d.node_params || d.node_params(node, &p) != CUDA_SUCCESS) return row;
  row.name = name_of_kernel(p);
  row.grid = extent_text(p.gridDimX, p.gridDimY, p.gridDimZ);
  row.block = extent_text(p.blockDimX, p.blockDimY, p.blockDimZ);
  row.dynamic_shared = p.sharedMemBytes;
  cudaLaunchAttributeValue cluster{};
  if (cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &cluster) !=
      cudaSuccess) {
    cudaGetLastError();
  } else if (const auto& c = cluster.clusterDim; c.x * c.y * c.z > 1) {
    row.cluster = extent_text(c.x, c.y, c.z);
  }
  CUfunction function = p.func;
  if (!function && d.function_of && d.function_of(&function, p.kern) != CUDA_SUCCESS) return row;
  const auto attribute = [&](CUfunction_attribute which) {
    int value = 0;
    if (d.function_attribute) d.function_attribute(&value, which, function);
    return value;
  };
  row.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  row.static_shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  row.local_bytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  return row;
}

[[noreturn]] void refuse_to_capture(const std::string& why) {
  throw CannotCapture(fmt::format("cannot be captured as a graph: {}; {}; or use launch = stream",
                                  why, capture_advice(why)));
}

cudaGraph_t capture(const Variant& variant, Problem& problem, const Launch& where) {
  const auto stream = static_cast<cudaStream_t>(where.stream);
  cudaGraph_t graph = nullptr;
  MOEGATE_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    variant.launch(problem, where);
  } catch (const std::exception& e) {
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();  // of the capture, which is over
    refuse_to_capture(e.what());
  }
  const cudaError_t status = cudaStreamEndCapture(stream, &graph);
  if (status == cudaSuccess) return graph;
  cudaGetLastError();
  refuse_to_capture(cudaGetErrorString(status));
}

}  // namespace

CapturedLaunch::CapturedLaunch(const Variant& variant, Problem& problem, const Launch& where)
    : variant_(variant),
      problem_(problem),
      graph_(capture(variant, problem, where), cudaGraphDestroy) {}

void CapturedLaunch::refuse_untimed_nodes() const {
  for (cudaGraphNode_t node : nodes_of(graph())) {
    const cudaGraphNodeType type = type_of(node);
    if (type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
        type == cudaGraphNodeTypeMemset || type == cudaGraphNodeTypeEmpty) {
      continue;
    }
    throw Error(Exit::environment,
                fmt::format("variant {}/{}: its launch has a node of type {} (cudaGraphNodeType), "
                            "whose time nobody sees; a launch is kernels, copies and fills",
                            variant_.op, variant_.name, static_cast<int>(type)));
  }
}

std::vector<KernelRow> CapturedLaunch::operations() const {
  std::vector<KernelRow> rows;
  for (cudaGraphNode_t node : nodes_of(graph())) {
    const cudaGraphNodeType type = type_of(node);
    if (type == cudaGraphNodeTypeKernel) rows.push_back(kernel_row(node));
    if (type == cudaGraphNodeTypeMemcpy) rows.emplace_back().name = "memcpy";
    if (type == cudaGraphNodeTypeMemset) rows.emplace_back().name = "memset";
  }
  return rows;
}

std::vector<CapturedLaunch::Executable> CapturedLaunch::parts() const {
  std::vector<Executable> parts;
  const std::vector<cudaGraphNode_t> nodes = nodes_of(graph());
  for (cudaGraphNode_t node : nodes) {
    if (type_of(node) == cudaGraphNodeTypeEmpty) continue;
    cudaGraph_t clone = nullptr;
    MOEGATE_CUDA_CHECK(cudaGraphClone(&clone, graph()));
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> owned(clone, cudaGraphDestroy);
    for (cudaGraphNode_t other : nodes) {
      if (other == node) continue;
      cudaGraphNode_t in_clone = nullptr;
      MOEGATE_CUDA_CHECK(cudaGraphNodeFindInClone(&in_clone, other, clone));
      MOEGATE_CUDA_CHECK(cudaGraphDestroyNode(in_clone));
    }
    cudaGraphExec_t executable = nullptr;
    MOEGATE_CUDA_CHECK(cudaGraphInstantiate(&executable, clone, 0));
    parts.emplace_back(executable, cudaGraphExecDestroy);
  }
  return parts;
}

}  // namespace moegate
