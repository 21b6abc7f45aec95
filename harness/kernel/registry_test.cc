// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/registry.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

OpEntry op(const std::string& name) {
  OpEntry entry{};
  entry.name = name;
  return entry;
}

Variant variant(const std::string& of, const std::string& name, Backend backend) {
  Variant v{};
  v.op = of;
  v.name = name;
  v.backend = backend;
  return v;
}

/// Operator "add" with host variants old and fast and, for CUDA, chain and fused.
Registry registry() {
  return {
      .ops = {op("sort"), op("add")},
      .variants = {variant("add", "old", Backend::host), variant("add", "fast", Backend::host),
                   variant("add", "fused", Backend::cuda), variant("add", "chain", Backend::cuda)}};
}

/// What is said against a registry; "accepted" where nothing is.
std::string complaint(Registry registry) {
  return refusal_of([&] { sort_and_check(registry); }, Exit::internal);
}

TEST(RegistryTest, SortsByName) {
  Registry r = registry();
  sort_and_check(r);
  EXPECT_EQ(r.ops[0].name, "add");
  EXPECT_EQ(r.variants[0].name, "fast");
  EXPECT_EQ(r.variants[3].name, "fused");
}

TEST(RegistryTest, ABeforeIsAVariantOfItsOperatorAndBackend) {
  const auto with = [](const Befores& befores) {
    Registry r = registry();
    r.ops[1].before = befores;
    return complaint(r);
  };
  EXPECT_EQ(with({.host = {{"old"}}, .cuda = {{"chain"}}}), "accepted");
  EXPECT_EQ(with({.host = {}, .cuda = {{"chain"}, {"chian"}}}),
            "operator 'add' names before 'chian', but has no cuda variant of that name");
  EXPECT_EQ(with({.host = {{"chain"}}, .cuda = {}}),
            "operator 'add' names before 'chain', but has no host variant of that name");
}

TEST(RegistryTest, ABuildWithoutABackendHasNoUseForItsBefores) {
  Registry r = registry();
  r.ops[1].before = {.host = {}, .cuda = {{"chain"}}};
  std::erase_if(r.variants, [](const Variant& v) { return v.backend == Backend::cuda; });
  EXPECT_EQ(complaint(r), "accepted");
  r.variants.push_back(variant("add", "of_an_engine", Backend::cuda));
  r.variants.back().file = "engine.py";
  EXPECT_EQ(complaint(r), "accepted");
  r.ops[1].file = "engine.py";
  EXPECT_EQ(complaint(r),
            "operator 'add' names before 'chain', but has no cuda variant of that name");
}

TEST(RegistryTest, NamesAreGivenOnceAndExist) {
  const auto with = [](const auto& change) {
    Registry r = registry();
    change(r);
    return complaint(r);
  };
  EXPECT_EQ(with([](Registry& r) { r.ops.push_back(op("add")); }),
            "operator 'add' is defined twice; rename one");
  EXPECT_EQ(with([](Registry& r) { r.variants.push_back(r.variants[0]); }),
            "operator 'add' has two host variants named 'old'; rename one");
  EXPECT_EQ(with([](Registry& r) { r.variants[0].op = "ad"; }),
            "variant 'old' belongs to operator 'ad', which does not exist; define its Op");
  EXPECT_EQ(with([](Registry& r) { r.variants[0].leeway.factor = 1000; }),
            "variant 'old' of operator 'add' states a tolerance of 1000; a factor is 1 to 20");
  EXPECT_EQ(with([](Registry& r) { r.ops[0].parts = {"ad"}; }),
            "operator 'sort' has a part 'ad', which does not exist");
  EXPECT_EQ(with([](Registry& r) { r.ops[1].yardstick = "chain"; }),
            "operator 'add' names yardstick 'chain', but has no host variant of that name");
}

}  // namespace
}  // namespace moegate::test
