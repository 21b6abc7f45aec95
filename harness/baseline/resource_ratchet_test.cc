// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/resource_ratchet.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/base/text.h"
#include "harness/baseline/baseline.h"
#include "harness/baseline/bless.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

constexpr int kSm90 = 90;

KernelResources kernel_taking(int registers, int64_t local_bytes = 0) {
  return {.file = "kernels/a/a.cu",
          .kernel = "void moegate::a::(anonymous namespace)::tile_kernel<64>(int)",
          .registers = registers,
          .local_bytes = local_bytes,
          .static_shared = 512,
          .max_threads = 256};
}

ResourceFile file_of(const std::vector<KernelResources>& kernels, const LaunchShapes& launched) {
  return {"nvidia-h200", "13.0.88", in_shapes(kernels, launched, {}, kSm90)};
}

/// Launched with 256 threads and no dynamic shared memory.
ResourceFile blessed(int registers, int64_t local_bytes = 0) {
  const KernelResources kernel = kernel_taking(registers, local_bytes);
  return file_of({kernel}, {{kernel.kernel, {{256, 0}}}});
}

/// "worse: blocks per SM 2 -> 1 (…)" a line each.
std::string changes_text(const ResourceFile& before, const std::vector<KernelResources>& now) {
  std::string text;
  for (const ResourceChange& c : changes_of(before, now, kSm90)) {
    text += std::string(name_of(c.kind)) + ": " + c.what + "\n";
  }
  return text;
}

TEST(ResourceRatchet, MoreLocalMemoryIsWorse) {
  EXPECT_EQ(changes_text(blessed(128), {kernel_taking(128, 24)}),
            "worse: local memory 0 -> 24 B/thread (spills, indexed arrays or calls)\n");
  EXPECT_EQ(changes_text(blessed(128, 16), {kernel_taking(128, 24)}),
            "worse: local memory 16 -> 24 B/thread (spills, indexed arrays or calls)\n");
  EXPECT_EQ(changes_text(blessed(128, 24), {kernel_taking(128)}),
            "better: local memory 24 -> 0 B/thread\n");
}

TEST(ResourceRatchet, RegistersCountByTheBlocksThatTheyCost) {
  EXPECT_EQ(changes_text(blessed(120), {kernel_taking(128)}), "");
  EXPECT_EQ(changes_text(blessed(128), {kernel_taking(168)}),
            "worse: blocks per SM 2 -> 1 (registers 128 -> 168)\n");
  EXPECT_EQ(changes_text(blessed(168), {kernel_taking(128)}),
            "better: blocks per SM 1 -> 2 (registers 168 -> 128)\n");
  KernelResources larger = kernel_taking(64);
  larger.static_shared = 100 << 10;
  EXPECT_EQ(changes_text(blessed(64), {larger}),
            "worse: blocks per SM 4 -> 2 (static shared memory 512 -> 102400 B)\n");
}

TEST(ResourceRatchet, WorseAndBetterAtOnce) {
  EXPECT_EQ(changes_text(blessed(168), {kernel_taking(128, 40)}),
            "worse: local memory 0 -> 40 B/thread (spills, indexed arrays or calls)\n"
            "better: blocks per SM 1 -> 2 (registers 168 -> 128)\n");
}

TEST(ResourceRatchet, NewAndGone) {
  KernelResources other = kernel_taking(32);
  other.kernel = "other_kernel(int)";
  EXPECT_EQ(changes_text(blessed(128), {other}),
            "new: 32 registers, local memory 0 B/thread\n"
            "gone: the program does not have this kernel\n");
}

TEST(ResourceRatchet, TheShapeThatLosesMostIsNamed) {
  const auto taking = [](int registers) {
    KernelResources kernel = kernel_taking(registers);
    kernel.max_threads = 1024;
    return kernel;
  };
  const ResourceFile file =
      file_of({taking(32)}, {{taking(32).kernel, {{256, 0}, {1024, 8}, {1024, 0}}}});
  ASSERT_EQ(file.rows.size(), 2u) << "8 bytes cost no block";
  EXPECT_EQ(file.rows[1].shape, (LaunchShape{1024, 8}));
  EXPECT_EQ(changes_text(file, {taking(40)}),
            "worse: blocks per SM 2 -> 1 in launches of 1024 threads and 8 B of dynamic shared "
            "memory (registers 32 -> 40)\n");
}

TEST(ResourceRatchet, WithoutARunTheBoundsOfLaunchesCount) {
  const ResourceFile file = file_of({kernel_taking(128)}, {});
  ASSERT_EQ(file.rows.size(), 1u);
  EXPECT_EQ(file.rows[0].shape, (LaunchShape{256, std::nullopt}));
  EXPECT_EQ(file.rows[0].blocks_per_sm, 2);
  EXPECT_EQ(changes_text(file, {kernel_taking(168)}),
            "worse: blocks per SM 2 -> 1 at most (registers 128 -> 168)\n");
  KernelResources unbounded = kernel_taking(128);
  unbounded.max_threads = 0;
  EXPECT_EQ(file_of({unbounded}, {}).rows[0].blocks_per_sm, std::nullopt);
}

TEST(ResourceRatchet, ABlockThatMayHaveFewerThreadsIsLaunchedWithFewer) {
  KernelResources half = kernel_taking(168);
  half.max_threads = 128;
  EXPECT_EQ(changes_text(blessed(168), {half}),
            "better: blocks per SM 1 -> 3 (threads 256 -> 128)\n");
}

TEST(ResourceRatchet, ShapesStayUntilARunGivesOthers) {
  const KernelResources kernel = kernel_taking(64);
  const ResourceFile before = file_of({kernel}, {{kernel.kernel, {{128, 1024}}}});
  const auto shapes = [&](const LaunchShapes& launched) {
    return in_shapes({kernel}, launched, before, kSm90).at(0).shape;
  };
  EXPECT_EQ(shapes({}), (LaunchShape{128, 1024}));
  EXPECT_EQ(shapes({{kernel.kernel, {{256, 2048}}}}), (LaunchShape{256, 2048}));
}

TEST(ResourceRatchet, ExitCodesAndFirstLines) {
  const auto verdict = [](const std::vector<KernelResources>& now, const char* compiler) {
    const ResourceFile before = blessed(128, 8);
    return verdict_of(changes_of(before, now, kSm90), before.compiler, compiler,
                      count_of(now.size(), "kernel"), "r.tsv");
  };
  EXPECT_EQ(verdict({kernel_taking(128, 8)}, "13.0.88").exit, Exit::ok);
  EXPECT_EQ(verdict({kernel_taking(128, 8)}, "13.1.1").exit, Exit::ok);
  EXPECT_EQ(verdict({kernel_taking(128)}, "13.0.88").exit, Exit::coverage);
  EXPECT_EQ(verdict({}, "13.0.88").exit, Exit::coverage);
  EXPECT_EQ(verdict({kernel_taking(128, 16)}, "13.1.1").exit, Exit::inconclusive);
  const ResourceVerdict worse = verdict({kernel_taking(128, 16)}, "13.0.88");
  EXPECT_EQ(worse.exit, Exit::latency);
  EXPECT_EQ(
      worse.text,
      "FAIL (exit 10): 1 worse of 1 kernel against r.tsv\n"
      "  worse: kernels/a/a.cu tile_kernel<64>: local memory 8 -> 16 B/thread (spills, "
      "indexed arrays or calls)\n"
      "if you want these changes, `moegate bless --resources --reason '...'` updates the file\n");
}

TEST(ResourceRatchet, ModulesMayNotBecomeMore) {
  const std::vector<ModuleRow> before = {{"s", "v", 17, 6, "triton 3.5.1"}, {"s", "w", 17, 1, ""}};
  const auto said = [&](std::vector<ModuleRow> now, const std::string& compiler) {
    for (ModuleRow& row : now) row.compiler = compiler;
    const ResourceVerdict verdict = verdict_of(changes_of(before, now), compilers_of(before),
                                               compilers_of(now), "2 variants", "r.tsv");
    return std::pair(verdict.exit, verdict.text);
  };
  EXPECT_EQ(said(before, "triton 3.5.1").first, Exit::ok);
  const auto more = said({{"s", "v", 17, 9, ""}, before[1]}, "triton 3.5.1");
  EXPECT_EQ(more.first, Exit::latency);
  EXPECT_NE(more.second.find("  worse: s v: modules 6 -> 9 in 17 cases\n"), std::string::npos)
      << more.second;
  const auto other = said({{"s", "v", 17, 9, ""}, before[1]}, "triton 3.6.0");
  EXPECT_EQ(other.first, Exit::inconclusive);
  EXPECT_NE(other.second.find("made by triton 3.6.0, the file's by triton 3.5.1"),
            std::string::npos)
      << other.second;
  EXPECT_EQ(said({{"s", "v", 17, 5, ""}, before[1]}, "triton 3.5.1").first, Exit::coverage);
  EXPECT_EQ(said({{"s", "v", 16, 6, ""}, before[1]}, "triton 3.5.1").first, Exit::coverage);
  EXPECT_EQ(said({before[0]}, "triton 3.5.1").first, Exit::coverage);
}

class ResourceFileTest : public ::testing::Test {
 protected:
  std::string bless(const ResourceFile& now, const std::string& reason = "because") {
    const fs::path path = folder_ / "nvidia-h200" / "resources.tsv";
    const ResourceFile before = is_file(path) ? read_resources(path) : ResourceFile{};
    std::vector<KernelResources> kernels;
    for (const ResourceRow& row : now.rows) kernels.push_back(row.kernel);
    return bless_resources(now, changes_of(before, kernels, kSm90), folder_,
                           {.author = "me", .reason = reason});
  }
  std::vector<std::string> kinds() const {
    std::vector<std::string> kinds;
    for (const Blessing& b : read_ledger(folder_ / "blessings.tsv")) kinds.push_back(b.kind);
    return kinds;
  }

  ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(ResourceFileTest, WrittenAndReadItIsTheSame) {
  KernelResources unbounded = kernel_taking(40, 8);
  unbounded.max_threads = 0;
  unbounded.kernel = "plain";
  ResourceFile file = file_of({kernel_taking(128), unbounded}, {});
  file.modules = {{"s", "v", 17, 6, "triton 3.5.1"}, {"s", "w", 1, 0, ""}};
  const fs::path path = folder_ / "r.tsv";
  write_file_atomically(path, format_resources(file));
  const ResourceFile again = read_resources(path);
  EXPECT_EQ(format_resources(again), format_resources(file));
  EXPECT_EQ(again.compiler, "13.0.88");
  ASSERT_EQ(again.modules.size(), 2u);
  EXPECT_EQ(again.modules[1].compiler, "");
  EXPECT_EQ(again.rows.at(1).shape, LaunchShape{});
  EXPECT_TRUE(changes_of(again, {kernel_taking(128), unbounded}, kSm90).empty());
}

TEST_F(ResourceFileTest, WhatItDoesNotKnowIsRefusedByLine) {
  const std::string good = format_resources(blessed(128));
  const auto why = [&](const std::string& text) -> std::string {
    write_file_atomically(folder_ / "r.tsv", text);
    return refusal_of([&] { read_resources(folder_ / "r.tsv"); });
  };
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(why(text).find(part), std::string::npos) << why(text);
  };
  EXPECT_EQ(why(good), "accepted");
  expect("", "empty");
  expect("#moegate-baseline 1\n", "r.tsv:1");
  expect(good + "a\tb\n", "r.tsv:5: has 2 fields");
  expect(good + "a\tb\t1\t0\t0\t-1\t0\t1\n", "'-1'");
  expect(good + good.substr(good.find("kernels/")), "given twice");
  const std::string modules = "modules\ts\tv\t17\t6\t-\n";
  EXPECT_EQ(why(good + modules), "accepted");
  expect(good + modules + modules, "'v' of s is given twice");
  expect(good + "modules\ts\tv\t17\t6\n", "r.tsv:5: is not 'modules', suite");
}

TEST_F(ResourceFileTest, BlessingsAreInTheLedger) {
  bless(blessed(128));
  EXPECT_NO_THROW(blessed_resources(folder_, "nvidia-h200"));
  EXPECT_NE(bless(blessed(128)).find("unchanged"), std::string::npos);
  EXPECT_NE(bless(blessed(168)).find("blocks per SM 2 -> 1"), std::string::npos);
  bless(blessed(128));
  ResourceFile other = blessed(128);
  other.compiler = "13.1.1";
  bless(other);
  EXPECT_EQ(kinds(), (std::vector<std::string>{"record", "accept_regression", "ratchet", "epoch"}));
}

TEST_F(ResourceFileTest, AnEditByHandIsRefused) {
  EXPECT_THROW(bless(blessed(128), " "), Error);
  EXPECT_TRUE(kinds().empty());
  EXPECT_THROW(blessed_resources(folder_, "nvidia-h200"), Error);
  bless(blessed(128));
  const fs::path path = folder_ / "nvidia-h200" / "resources.tsv";
  append_to_file(path, "kernels/a/a.cu\tmine\t8\t0\t0\t-\t-\t-\n");
  EXPECT_THROW(blessed_resources(folder_, "nvidia-h200"), Error);
  EXPECT_THROW(bless(blessed(168)), Error);
}

}  // namespace
}  // namespace moegate::test
