// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/plugin.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/test_fixture.h"
#include "harness/kernel/sdk.h"

namespace moegate::test {
namespace {

const std::string kOurs = MOEGATE_STAMP;

TEST(Stamp, OfTheSameSdkHasNoFault) {
  EXPECT_EQ(stamp_fault(kOurs, kOurs), "");
}

TEST(Stamp, EveryFactCounts) {
  for (const char* fact : {"SDK: ", "compiler: ", "C++ ABI: ", "headers: "}) {
    std::string theirs = kOurs;
    const size_t at = theirs.find(fact);
    ASSERT_NE(at, std::string::npos) << kOurs;
    theirs.insert(at + std::string(fact).size(), "x");
    const std::string fault = stamp_fault(theirs, kOurs);
    EXPECT_NE(fault.find(std::string("was built with '") + fact + "x"), std::string::npos) << fault;
  }
}

TEST(Stamp, OneThatEndsEarlyHasAFault) {
  const std::string cut = kOurs.substr(0, kOurs.find("headers: "));
  EXPECT_NE(stamp_fault(cut, kOurs).find("'nothing'"), std::string::npos);
}

TEST(WithKernels, OfNoFilesIsWhatTheProgramHas) {
  bool called = false;
  with_kernels({}, [&](const Registry& registry) {
    called = true;
    EXPECT_EQ(&registry, &own_registry());
  });
  EXPECT_TRUE(called);
}

TEST(WithKernels, AFileOfAnythingElseIsRefusedByName) {
  const ScratchFolder folder;
  const std::string file = (folder / "notes.so").string();
  std::ofstream(file) << "notes";
  const std::string why =
      refusal_of([&] { with_kernels({file}, [](const Registry&) { FAIL(); }); });
  EXPECT_NE(why.find(file + ": this is not a module of kernels"), std::string::npos);
}

}  // namespace
}  // namespace moegate::test
