// SPDX-License-Identifier: Apache-2.0
// A launch that no graph can be captured of.
#pragma once

#include <string>

#include "harness/base/error.h"

namespace moegate {

/// What in a launch the refusal of a driver, a framework or a library is about, and what to
/// do instead.
inline std::string capture_advice(const std::string& why) {
  const auto says = [&](const char* part) { return why.find(part) != std::string::npos; };
  if (says("unjoined") || says("StreamCaptureUnjoined")) {
    return "it leaves work on a stream of its own: have the given stream wait for an event of it";
  }
  if (says("legacy stream") || says("default stream") || says("StreamCaptureImplicit")) {
    return "it uses the default stream: launch on the one that it is given";
  }
  if (says("when stream is capturing") || says("during capture") ||
      says("during CUDA graph capture") || says("StreamCaptureUnsupported") ||
      says("StreamCaptureInvalidated")) {
    return "it waits or allocates (.item(), .cpu(), synchronize(), cudaMalloc): do that in "
           "prepare(), or "
           "take a workspace";
  }
  return "it must neither wait nor allocate";
}

/// What is captured of a launch holds nothing.
class EmptyCapture : public Error {
 public:
  EmptyCapture()
      : Error(Exit::environment,
              "as a graph its launch holds no kernel, copy or fill: was it launched on another "
              "stream than "
              "the one that it is given?") {}
};

/// The variant allocates, waits or fails while it is captured. As a stream it may still be right.
class CannotCapture : public Error {
 public:
  explicit CannotCapture(const std::string& message) : Error(Exit::environment, message) {}
};

}  // namespace moegate
