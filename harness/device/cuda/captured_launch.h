// SPDX-License-Identifier: Apache-2.0
// A variant's launch on one problem as a CUDA graph: what it is made of, before anything runs.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"
#include "harness/values/result.h"

namespace moegate {

class CapturedLaunch {
 public:
  /// Captures; nothing runs. Throws what the launch throws, and Error(environment) where it cannot
  /// be captured. `variant` and `problem` must outlive it.
  CapturedLaunch(const Variant& variant, Problem& problem, const Launch& where);

  cudaGraph_t graph() const { return graph_.get(); }

  /// Throws Error(environment) for a node that is neither a kernel nor a copy nor a fill. A span
  /// ends with the last of these, so that the work of a host node, for one, would be free.
  void refuse_untimed_nodes() const;

  /// Hash, 16 hex digits, of all that the GPU is given beside machine code: nodes and edges,
  /// attributes, and the values of arguments. A pointer into a tensor counts as the tensor's name
  /// and the place in it; the contents of the inputs pointed into count. One into the variant's
  /// pool counts as the segment's number and the place in it. So the host code that made all this
  /// need not. Empty where a node's arguments cannot be read.
  ///
  /// Equal in two programs: the GPU is given the same. Unequal says less: pointers to other memory
  /// and bytes that nobody wrote (padding) differ from process to process.
  std::string given() const;

  /// Its kernels, copies and fills in order of launch, with geometry and resources but no times;
  /// kernels are called "?" where the driver does not name them.
  std::vector<KernelRow> operations() const;

  using Executable = std::unique_ptr<CUgraphExec_st, decltype(&cudaGraphExecDestroy)>;
  Executable executable() const;
  /// Each of operations() as a graph of its own, to be launched one after the other. Dependences
  /// that let one begin before the other ends are lost.
  std::vector<Executable> parts() const;

 private:
  const Variant& variant_;
  const Problem& problem_;
  std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> graph_;
};

}  // namespace moegate
