// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/sass.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

constexpr const char* kPrinted = R"(        .target        sm_90a

//--------------------- .text._Z3addPf            --------------------------
        .section        .text._Z3addPf,"ax",@progbits
        .align        128
        .global         _Z3addPf
        .type           _Z3addPf,@function
_Z3addPf:
.text._Z3addPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
.L_x_0:
        /*0030*/                   LDG.E R2, desc[UR4][R2.64] ;   /* 0x0000000402027981 */
                                                                  /* 0x000ea8000c1e1900 */
        /*00f0*/                   NOP;
.text._Z3mulPf:
        /*0000*/                   EXIT ;
)";

TEST(Sass, ListsInstructionsByFunctionAndOffset) {
  const auto functions = parse_sass(kPrinted);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions.at("_Z3addPf"), (Sass{{0x00, "LDC R1, c[0x0][0x28]"},
                                            {0x10, "S2R R0, SR_TID.X"},
                                            {0x20, "@!P0 BRA `(.L_x_0)"},
                                            {0x30, "LDG.E R2, desc[UR4][R2.64]"},
                                            {0xf0, "NOP"}}));
  EXPECT_EQ(functions.at("_Z3mulPf"), (Sass{{0, "EXIT"}}));
}

TEST(Sass, PassesOverWhatIsNoInstruction) {
  EXPECT_TRUE(parse_sass("").empty());
  EXPECT_TRUE(parse_sass("/*0000*/ EXIT ;").empty()) << "of no function";
  for (const char* line : {"/*zz*/ EXIT ;", "/**/ EXIT ;", "/*0000*/ EXIT", "/*0010", "EXIT ;"}) {
    EXPECT_TRUE(parse_sass(std::string(".text.f:\n") + line).at("f").empty()) << line;
  }
}

/// A disassembler that is a script.
class NvdisasmTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(dir_ / "bin"); }
  std::string install(const std::string& script) {
    const std::filesystem::path program = dir_ / "bin/nvdisasm";
    std::ofstream(program) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return program.string();
  }

  ScratchFolder dir_;
  const ScopedVariable toolkit_{"CUDA_HOME", dir_.path()};
  const std::vector<uint8_t> cubin_ = {'E', 'X', 'I', 'T'};
};

TEST_F(NvdisasmTest, TheToolkitsOwnGoesFirst) {
  const std::string program = install("");
  EXPECT_EQ(find_nvdisasm(), program);
}

TEST_F(NvdisasmTest, PrintsTheFunctionThatIsAskedFor) {
  // Prints what the file holds, under the name of the symbol that it is asked for.
  const std::string program = install(
      "test \"$1 $2\" = '--print-code --function-index' || exit 1\n"
      "echo \".text.f$3:\"; echo \"/*0040*/ $(cat \"$4\") ;\"\n");
  EXPECT_EQ(disassemble(program, cubin_, "f7", 7), (Sass{{0x40, "EXIT"}}));
}

TEST_F(NvdisasmTest, AllOfTheCubinIsLookedAtWhereTheIndexIsAnothers) {
  const std::string program = install(
      "test \"$2\" = --function-index && { echo '.text.g:'; exit 0; }\n"
      "echo '.text.f:'; echo '/*0000*/ NOP ;'\n");
  EXPECT_EQ(disassemble(program, cubin_, "f", 7), (Sass{{0, "NOP"}}));
}

TEST_F(NvdisasmTest, WithoutOneThereIsNoText) {
  EXPECT_TRUE(disassemble("", cubin_, "f", 1).empty());
  EXPECT_TRUE(disassemble((dir_ / "bin/none").string(), cubin_, "f", 1).empty());
  EXPECT_TRUE(
      disassemble(install("echo '.text.f:'; echo '/*0000*/ NOP ;'; exit 1\n"), cubin_, "f", 1)
          .empty());
}

}  // namespace
}  // namespace moegate::test
