// SPDX-License-Identifier: Apache-2.0
// Candidates and blessings take only rows that were measured on a quiet machine, and a gate that
// compared nothing does not say that it passed.
#include <nlohmann/json.hpp>

#include "harness/gate_fixture.h"

namespace moegate {
namespace {

using Change = std::function<bool(Row&, int)>;

/// Every process of these rows had to share its cores; no `tokens`: of all rows.
Change disturbed(const std::string& tokens = "") {
  return [tokens](Row& row, int) {
    if (!tokens.empty() && row.tokens != tokens) return true;
    row.result.status = Status::noisy;
    row.result.why = "the machine was busy";
    return true;
  };
}

class CandidateTest : public GateTest {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    info_.device.backend = Backend::host;
    info_.timer = "clock";
  }
  int gate_candidate(Args more = {}) {
    more.insert(more.end(), {"--candidate", (dir_ / "cand").string()});
    return gate(std::move(more));
  }
  bool starts(const std::string& text) const { return out_.rfind("**" + text, 0) == 0; }
  fs::path candidate() const { return dir_ / "cand" / "nvidia-h200" / "nightly.tsv"; }
};

TEST_F(CandidateTest, BlessRefusesADisturbedRow) {
  add_run(disturbed("8"));
  EXPECT_EQ(call(cmd_bless, {"--reason", "x"}), 2) << out_;
  EXPECT_TRUE(says("2 of 4 measured rows are too noisy for a baseline")) << out_;
  EXPECT_TRUE(says("\n  topk_sort/tokens=8 fused: the machine was busy")) << out_;
  EXPECT_TRUE(says("run again on a quiet machine")) << out_;
  EXPECT_FALSE(fs::exists(baseline()));
  EXPECT_FALSE(fs::exists(dir_ / "baselines" / "blessings.tsv"));
}

}  // namespace
}  // namespace moegate
