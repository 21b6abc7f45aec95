// SPDX-License-Identifier: Apache-2.0
#include "harness/values/environment_facts.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

EnvironmentItem package(const std::string& name, const std::string& version,
                        const std::string& digest = "d") {
  return {"package", name, version, digest};
}

std::vector<std::string> texts(const EnvironmentItems& base, const EnvironmentItems& head) {
  std::vector<std::string> all;
  for (const EnvironmentChange& change : changes_between(base, head)) all.push_back(change.text());
  return all;
}

TEST(EnvironmentFacts, ChangesAreNamedByWhatDiffers) {
  const EnvironmentItems base = in_order({package("triton", "3.5.1"),
                                          package("stub", "1.0", "a"),
                                          package("same", "2"),
                                          package("gone", "1"),
                                          {"variable", "VLLM_X", "1", ""},
                                          {"variable", "HF_TOKEN", "", "a"}});
  const EnvironmentItems head = in_order({package("triton", "3.6.0"),
                                          package("stub", "1.0", "b"),
                                          package("same", "2"),
                                          {"variable", "HF_TOKEN", "", "b"}});
  EXPECT_EQ(texts(base, head),
            (std::vector<std::string>{"gone 1 -> none", "stub 1.0 (other content)",
                                      "triton 3.5.1 -> 3.6.0", "HF_TOKEN (another value)",
                                      "VLLM_X 1 -> unset"}));
  EXPECT_TRUE(texts(base, base).empty());
  EXPECT_TRUE(texts({}, head).empty()) << "unknown is not another";
}

TEST(EnvironmentFacts, WhatDoesNotCountIsInNoHashAndNoChange) {
  const EnvironmentItems a = {package("triton", "3.5.1")};
  const EnvironmentItems b = in_order({package("triton", "3.5.1"),
                                       {.kind = "variable",
                                        .name = "TRITON_CACHE_DIR",
                                        .value = "/x",
                                        .digest = "",
                                        .counts = false}});
  EXPECT_EQ(hash_of(a), hash_of(b));
  EXPECT_TRUE(texts(a, b).empty());
  EXPECT_NE(hash_of(a), hash_of({package("triton", "3.6.0")}));
  EXPECT_NE(hash_of(a), hash_of({package("triton", "3.5.1", "other")}));
  EXPECT_NE(hash_of({package("ab", "c")}), hash_of({package("a", "bc")}));
  EXPECT_EQ(hash_of({}), "");
  EXPECT_EQ(hash_of({b.back()}), "") << "no code is another one because a folder has a name";
}

TEST(EnvironmentFacts, AVersionIsNamedOnce) {
  const EnvironmentItems base = {package("editable", "1", "a")};
  EXPECT_EQ(texts(base, in_order({package("editable", "1", "a"), package("editable", "1", "b")})),
            std::vector<std::string>{"editable 1 (other content)"});
}

TEST(EnvironmentFacts, OneLibraryUnderTwoPathsIsOne) {
  const EnvironmentItem library = {"library", "libcublas.so.13", "13.1.0", "c0de"};
  EXPECT_EQ(in_order({library, library}).size(), 1u);
}

TEST(EnvironmentFacts, OnlyWhatBothHaveCanContradict) {
  const EnvironmentItems first = {package("triton", "3.5.1")};
  const EnvironmentItems later = in_order({package("triton", "3.5.1"), package("torch", "2.9")});
  EXPECT_EQ(contradiction(first, later), "");
  EXPECT_EQ(contradiction(later, first), "");
  EXPECT_EQ(contradiction(later, {package("triton", "3.6.0")}), "package triton 3.5.1 -> 3.6.0");
  EXPECT_EQ(contradiction({package("editable", "1", "two")}, {package("editable", "1", "one")}), "")
      << "digests of the modules that were loaded";
  const EnvironmentItem one = {"library", "libcudart.so.13", "13.0", "a"};
  const EnvironmentItem two = {"library", "libcudart.so.13", "13.1", "b"};
  EXPECT_EQ(contradiction({one}, in_order({one, two})), "") << "a second one was loaded";
  EXPECT_EQ(contradiction({one}, {two}), "library libcudart.so.13 13.0 -> 13.1");
}

TEST(EnvironmentFacts, SecretsAreKnownByTheirNames) {
  for (const char* name : {"HF_TOKEN", "VLLM_API_KEY", "SGL_SECRET", "DG_PASSWORD"})
    EXPECT_TRUE(is_secret(name)) << name;
  EXPECT_FALSE(is_secret("VLLM_USE_DEEP_GEMM"));
}

}  // namespace
}  // namespace moegate::test
