// SPDX-License-Identifier: Apache-2.0
// Session::code() on a real GPU: what changes the identity of a launch, and what does not.
#include <gtest/gtest.h>

#include "harness/timing/timer.h"
#include "kernels/check/testing.h"

namespace moegate::test {
namespace {

class LaunchIdentity : public check::CudaVariants {
 protected:
  void SetUp() override {
    if (cuda_devices(nullptr).empty()) GTEST_SKIP() << "no CUDA device";
    const std::string fault = prepare_cupti(0);  // before the context of the device
    if (!fault.empty()) GTEST_SKIP() << fault;
    CudaVariants::SetUp();
  }

  /// On problems of its own, at addresses of their own.
  std::string code(const Variant& variant, const check::Params& params,
                   LaunchMode mode = LaunchMode::graph) {
    const Case c = check::case_of(
        variant.op, params, {{"tokens", "8"}, {"experts", "64"}, {"topk", "4"}, {"hidden", "64"}});
    const auto problem = find_op(c.op).make(*device_, c);
    if (variant.workspace) problem->reserve_workspace(variant.workspace(c, device_->facts()));
    if (variant.prepare) variant.prepare(*problem, {device_->stream(), device_->facts()});
    const auto timer = make_cupti_timer(*device_);
    const auto session = timer->open({&variant, {problem.get()}}, nullptr, {.launch = mode});
    for (int i = 0; i < 3; ++i) session->enqueue();
    session->collect();
    others_.push_back(device_->allocate(1 << 20));  // the next problem is somewhere else
    return session->code();
  }

  /// The same kernels, launched by host code of which nothing is known.
  static Variant launched_by_others(Variant variant) {
    variant.file = "elsewhere.cu";
    return variant;
  }

  void TearDown() override {
    for (void* memory : others_) device_->release(memory);
  }

  std::vector<void*> others_;
};

TEST_F(LaunchIdentity, HostCodeAndAddressesDoNotEnterThatOfAGraph) {
  for (const char* name : {"chain3", "fused_one_block"}) {
    const Variant& variant = find_variant("topk_sort", Backend::cuda, name);
    const std::string first = code(variant, {});
    EXPECT_EQ(first.size(), 16u) << name;
    EXPECT_EQ(code(variant, {}), first) << name;
    EXPECT_EQ(code(launched_by_others(variant), {}), first) << name;
  }
}

TEST_F(LaunchIdentity, ArgumentsAndContentsOfInputsEnter) {
  const Variant& variant = find_variant("topk_sort", Backend::cuda, "fused_one_block");
  const std::string first = code(variant, {});
  EXPECT_NE(code(variant, {{"seed", "77"}}), first) << "other inputs";
  EXPECT_NE(code(variant, {{"topk", "7"}}), first) << "another argument";
  EXPECT_NE(code(find_variant("topk_sort", Backend::cuda, "chain3"), {}), first);
}

TEST_F(LaunchIdentity, OfAStreamsChainTheHostCodeEnters) {
  const Variant& one = find_variant("topk_sort", Backend::cuda, "fused_one_block");
  const Variant& three = find_variant("topk_sort", Backend::cuda, "chain3");
  EXPECT_EQ(code(launched_by_others(one), {}, LaunchMode::stream),
            code(one, {}, LaunchMode::stream));
  EXPECT_EQ(code(three, {}, LaunchMode::stream).size(), 16u);
  EXPECT_EQ(code(launched_by_others(three), {}, LaunchMode::stream), "");
}

}  // namespace
}  // namespace moegate::test
