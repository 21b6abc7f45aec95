// SPDX-License-Identifier: Apache-2.0
// A typed buffer on a device, between two guard bands that a stray write would change.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/kernel/device.h"
#include "harness/kernel/dtype.h"

namespace moegate {

/// What a tensor is to its operator. Decides what is poisoned (output, workspace) and what
/// cache = cold-weights leaves warm (activation).
enum class Role { activation, weight, output, workspace };

class Tensor {
 public:
  static constexpr size_t kGuardBytes = 256;
  /// Round outputs and the workspace. Inputs have poison round them: an element read beyond their
  /// end is NaN, or an index that there is not.
  static constexpr uint8_t kGuardByte = 0xa5;
  /// All ones: NaN in every floating type, -1 in the integers, so an element nobody wrote shows.
  static constexpr uint8_t kPoisonByte = 0xff;

  Tensor(Device& device, std::string name, Role role, DType dtype, std::vector<int64_t> shape);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const std::string& name() const { return name_; }
  Role role() const { return role_; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return size_; }  // elements
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }

  /// Device pointer, 256-byte aligned. T must have the size of the element type.
  template <class T = void>
  T* data() {
    return static_cast<T*>(static_cast<void*>(base_ + kGuardBytes));
  }
  template <class T = void>
  const T* data() const {
    return static_cast<const T*>(static_cast<const void*>(base_ + kGuardBytes));
  }

  /// Copies all elements from or to host memory; T must have the size of the element type.
  template <class T>
  void upload(const std::vector<T>& values) {
    check_host_size(values.size(), sizeof(T));
    device_.upload(data(), values.data(), bytes());
  }
  template <class T>
  std::vector<T> download() const {
    std::vector<T> values(static_cast<size_t>(size_));
    check_host_size(values.size(), sizeof(T));
    device_.download(values.data(), data(), bytes());
    return values;
  }
  void fill(uint8_t byte) { device_.fill(data(), byte, bytes()); }
  /// Throws Error(internal) when the tensor is not a whole number of the fill's units.
  void fill_random(const RandomFill& what);
  /// Of a tensor that fill_random() filled: other values of the same distribution, the same for the
  /// same `change`; 0 puts back the first ones. Returns whether it was filled so.
  bool refill(uint64_t change);
  /// Of a tensor that fill_random() filled: the values of rows first, first + 1, ... of an endless
  /// tensor whose first rows are this one's. Returns whether it was filled so, and a row is a whole
  /// number of units.
  bool move_to_row(int64_t first);
  bool guards_intact() const;

 private:
  void check_host_size(size_t elements, size_t element_bytes) const;

  Device& device_;
  std::string name_;
  Role role_;
  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t size_;
  uint8_t guard_;
  std::byte* base_;  // guard, elements, guard
  std::optional<RandomFill> filled_;
};

}  // namespace moegate
