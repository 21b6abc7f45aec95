// SPDX-License-Identifier: Apache-2.0
// Which objects a variant's hash covers, and the table that the build made.
#include "harness/kernel/object_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace moegate::test {
namespace {

using Objects = std::vector<ObjectCode>;

const Objects kObjects = {{"kernels/a/one.cc", "1111"},
                          {"kernels/a/helper.cc", "2222"},
                          {"kernels/a/detail/inner.cc", "3333"},
                          {"kernels/ab/other.cc", "4444"},
                          {"ext/mine.cc", "5555"}};

std::string code(const Objects& objects, const std::vector<std::string>& files) {
  return code_of_files(objects, files);
}

TEST(ObjectCode, CoversTheFoldersOfTheFilesAndWhatIsBelowThem) {
  const std::string before = code(kObjects, {"kernels/a/one.cc"});
  ASSERT_EQ(before.size(), 16u);
  const std::vector<bool> counts = {true, true, true, false, false};
  for (size_t i = 0; i < kObjects.size(); ++i) {
    Objects changed = kObjects;
    changed[i].hash = "6666";
    EXPECT_EQ(code(changed, {"kernels/a/one.cc"}) != before, counts[i]) << kObjects[i].file;
  }
  EXPECT_EQ(code(kObjects, {"kernels/a/helper.cc"}), before) << "the same folder";
  EXPECT_NE(code(kObjects, {"kernels/a/one.cc", "ext/mine.cc"}), before);
}

TEST(ObjectCode, FileNamesAndTheirOrderDoNotEnter) {
  const Objects renamed = {{"kernels/z/helper.cc", "2222"},
                           {"kernels/z/uno.cc", "1111"},
                           {"kernels/z/inner.cc", "3333"}};
  EXPECT_EQ(code(renamed, {"kernels/z/uno.cc"}), code(kObjects, {"kernels/a/one.cc"}));
}

TEST(ObjectCode, AFileWithoutObjectIsUnknown) {
  EXPECT_EQ(code(kObjects, {"kernels/a/device.cu"}), "");
  EXPECT_EQ(code(kObjects, {"kernels/a/one.cc", "kernels/a/device.cu"}), "");
  EXPECT_EQ(code(kObjects, {""}), "");
  EXPECT_EQ(code({}, {"kernels/a/one.cc"}), "");
}

TEST(ObjectCode, SaysWhichChipsItIsFor) {
  EXPECT_TRUE(runs_on("", 75));
  EXPECT_TRUE(runs_on("any", 75));
  EXPECT_TRUE(runs_on("sm_90a (wgmma)", 90));
  EXPECT_FALSE(runs_on("sm_90a (wgmma)", 100));
  EXPECT_FALSE(runs_on("sm_90a", 89));
  EXPECT_TRUE(runs_on("sm_90 (clusters)", 120));
  EXPECT_FALSE(runs_on("sm_90", 89));

  const Objects objects = {{"kernels/a/hopper.cu", "1111", "sm_90a (wgmma, TMA)"}};
  Variant variant{.op = "a", .name = "hopper", .backend = Backend::cuda};
  variant.unsupported = [](const Case&, const DeviceFacts&) { return "too small"; };
  variant.file = "kernels/a/hopper.cu";
  DeviceFacts device{.backend = Backend::cuda, .name = "NVIDIA L40S"};
  device.capability = 89;
  EXPECT_EQ(why_unsupported(variant, {}, device, objects),
            "needs sm_90a (wgmma, TMA); this is NVIDIA L40S (sm_89)");
  device.capability = 90;
  EXPECT_EQ(why_unsupported(variant, {}, device, objects), "too small");
}

// Files of the real registry: the operator, its host variants, and what else might stand there.
const Objects kOperator = {{"kernels/topk_sort/topk_sort.cc", "1111"},
                           {"kernels/topk_sort/helper.cc", "2222"},
                           {"kernels/topk_sort/host_chain.cc", "3333"},
                           {"kernels/topk_sort/host_fused.cc", "4444"},
                           {"kernels/topk_sort/mine.cu", "5555"},
                           {"kernels/topk_sort/other.cu", "6666"},
                           {"kernels/other/mine.cu", "7777"}};

Variant variant_of(Backend backend, const std::string& file) {
  Variant v;
  v.op = "topk_sort";
  v.name = "mine";
  v.backend = backend;
  v.file = file;
  return v;
}

/// For every object of kOperator, whether another hash of it changes what `code_of` says.
template <class CodeOf>
std::vector<bool> counting(const CodeOf& code_of) {
  const std::string before = code_of(kOperator);
  EXPECT_EQ(before.size(), 16u);
  std::vector<bool> counts;
  for (size_t i = 0; i < kOperator.size(); ++i) {
    Objects changed = kOperator;
    changed[i].hash = "8888";
    counts.push_back(code_of(changed) != before);
  }
  return counts;
}

TEST(ObjectCode, AHostVariantIsTheCxxObjects) {
  const Variant v = variant_of(Backend::host, "kernels/topk_sort/host_chain.cc");
  EXPECT_EQ(counting([&](const Objects& objects) { return host_code(v, objects); }),
            (std::vector<bool>{true, true, true, true, false, false, false}));
  EXPECT_EQ(host_code(variant_of(Backend::host, "kernels/topk_sort/mine.cu"), kOperator), "");
}

TEST(ObjectCode, ALaunchIsTheHostHalvesAndWhatDefinesNoHostVariant) {
  const Variant v = variant_of(Backend::cuda, "kernels/topk_sort/mine.cu");
  EXPECT_EQ(counting([&](const Objects& objects) { return launch_code(v, objects); }),
            (std::vector<bool>{true, true, false, false, true, true, false}));
  const Variant elsewhere = variant_of(Backend::cuda, "kernels/other/mine.cu");
  EXPECT_EQ(counting([&](const Objects& objects) { return launch_code(elsewhere, objects); }),
            (std::vector<bool>{true, true, false, false, true, true, true}));
  const Variant shares = variant_of(Backend::cuda, "kernels/topk_sort/host_fused.cc");
  EXPECT_EQ(counting([&](const Objects& objects) { return launch_code(shares, objects); }),
            (std::vector<bool>{true, true, false, true, true, true, false}))
      << "a file of both";
}

// A variant that launches other operators' kernels changes with them.
TEST(ObjectCode, TheCodeOfPartsCounts) {
  Objects objects;
  for (const char* op : {"fused_moe", "moe_align", "moe_gemm", "moe_sum", "silu_mul_quant"}) {
    for (const OpEntry& entry : all_ops()) {
      if (entry.file.find(op) != std::string::npos) objects.push_back({entry.file.c_str(), "1111"});
    }
  }
  objects.push_back({"kernels/topk_sort/topk_sort.cc", "1111"});
  for (const Backend backend : {Backend::host, Backend::cuda}) {
    Variant v = variant_of(backend, find_op("fused_moe").file);
    v.op = "fused_moe";
    const auto hash = [&] {
      return backend == Backend::host ? host_code(v, objects) : launch_code(v, objects);
    };
    if (backend == Backend::host) objects.push_back({"kernels/fused_moe/host_chain.cc", "1111"});
    const std::string before = hash();
    ASSERT_EQ(before.size(), 16u);
    for (ObjectCode& object : objects) {
      const bool counts =
          std::string(object.file).find("topk_sort") == std::string::npos &&
          (backend == Backend::host || !std::string(object.file).ends_with("chain.cc"));
      object.hash = "2222";
      EXPECT_EQ(hash() != before, counts) << object.file;
      object.hash = "1111";
    }
  }
}

TEST(ObjectCode, ALaunchWithoutObjectIsUnknown) {
  EXPECT_EQ(launch_code(variant_of(Backend::cuda, "kernels/topk_sort/new.cu"), kOperator), "");
  const Variant v = variant_of(Backend::cuda, "kernels/topk_sort/mine.cu");
  EXPECT_EQ(launch_code(v, std::span(kOperator).subspan(1)), "") << "the operator's";
}

TEST(ObjectCode, JoinedCodeIsKnownWhereBothAre) {
  const std::string both = joined_code("aaaa", "bbbb");
  EXPECT_EQ(both.size(), 16u);
  EXPECT_NE(joined_code("aaaa", "cccc"), both);
  EXPECT_NE(joined_code("cccc", "bbbb"), both);
  EXPECT_NE(joined_code("bbbb", "aaaa"), both);
  EXPECT_EQ(joined_code("aaaa", ""), "");
  EXPECT_EQ(joined_code("", "bbbb"), "");
}

// An object in a folder without operators and variants would count for nobody: what operators share
// is headers, and so part of the objects of whoever includes it.
TEST(ObjectCode, SharedCodeHasNoObjectsOfItsOwn) {
  std::vector<std::string> owners;
  for (const OpEntry& op : all_ops()) owners.push_back(op.file);
  for (const Variant& v : all_variants()) owners.push_back(v.file);
  std::erase_if(owners,
                [](const std::string& file) { return file.find('/') == file.npos; });  // tests'
  for (const ObjectCode& object : known_objects()) {
    const bool counts = std::ranges::any_of(owners, [&](const std::string& file) {
      return std::string_view(object.file).starts_with(file.substr(0, file.rfind('/') + 1));
    });
    EXPECT_TRUE(counts) << object.file << " has no operator or variant at or above it";
  }
}

TEST(ObjectCode, TheBuildKnowsEveryVariant) {
  int variants = 0;
  for (const Variant& v : all_variants()) {
    const std::string known = v.backend == Backend::host ? host_code(v) : launch_code(v);
    EXPECT_EQ(known.size(), 16u) << v.name << " in " << v.file;
    ++variants;
  }
  EXPECT_GT(variants, 0);
}

TEST(ObjectCode, FilesOfVariantsAreTheirOwnAndRelative) {
  for (const Variant& v : all_variants()) {
    if (v.op != "topk_sort") continue;
    const bool host = v.backend == Backend::host;
    EXPECT_EQ(v.file, "kernels/topk_sort/" + (host ? "host_" + v.name + ".cc" : v.name + ".cu"));
  }
  EXPECT_EQ(find_op("topk_sort").file, "kernels/topk_sort/topk_sort.cc");
}

}  // namespace
}  // namespace moegate::test
