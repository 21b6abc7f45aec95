// SPDX-License-Identifier: Apache-2.0
// What an engine recorded, from its dump to the verdict on a recording that changed.
#include "harness/base/test_fixture.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class RecordedRoutingTest : public ProgramTest {
 protected:
  /// Runs Python with numpy as np, a generator r, and the package of this checkout.
  void python(const std::string& code) const {
    const Outcome outcome = shell("PYTHONPATH='" MOEGATE_SOURCE_DIR
                                  "/python' /usr/bin/python3 -B -c 'import numpy as np; "
                                  "from moegate import routing; r = np.random.default_rng(1); " +
                                  code + "'");
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
  }
  Outcome run() const {
    return moegate(
        "run --suite s.suite --device host --rounds 1 --min-samples 10 --max-samples 20 --budget "
        "50ms");
  }
};

TEST_F(RecordedRoutingTest, IsImportedReplayedAndNotComparedWithAnother) {
  python(
      "np.save(\"ids.npy\", [[r.permutation(8)[:2] for l in range(3)] for t in range(40)]); "
      "np.save(\"load.npy\", r.integers(1, 99, (2, 8))); "
      "routing.run([\"import\", \"ids.npy\", \"--out\", \"ids\"]); "
      "routing.run([\"import\", \"load.npy\", \"--out\", \"load\"])");
  write("s.suite",
        "op = moe_align\ntokens = 20\nblock = 16\nexperts = 8\ntopk = 2\n"
        "routing = replay:ids/, load:load/load_001.npy\n[s]\n");
  const Outcome verified = moegate("verify --suite s.suite --device host");
  EXPECT_EQ(verified.exit, 0) << verified.err;
  EXPECT_NE(verified.out.find(": 4 ok\n"), std::string::npos) << verified.out;

  EXPECT_EQ(run().exit, 0);
  // One file of three, which only some of the problem sets have.
  python("np.save(\"ids/layer_002.npy\", [r.permutation(8)[:2] for t in range(40)])");
  EXPECT_EQ(run().exit, 0);
  const Outcome judged = moegate("gate --against 1 --run 2");
  EXPECT_EQ(judged.exit, 21) << judged.out << judged.err;
  EXPECT_TRUE(says(judged,
                   "recording (routing=replay:ids/) or operator moe_align has other inputs "
                   "than the base's: 2 rows are not comparable"));
}

TEST_F(RecordedRoutingTest, ARankOfExpertParallelismHasItsExpertsRows) {
  python(
      "np.save(\"ids.npy\", [[r.permutation(8)[:2] for l in range(3)] for t in range(40)]); "
      "routing.run([\"import\", \"ids.npy\", \"--out\", \"ids\"])");
  const std::string layer = "tokens = 20\nexperts = 8\ntopk = 2\nrank = 1/4, busiest/2\n";
  const std::string size = "hidden = 128\ninter = 128\n";
  write("s.suite", layer + "routing = replay:ids/, uniform\n[a]\nop = moe_align\nblock = 16\n" +
                       "[b]\nop = moe_gate_up\n" + size + "[c]\nop = moe_down\n" + size +
                       "[d]\nop = fused_moe\n" + size);
  const Outcome verified =
      moegate("verify --suite s.suite --device host --controls --invariance 40");
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
  const Outcome measured = run();
  EXPECT_EQ(measured.exit, 0) << measured.out << measured.err;
  // 40 rows over four ranks; the busiest of two has half of them at least.
  const auto rows = [&](const std::string& rank) {
    return number("results.sqlite",
                  "SELECT max(json_extract(facts, '$.rows')) FROM run_case JOIN bench_case USING "
                  "(case_id) WHERE params LIKE '%" +
                      rank + "%'");
  };
  EXPECT_GE(rows("busiest/2"), 20);
  EXPECT_LT(rows("1/4"), 20);
  write("m.suite", layer + "op = moe_align\nblock = 16\n[s]\nrank = 1/4@map.npy\n");
  const auto placed = [&](const std::string& ranks) {
    python("np.save(\"map.npy\", [" + ranks + "])");
    return moegate(
        "run --suite m.suite --device host --rounds 1 --min-samples 10 --max-samples 20");
  };
  EXPECT_EQ(placed("0, 1, 2, 3, 0, 1, 2, 3").exit, 0);
  EXPECT_EQ(placed("1, 0, 2, 3, 0, 1, 2, 3").exit, 0);
  const Outcome judged = moegate("gate --against 2 --run 3");
  EXPECT_EQ(judged.exit, 21) << judged.out << judged.err;
  EXPECT_TRUE(says(judged, "recording (rank=1/4@map.npy) or operator moe_align has other"));
  EXPECT_TRUE(says(placed("0, 1, 2, 3"), "map.npy' has shape [4, 1], but the case has experts"));
  write("t.suite", layer + size + "op = fused_moe\n[s]\nrank = 0/3\n");
  EXPECT_TRUE(says(moegate("verify --suite t.suite"), "ranks that work: 1, 2, 4, 8"));
}

}  // namespace
}  // namespace moegate::test
