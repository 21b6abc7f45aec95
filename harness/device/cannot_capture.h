// SPDX-License-Identifier: Apache-2.0
// A launch that no graph can be captured of.
#pragma once

#include "harness/base/error.h"

namespace moegate {

/// The variant allocates, waits or fails while it is captured. As a stream it may still be right.
class CannotCapture : public Error {
 public:
  explicit CannotCapture(const std::string& message) : Error(Exit::environment, message) {}
};

}  // namespace moegate
