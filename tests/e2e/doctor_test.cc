// SPDX-License-Identifier: Apache-2.0
// moegate doctor on the host: what it lists, what it stores, which change it can see.
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

using DoctorTest = ProgramTest;

TEST_F(DoctorTest, TheLastLineSaysWhichChangeIsSeen) {
  const Outcome doctor = moegate("doctor --device host --format csv");
  EXPECT_EQ(doctor.exit, 0) << doctor.err;
  const size_t last = doctor.out.rfind('\n', doctor.out.size() - 2);
  EXPECT_EQ(doctor.out.substr(last + 1).rfind("smallest change seen,", 0), 0u) << doctor.out;
  for (const char* row :
       {"\nclock tick,", "\nA/A ratio,", "\nPython,", "\nceiling read_bytes_per_s,"}) {
    EXPECT_NE(doctor.out.find(row), std::string::npos) << row << doctor.out;
  }
  EXPECT_NE(doctor.out.find("not stored: give --db"), std::string::npos) << doctor.out;
  EXPECT_EQ(doctor.out.find("hardware counters"), std::string::npos) << "no GPU was asked for";
}

TEST_F(DoctorTest, WhereTheCeilingsAreIsSaid) {
  const Outcome doctor = moegate("doctor --device host --db r.sqlite --format csv");
  EXPECT_EQ(doctor.exit, 0) << doctor.err;
  EXPECT_NE(doctor.out.find("stored in r.sqlite"), std::string::npos) << doctor.out;
  EXPECT_NE(query("r.sqlite", "SELECT value FROM ceiling WHERE name = 'read_bytes_per_s'"),
            "no row");
}

TEST_F(DoctorTest, AGpuThatIsNotThereIsAnEnvironmentFault) {
  const Outcome doctor = moegate("doctor --device cuda:99");
  EXPECT_EQ(doctor.exit, 21) << doctor.out;
  EXPECT_EQ(doctor.out, "");
}

}  // namespace
}  // namespace moegate::test
