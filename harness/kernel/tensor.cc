// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tensor.h"

#include <algorithm>
#include <numeric>

namespace moegate {

Tensor::Tensor(Device& device, std::string name, Role role, DType dtype, std::vector<int64_t> shape)
    : device_(device),
      name_(std::move(name)),
      role_(role),
      dtype_(dtype),
      shape_(std::move(shape)),
      size_(std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>())),
      guard_(role == Role::output || role == Role::workspace ? kGuardByte : kPoisonByte),
      base_(static_cast<std::byte*>(device.allocate(bytes() + 2 * kGuardBytes))) {
  device_.fill(base_, guard_, kGuardBytes);
  device_.fill(base_ + kGuardBytes + bytes(), guard_, kGuardBytes);
}

Tensor::~Tensor() {
  device_.release(base_);
}

void Tensor::fill_random(const RandomFill& what) {
  if (what.dtype != dtype_ || bytes() % unit_bytes(what) != 0) {
    give_up(Exit::internal,
            "tensor {}: {} bytes of {} cannot be filled with {}; a fill's dtype is the tensor's, "
            "and its units fill the tensor",
            name_, bytes(), name_of(dtype_), name_of(what.dtype));
  }
  if (what.kind == RandomFill::Kind::uniform && !is_floating(dtype_)) {
    give_up(Exit::internal,
            "tensor {}: no fill draws whole numbers of {}; draw them on the host (rng.h) and "
            "upload them",
            name_, name_of(dtype_));
  }
  device_.fill_random(data(), bytes() / unit_bytes(what), what);
  filled_ = what;
}

bool Tensor::refill(uint64_t change) {
  if (!filled_) return false;
  RandomFill what = *filled_;
  what.seed ^= change;
  device_.fill_random(data(), bytes() / unit_bytes(what), what);
  return true;
}

bool Tensor::move_to_row(int64_t first) {
  if (!filled_) return false;
  const size_t unit = unit_bytes(*filled_), row = bytes() / static_cast<size_t>(shape_.at(0));
  if (row % unit != 0) return false;
  RandomFill what = *filled_;
  what.first = static_cast<uint64_t>(first) * (row / unit);
  device_.fill_random(data(), bytes() / unit, what);
  return true;
}

bool Tensor::guards_intact() const {
  std::vector<uint8_t> guard(kGuardBytes);
  const auto intact = [&](const std::byte* from) {
    device_.download(guard.data(), from, kGuardBytes);
    return std::all_of(guard.begin(), guard.end(), [&](uint8_t b) { return b == guard_; });
  };
  return intact(base_) && intact(base_ + kGuardBytes + bytes());
}

void Tensor::check_host_size(size_t elements, size_t element_bytes) const {
  if (elements == static_cast<size_t>(size_) && element_bytes == size_of(dtype_)) return;
  give_up(Exit::internal, "tensor {}: {} elements of {} bytes on the host for {} of {}", name_,
          elements, element_bytes, size_, size_of(dtype_));
}

}  // namespace moegate
