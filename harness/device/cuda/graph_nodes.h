// SPDX-License-Identifier: Apache-2.0
// The nodes of a CUDA graph, and the functions of the driver that tell of kernels in it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "harness/device/cuda/driver_entry.h"

namespace moegate {

/// Null where this driver lacks one.
struct GraphDriver {
  decltype(&cuGraphKernelNodeGetParams) node_params =
      of_driver<decltype(cuGraphKernelNodeGetParams)>("cuGraphKernelNodeGetParams", 12000);
  decltype(&cuFuncGetParamInfo) function_argument =
      of_driver<decltype(cuFuncGetParamInfo)>("cuFuncGetParamInfo", 12040);
  decltype(&cuKernelGetParamInfo) kernel_argument =
      of_driver<decltype(cuKernelGetParamInfo)>("cuKernelGetParamInfo", 12040);

  decltype(&cuFuncGetName) function_name =
      of_driver<decltype(cuFuncGetName)>("cuFuncGetName", 12030);
  decltype(&cuKernelGetName) kernel_name =
      of_driver<decltype(cuKernelGetName)>("cuKernelGetName", 12030);
  decltype(&cuFuncGetAttribute) function_attribute =
      of_driver<decltype(cuFuncGetAttribute)>("cuFuncGetAttribute", 12000);
  decltype(&cuKernelGetFunction) function_of =
      of_driver<decltype(cuKernelGetFunction)>("cuKernelGetFunction", 12000);

  /// Whether a kernel's arguments can be read.
  bool complete() const { return node_params && function_argument && kernel_argument; }
};

const GraphDriver& graph_driver();

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph);
cudaGraphNodeType type_of(cudaGraphNode_t node);

}  // namespace moegate
