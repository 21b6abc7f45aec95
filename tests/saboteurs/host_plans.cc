// SPDX-License-Identifier: Apache-2.0
// Operator sabotaged_align: moe_align, whose output is a plan that a cheat makes where nobody times
// it: in prepare(), in its first launch, in the workspace.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/moe_align/moe_align.h"

namespace moegate::test {
namespace {

class SabotagedAlign final : public moe_align::MoeAlign {
 public:
  static constexpr const char* kOp = "sabotaged_align";
  using MoeAlign::MoeAlign;
};

const Op<SabotagedAlign> op({
    .help = "moe_align, by variants that must be caught",
    .params = {{"tokens", "", "T"},
               {"experts", "", "E"},
               {"topk", "", "k"},
               {"block", "", "BM"},
               {"ids", "valid", "valid, or some_skipped"},
               {"routing", "uniform", kRoutingHelp}},
    .yardstick = "honest",
    .parts = {"moe_align"},
});

const Variant& counting_sort() {
  static const Variant& variant = find_variant("moe_align", Backend::host, "counting_sort");
  return variant;
}

size_t workspace(const Case& c, const DeviceFacts& device) {
  return counting_sort().workspace ? counting_sort().workspace(c, device) : 0;
}

void honest(SabotagedAlign& problem, const Launch& where) {
  counting_sort().launch(problem, where);
}

/// The outputs of a problem, one after the other.
using Plan = std::vector<uint8_t>;

std::vector<Tensor*> outputs_of(Problem& problem) {
  std::vector<Tensor*> outputs;
  for (Tensor* tensor : problem.tensors()) {
    if (tensor->role() == Role::output) outputs.push_back(tensor);
  }
  return outputs;
}

Plan plan_of(Problem& problem) {
  Plan plan;
  for (const Tensor* out : outputs_of(problem)) {
    plan.insert(plan.end(), out->data<uint8_t>(), out->data<uint8_t>() + out->bytes());
  }
  return plan;
}

void follow(const uint8_t* plan, Problem& problem) {
  for (Tensor* out : outputs_of(problem)) {
    std::memcpy(out->data(), plan, out->bytes());
    plan += out->bytes();
  }
}

std::map<const Problem*, Plan>& prepared_plans() {
  static std::map<const Problem*, Plan> all;
  return all;
}

void plan_in_prepare(SabotagedAlign& problem, const Launch& where) {
  honest(problem, where);
  prepared_plans()[&problem] = plan_of(problem);
}

void follow_prepared(SabotagedAlign& problem, const Launch&) {
  follow(prepared_plans()[&problem].data(), problem);
}

void plan_once(SabotagedAlign& problem, const Launch& where) {
  static std::map<const Problem*, Plan> plans;
  Plan& plan = plans[&problem];
  if (!plan.empty()) return follow(plan.data(), problem);
  honest(problem, where);
  plan = plan_of(problem);
}

size_t room_for_a_plan(const Case& c, const DeviceFacts& device) {
  const auto shape = moe_align::MoeAlignShape::of(c);
  const auto elements = static_cast<size_t>(shape.capacity() + shape.blocks() + 1);
  return workspace(c, device) + elements * sizeof(int32_t);
}

/// As it is before a batch.
bool is_poisoned(const uint8_t* bytes) {
  return std::all_of(bytes, bytes + 16, [](uint8_t b) { return b == Tensor::kPoisonByte; }) ||
         std::all_of(bytes, bytes + 16, [](uint8_t b) { return b == 0x55; });
}

void plan_in_the_workspace(SabotagedAlign& problem, const Launch& where) {
  const Plan size = plan_of(problem);
  Tensor* scratch = problem.tensors().back();
  uint8_t* kept = scratch->data<uint8_t>() + scratch->bytes() - size.size();
  if (!is_poisoned(kept)) return follow(kept, problem);
  honest(problem, where);
  const Plan plan = plan_of(problem);
  std::memcpy(kept, plan.data(), plan.size());
}

const Kernel<SabotagedAlign> right({.name = "honest",
                                    .backend = Backend::host,
                                    .help = "no saboteur: has to be measured",
                                    .launch = honest,
                                    .workspace = workspace});
const Kernel<SabotagedAlign> in_prepare({.name = "plans_in_prepare",
                                         .backend = Backend::host,
                                         .help = "sorts in prepare(), and copies when it is timed",
                                         .launch = follow_prepared,
                                         .prepare = plan_in_prepare,
                                         .workspace = workspace,
                                         .expected = {Status::wrong, ""}});
const Kernel<SabotagedAlign> once({.name = "plans_once",
                                   .backend = Backend::host,
                                   .help = "sorts for a pointer that it never saw, then copies",
                                   .launch = plan_once,
                                   .workspace = workspace,
                                   .expected = {Status::wrong, "that it never saw"}});
const Kernel<SabotagedAlign> in_workspace(
    {.name = "plans_in_the_workspace",
     .backend = Backend::host,
     .help = "sorts where its workspace is as before the first launch",
     .launch = plan_in_the_workspace,
     .workspace = room_for_a_plan,
     .expected = {Status::wrong, "in timed launches"}});

}  // namespace
}  // namespace moegate::test
