// SPDX-License-Identifier: Apache-2.0
#include "harness/device/cuda/captured_launch.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

#include "harness/base/dynlib.h"
#include "harness/device/cannot_capture.h"
#include "harness/device/known_memory.h"
#include "harness/kernel/cuda_check.h"
#include "harness/kernel/driver_entry.h"

namespace moegate {
namespace {

/// Functions of the driver that tell of kernels in a graph. Null where this driver lacks one.
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

CapturedLaunch::Executable instantiated(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  MOEGATE_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  return {executable, cudaGraphExecDestroy};
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
    give_up(Exit::environment,
            "variant {}/{}: its launch has a node of type {} (cudaGraphNodeType), whose time "
            "nobody sees; a launch is kernels, copies and fills",
            variant_.op, variant_.name, static_cast<int>(type));
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

CapturedLaunch::Executable CapturedLaunch::executable() const {
  return instantiated(graph());
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
    parts.push_back(instantiated(clone));
  }
  return parts;
}

// What a captured launch gives the GPU beside machine code, as a hash.

namespace {

class Given {
 public:
  Given(const Problem& problem, const Variant& variant)
      : problem_(problem),
        memory_(problem.tensors(), variant.pool ? variant.pool() : std::vector<PoolSegment>()) {}

  template <class T>
  void add(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    hash_ = hash_bytes(&value, sizeof value, hash_);
  }

  /// An argument: its words may be pointers, wherever they stand in a struct.
  void add_argument(const void* argument, size_t bytes) {
    add(bytes);
    size_t at = 0;
    for (; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
      uintptr_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(argument) + at, sizeof word);
      add_address(word);
    }
    hash_ = hash_bytes(static_cast<const std::byte*>(argument) + at, bytes - at, hash_);
  }

  void add_address(uintptr_t word) {
    const auto place = memory_.place_of(word);
    if (!place) return add(word);
    hash_ = hash_bytes(place->name.data(), place->name.size(), hash_);
    add(place->offset);
    add(place->tensor ? contents_of(*place->tensor) : uint64_t{0});
  }

  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  /// Outputs, the workspace and the pool hold poison, or what the launch before left.
  uint64_t contents_of(const Tensor& tensor) {
    if (tensor.role() == Role::output || tensor.role() == Role::workspace) return 0;
    const auto [known, first] = contents_.try_emplace(&tensor);
    if (first) known->second = problem_.device().hash(tensor.data(), tensor.bytes());
    return known->second;
  }

  const Problem& problem_;
  KnownMemory memory_;
  std::map<const Tensor*, uint64_t> contents_;
  uint64_t hash_ = 0;
};

/// Of those that the activity records do not show.
constexpr cudaLaunchAttributeID kAttributes[] = {
    cudaLaunchAttributeAccessPolicyWindow,
    cudaLaunchAttributeCooperative,
    cudaLaunchAttributePriority,
    cudaLaunchAttributeMemSyncDomain,
#if CUDART_VERSION >= 12050
    cudaLaunchAttributePreferredSharedMemoryCarveout,
#endif
};

void add_attributes(cudaGraphNode_t node, Given& given) {
  for (const cudaLaunchAttributeID id : kAttributes) {
    cudaLaunchAttributeValue value;
    std::memset(&value, 0, sizeof value);
    if (cudaGraphKernelNodeGetAttribute(node, id, &value) != cudaSuccess) cudaGetLastError();
    given.add_argument(&value, sizeof value);
  }
}

/// Whether its arguments could be read.
bool add_kernel(cudaGraphNode_t node, Given& given) {
  const GraphDriver& d = graph_driver();
  CUDA_KERNEL_NODE_PARAMS p{};
  if (!d.complete() || d.node_params(node, &p) != CUDA_SUCCESS) return false;
  for (const unsigned int extent : {p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY,
                                    p.blockDimZ, p.sharedMemBytes}) {
    given.add(extent);
  }
  add_attributes(node, given);
  for (size_t i = 0;; ++i) {
    size_t offset = 0, bytes = 0;
    const CUresult status = p.func ? d.function_argument(p.func, i, &offset, &bytes)
                                   : d.kernel_argument(p.kern, i, &offset, &bytes);
    if (status == CUDA_ERROR_INVALID_VALUE) return true;  // there are no more
    if (status != CUDA_SUCCESS || !p.kernelParams) return false;
    given.add(offset);
    given.add_argument(p.kernelParams[i], bytes);
  }
}

/// Of a copy or a fill.
template <class Params>
void add_params(cudaError_t (*read)(cudaGraphNode_t, Params*), cudaGraphNode_t node, Given& given) {
  Params p{};
  MOEGATE_CUDA_CHECK(read(node, &p));
  given.add_argument(&p, sizeof p);
}

cudaError_t edges_of(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                     cudaGraphEdgeData* data, size_t* count) {
#if CUDART_VERSION >= 13000
  return cudaGraphGetEdges(graph, from, to, data, count);
#else
  return cudaGraphGetEdges_v2(graph, from, to, data, count);
#endif
}

/// Which node waits for which, and for what of it: programmatic dependent launch is here.
void add_edges(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& nodes, Given& given) {
  size_t count = 0;
  MOEGATE_CUDA_CHECK(edges_of(graph, nullptr, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  MOEGATE_CUDA_CHECK(edges_of(graph, from.data(), to.data(), data.data(), &count));
  const auto place = [&](cudaGraphNode_t node) {
    return std::ranges::find(nodes, node) - nodes.begin();
  };
  struct Edge {
    ptrdiff_t from, to;
    int from_port, to_port, type;
    auto operator<=>(const Edge&) const = default;
  };
  std::vector<Edge> edges;
  for (size_t i = 0; i < count; ++i) {
    edges.push_back(
        {place(from[i]), place(to[i]), data[i].from_port, data[i].to_port, data[i].type});
  }
  std::ranges::sort(edges);
  for (const Edge& e : edges) {
    given.add(e.from);
    given.add(e.to);
    for (const int part : {e.from_port, e.to_port, e.type}) given.add(part);
  }
}

}  // namespace

std::string CapturedLaunch::given() const {
  Given given(problem_, variant_);
  const std::vector<cudaGraphNode_t> nodes = nodes_of(graph());
  for (cudaGraphNode_t node : nodes) {
    const cudaGraphNodeType type = type_of(node);
    given.add(static_cast<int>(type));
    if (type == cudaGraphNodeTypeKernel && !add_kernel(node, given)) return "";
    if (type == cudaGraphNodeTypeMemcpy) add_params(cudaGraphMemcpyNodeGetParams, node, given);
    if (type == cudaGraphNodeTypeMemset) add_params(cudaGraphMemsetNodeGetParams, node, given);
  }
  add_edges(graph(), nodes, given);
  return given.text();
}

}  // namespace moegate
