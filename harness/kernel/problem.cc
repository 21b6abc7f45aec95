// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/kernel.h"

#include "harness/kernel/check.h"

namespace moegate {

Tensor& Problem::make_tensor(std::string name, Role role, DType dtype, std::vector<int64_t> shape) {
  tensors_.push_back(
      std::make_unique<Tensor>(device_, std::move(name), role, dtype, std::move(shape)));
  return *tensors_.back();
}

Tensor* Problem::find_tensor(const std::string& name) const {
  for (const auto& tensor : tensors_) {
    if (tensor->name() == name) return tensor.get();
  }
  return nullptr;
}

Tensor& Problem::packed(const std::string& layout, size_t bytes,
                        const std::function<void(Tensor&)>& pack) {
  if (!may_pack_) {
    refused_ =
        "packs '" + layout + "' in a launch; prepare() packs weights, a launch finds them by name";
    throw Error(Exit::internal, refused_);
  }
  if (Tensor* made = find_tensor(layout)) return *made;
  Tensor& made = make_tensor(layout, Role::weight, DType::u8, {static_cast<int64_t>(bytes)});
  pack(made);
  return made;
}

Tensor& Problem::packed(const std::string& layout) {
  if (Tensor* made = find_tensor(layout)) return *made;
  throw Error(Exit::internal, "no weights were packed as " + layout + "; prepare() has to");
}

std::vector<Tensor*> Problem::tensors() const {
  std::vector<Tensor*> all;
  for (const auto& tensor : tensors_) all.push_back(tensor.get());
  if (workspace_) all.push_back(workspace_.get());
  return all;
}

void Problem::poison(uint8_t byte) {
  for (Tensor* tensor : tensors()) {
    if (tensor->role() == Role::output || tensor->role() == Role::workspace) tensor->fill(byte);
  }
}

bool Problem::replace_activations(uint64_t change) {
  bool replaced = false;
  for (const auto& tensor : tensors_) {
    if (tensor->role() == Role::activation) replaced |= tensor->refill(change);
  }
  return redraw(change) || replaced;
}

void Problem::move_to(int64_t first, int64_t tokens) {
  first_token_ = first;
  for (const auto& tensor : tensors_) {
    const int64_t rows = tensor->shape().at(0);
    if (tensor->role() != Role::activation || rows % tokens != 0) continue;
    tensor->move_to_row(first * (rows / tokens));
  }
  redraw(0);
}

Checked Problem::check_with(const Leeway& leeway) {
  leeway_ = leeway;
  limits_ = 0;
  return check();
}

void Problem::lay_out(const std::string& rows) {
  if (rows == "") return;
  usage_error("rows = '{}' is not an order that this operator has; leave it out", rows);
}

std::vector<Accuracy> Problem::check_rows(const std::vector<int64_t>&) {
  return {};
}

std::vector<SampledOutput> Problem::sampled_outputs_with(const Leeway& leeway) {
  leeway_ = leeway;
  return sampled_outputs();
}

std::string Problem::broken_guard() const {
  for (const Tensor* tensor : tensors()) {
    if (!tensor->guards_intact()) return tensor->name();
  }
  return {};
}

void Problem::reserve_workspace(size_t bytes) {
  if (bytes == 0 || (workspace_ && workspace_->bytes() >= bytes)) return;
  workspace_ = std::make_unique<Tensor>(device_, "workspace", Role::workspace, DType::u8,
                                        std::vector<int64_t>{static_cast<int64_t>(bytes)});
}

}  // namespace moegate
