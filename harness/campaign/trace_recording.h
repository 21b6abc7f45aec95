// SPDX-License-Identifier: Apache-2.0
// What a workload recorded of its router, as files for `routing = replay:`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/base/safetensors.h"
#include "harness/campaign/trace_layer.h"

namespace moegate {

/// Tensor `key` of a file of the data set, by a path that a workload names; nothing where the file is not there. Throws
/// Error(usage) for one that is damaged.
using TensorSource =
    std::function<std::optional<NumberTensor>(const std::string& path, const std::string& key)>;

/// The files of the folder `root`. A path that leads out of it is of no file; so is one that Git LFS has not fetched.
TensorSource tensors_below(const std::string& root);

class Recorder {
 public:
  /// `folder`: what a suite says before the name of a recording.
  Recorder(std::string folder, TensorSource tensors)
      : folder_(std::move(folder)), tensors_(std::move(tensors)) {}

  /// How a layer's tokens are routed: as recorded, where that can be read; else `uniform`, and `faults` says why.
  /// `read` gets the fields that were.
  LayerRouting routing_of(const MoeLayer& layer, const TraceWorkload& workload, int64_t tokens,
                          std::set<std::string>& read, std::vector<std::string>& faults);

  /// The factor on routing weights; 1 where the workload gives none that topk_sort takes.
  double scale_of(const TraceWorkload& workload, std::set<std::string>& read) const;

  /// Name of a file -> its bytes. A name is of the content: the same routing is the same case everywhere.
  const std::map<std::string, std::string>& recordings() const { return recordings_; }

 private:
  std::optional<IntTable> read_ids(const MoeLayer& layer, const TraceWorkload& workload,
                                   int64_t tokens, std::set<std::string>& read,
                                   std::vector<std::string>& faults) const;
  std::optional<NumberTensor> read_tensor(const std::string& name, const TraceInput& input,
                                          const std::vector<int64_t>& shape,
                                          std::set<std::string>& read,
                                          std::vector<std::string>& faults) const;
  std::string keep(const IntTable& ids);

  std::string folder_;
  TensorSource tensors_;
  std::map<std::string, std::string> recordings_;
};

}  // namespace moegate
