// SPDX-License-Identifier: Apache-2.0
// Variants that choose a configuration, end to end on the host: kernels that take a planted time.
#include <chrono>
#include <csignal>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

// COST says how long a launch takes, in tenths of a millisecond. What ships is a table of tokens,
// as engines have.
constexpr const char* kChoosing = R"(
import time

import moegate
import numpy as np

TABLE = {2: 3, 6: 3}  # by tokens


class Waited(moegate.Operator):
    name = "waited"
    parameters = [moegate.Param("tokens"), moegate.Param("routing", "uniform")]
    yardstick = "plain"

    def tensors(self, case):
        limits = moegate.Tolerance(rtol=1e-6, atol=1e-6, rel_l2=1e-6, row=1e-6, scale=1e-6)
        return [
            moegate.Input("x", "fp32", (case.tokens, 8), moegate.uniform(-1, 1)),
            moegate.Output("out", "fp32", (case.tokens, 8), limits),
        ]

    def truth(self, inputs, case):
        return {"out": inputs["x"].astype(np.float64)}


def wait(p, cost):
    end = time.perf_counter_ns() + cost * 100_000
    p.out[:] = p.x
    while time.perf_counter_ns() < end:
        pass


@moegate.variant("waited", "plain", backend="host")
def plain(p):
    wait(p, 1)


def shipped(case, device):
    nearest = min(TABLE, key=lambda tokens: abs(tokens - case.tokens))
    return moegate.Choice(
        {"COST": TABLE[nearest]},
        "file",
        file="waits.json",
        entry=nearest,
        made_with={"python": "1.0"},
    )


@moegate.variant("waited", "table", backend="host", knobs={"COST": [3, 9]}, choose=shipped)
def table(p):
    wait(p, p.config["COST"])


@moegate.variant(
    "waited",
    "lazy",
    backend="host",
    knobs=lambda case, device: [{"COST": cost} for cost in (3, 9)],
    choose=lambda case, device: {"COST": 8},
)
def lazy(p):
    wait(p, p.config["COST"])


@moegate.variant(
    "waited",
    "near",
    backend="host",
    knobs={"COST": [7, 14]},
    choose=lambda case, device: {"COST": 8},
)
def near(p):
    wait(p, p.config["COST"])


@moegate.variant(
    "waited",
    "routed",
    backend="host",
    knobs={"COST": [3, 5, 9]},
    choose=lambda case, device: {"COST": 3},
)
def routed(p):
    wait(p, p.config["COST"] if p.routing == "uniform" else {3: 9, 5: 5, 9: 3}[p.config["COST"]])


def broken(case, device):
    raise LookupError("no such table")


@moegate.variant("waited", "broken", backend="host", choose=broken)
def none(p):
    wait(p, 1)
)";

// Both grouped GEMMs, with the rows of a block from their configuration; p.config says the same.
constexpr const char* kBlocks = R"(
import moegate
import numpy as np

DOWN = 32


def launch(p):
    rows = p.config["BLOCK_SIZE_M"]
    x, weights = moegate.decode(p.x, "bf16"), moegate.decode(p.weights, "bf16")
    down = hasattr(p, "routing_weights")
    assert p.block == rows
    for i in range(p.num_tokens_post_padded[0] // rows):
        for r in p.sorted_token_ids[i * rows : (i + 1) * rows]:
            if r < len(p.out):
                product = weights[p.expert_ids[i]] @ x[r if down else r // p.topk]
                product *= p.routing_weights[r] if down else 1
                p.out[r] = moegate.encode(product, "bf16")


def variant(op, shipped):
    knobs = {"BLOCK_SIZE_M": [16, 32]}
    choose = lambda case, device: {"BLOCK_SIZE_M": shipped()}
    moegate.variant(op, "engine", backend="host", knobs=knobs, choose=choose)(launch)


variant("moe_gate_up", lambda: 32)
variant("moe_down", lambda: DOWN)
)";

class ChoiceTest : public PythonTest {
 protected:
  ChoiceTest() {
    write_table("2: 3, 6: 3");
    write("waited.suite", "op = waited\n[w]\ntokens = 2\n");
  }
  void write_table(const std::string& table) const {
    std::string text = kChoosing;
    const std::string plain = "2: 3, 6: 3";
    text.replace(text.find(plain), plain.size(), table);
    write("waits.py", text);
  }
  static constexpr const char* kSuite = " --suite ./waited.suite --module waits.py ";
  static std::string check(const std::string& more) {
    return std::string("tune --check --rounds 4 ") + kSuite + kQuick + more;
  }
  std::string outcomes() const {
    return query("out/tune.sqlite",
                 "SELECT group_concat(outcome || ' ' || json_extract(params, '$.tokens')) FROM "
                 "(SELECT * FROM verdict JOIN bench_case USING (key) WHERE against = 'regret' "
                 "ORDER BY CAST(json_extract(params, '$.tokens') AS INTEGER))");
  }
};

TEST_F(ChoiceTest, AVariantRunsWhatItChoosesAndSaysWhy) {
  const Outcome run =
      moegate(std::string("run --rounds 1 --variant 'table|lazy'") + kSuite + kQuick);
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(query("results.sqlite", "SELECT path FROM result WHERE variant = 'table'"),
            "file waits:2 for 2 tokens, made with python 1.0: COST=3");
  EXPECT_EQ(query("results.sqlite", "SELECT path FROM result WHERE variant = 'lazy'"),
            "default for 2 tokens: COST=8");
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) FROM result WHERE variant LIKE '%/%'"), "0");
}

TEST_F(ChoiceTest, AConfigurationRunsWhereItIsNamed) {
  const Outcome run =
      moegate(std::string("run --rounds 1 --variant '^table/COST=9$'") + kSuite + kQuick);
  EXPECT_EQ(run.exit, 0) << run.err;
  const Outcome made =
      moegate(std::string("run --rounds 1 --variant '^lazy/COST=5$'") + kSuite + kQuick);
  EXPECT_EQ(made.exit, 0) << made.err;
  EXPECT_EQ(
      query("results.sqlite", "SELECT group_concat(variant) FROM result WHERE span_ns > 4.5e5"),
      "table/COST=9,lazy/COST=5");
}

TEST_F(ChoiceTest, ALookupThatRaisesIsACrashedRow) {
  const Outcome run = moegate(std::string("verify --variant broken") + kSuite + "--device host");
  EXPECT_EQ(run.exit, 13) << run.err;
  EXPECT_NE(run.err.find("LookupError: no such table"), std::string::npos) << run.err;
  const Outcome checked = moegate(check("--variant broken"));
  EXPECT_EQ(checked.exit, 13) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("fails"), std::string::npos) << checked.out;
}

TEST_F(ChoiceTest, TheBestChoiceIsBest) {
  const Outcome checked = moegate(check("--variant table"));
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_EQ(outcomes(), "pass 2");
  EXPECT_NE(checked.out.find("stale: table: made with python 1.0, here 3."), std::string::npos)
      << checked.out;
  EXPECT_FALSE(is_file(folder_ / "out/tiles"));
}

// Of 1 to 6 tokens: 4 is as near to 2 as to 6, and takes the first of equals.
TEST_F(ChoiceTest, AWrongEntryIsARegretOnItsSideOfTheSwitch) {
  write_table("2: 3, 6: 9");
  write("waited.suite", "op = waited\n[w]\ntokens = 2, 6\n");
  const Outcome checked = moegate(check("--variant table"));
  EXPECT_EQ(checked.exit, 10) << checked.out << checked.err;
  EXPECT_EQ(outcomes(), "pass 2,pass 4,regressed 5,regressed 6");
  EXPECT_NE(checked.out.find("COST=3 is faster"), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("file waits:6 for 5 tokens"), std::string::npos) << checked.out;
  const Outcome report = moegate("report regret --db out/tune.sqlite --format csv");
  EXPECT_NE(report.out.find("waited/tokens=6"), std::string::npos) << report.out << report.err;
}

TEST_F(ChoiceTest, AKnownRegretMayPassForAWhile) {
  Outcome checked = moegate(check("--variant near"));
  EXPECT_EQ(checked.exit, 10) << checked.out << checked.err;
  const std::string klass = query("out/tune.sqlite", "SELECT class FROM device");
  const auto waiver = [&](const std::string& id, const std::string& metric,
                          const std::string& bound) {
    const auto day = [this](const std::string& from_now) {
      return trimmed(shell("date -u -d '" + from_now + " days' +%F").out);
    };
    return "[" + id +
           "]\ncases = waited/tokens=2\nmax_cases = 1\nvariant = near\nclass = " + klass +
           "\nmetric = " + metric + "\nmax_regression = " + bound +
           "\nreason = slow\nissue = org/repo/1\nowner = alice\ncreated = " + day("-1") +
           "\nexpires = " + day("9") + "\n";
  };
  write("w.ini", waiver("W-1", "latency", "25%") + waiver("W-2", "regret", "6%"));
  checked = moegate(check("--variant near --waivers w.ini"));
  EXPECT_EQ(checked.exit, 10) << "one is a gate's: " << checked.out << checked.err;
  EXPECT_NE(checked.out.find("beyond the 6 % of waiver W-2"), std::string::npos) << checked.out;
  write("w.ini", waiver("W-2", "regret", "25%"));
  checked = moegate(check("--variant near --waivers w.ini"));
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("waived by W-2 until "), std::string::npos) << checked.out;
  const Outcome report =
      moegate("report regret --db out/tune.sqlite --format csv --columns tokens,outcome,waiver");
  EXPECT_EQ(report.out, "tokens,outcome,waiver\r\n2,waived,W-2\r\n,,\r\n") << report.err;
}

TEST_F(ChoiceTest, OneConfigurationForAllRoutingsSaysWhatItLoses) {
  const Outcome checked = moegate(check("--variant routed --axis routing=uniform,zipf:1.2"));
  EXPECT_EQ(checked.exit, 10) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("best of the mean: waited/tokens=2 routed: COST=5, uniform: 6"),
            std::string::npos)
      << checked.out;
  const Outcome report =
      moegate("report regret --db out/tune.sqlite --format csv --columns routing,best,mean,Regret");
  EXPECT_EQ(report.out.find("routing,best,mean,Regret\r\nuniform,COST=3,COST=5,0.0 %\r\n"), 0u)
      << report.out << report.err;
  EXPECT_NE(report.out.find("\r\nzipf:1.2,COST=9,COST=5,"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find(", over 5 %: 1 of 2"), std::string::npos) << report.out;
}

TEST_F(ChoiceTest, FewerTokensThatTakeLongerAreACliff) {
  write_table("2: 9, 6: 3");
  write("waited.suite", "op = waited\n[w]\ntokens = 4, 6\n");
  const Outcome checked = moegate(check("--variant table"));
  EXPECT_EQ(checked.exit, 10) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("cliff: waited/tokens=4 table: 4 tokens take "), std::string::npos)
      << checked.out;
  const Outcome report = moegate("report cliffs --db out/tune.sqlite --format csv");
  EXPECT_NE(report.out.find("waited/tokens=4"), std::string::npos) << report.out << report.err;
}

TEST_F(ChoiceTest, AChoiceOutsideOfTheKnobsIsMeasuredToo) {
  const Outcome checked = moegate(check("--variant lazy"));
  EXPECT_EQ(checked.exit, 10) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("COST=3 is faster"), std::string::npos) << checked.out;
}

TEST_F(ChoiceTest, AnInterruptedCheckIsResumed) {
  Outcome outcome;
  std::thread running(
      [&] { outcome = shell("echo $$ >pid; exec " + program() + " " + check("--variant table")); });
  const auto rows = [&] { return number("out/tune.sqlite", "SELECT count(*) FROM result"); };
  while (rows() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(std::stoi(read("pid")), SIGINT);
  running.join();
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  const Outcome resumed = moegate("tune --resume latest --module waits.py");
  EXPECT_EQ(resumed.exit, 0) << resumed.out << resumed.err;
  EXPECT_EQ(outcomes(), "pass 2");
  EXPECT_EQ(query("out/tune.sqlite", "SELECT count(*) FROM run"), "1");
}

TEST_F(ChoiceTest, TunedIsCheckedWithoutAModule) {
  write("layer.suite",
        "tokens = 2\nexperts = 8\ntopk = 2\nhidden = 128\ninter = 128\n"
        "[up]\nop = moe_gate_up\n[down]\nop = moe_down\n");
  const Outcome checked = moegate(std::string("tune --check --rounds 4 --margin 900% --suite ") +
                                  "./layer.suite" + kQuick);
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_EQ(query("out/tune.sqlite", "SELECT count(*) FROM verdict WHERE against = 'regret'"), "1")
      << "one block for both operators: one choice";
}

TEST_F(ChoiceTest, ACaseTakesTheBlockThatAVariantShips) {
  write("blocks.py", kBlocks);
  write("layer.suite",
        "tokens = 9\nexperts = 4\ntopk = 2\nhidden = 32\ninter = 32\ndtype = bf16\n"
        "block = shipped\n[up]\nop = moe_gate_up\n[down]\nop = moe_down\n");
  const std::string suite = std::string(" --suite ./layer.suite") + kQuick;
  const Outcome run =
      moegate("run --rounds 1 --variant '^(engine|tuned)$' --module blocks.py" + suite);
  EXPECT_EQ(run.exit, 0) << run.out << run.err;
  EXPECT_EQ(query("results.sqlite",
                  "SELECT count(*) FROM result JOIN bench_case USING (case_id) "
                  "WHERE key LIKE '%block=shipped%' AND "
                  "(path LIKE '%BLOCK_SIZE_M=32' OR path LIKE '%block=32%')"),
            "4")
      << query("results.sqlite", "SELECT group_concat(path) FROM result");

  const Outcome checked =
      moegate("tune --check --rounds 4 --margin 900% --module blocks.py" + suite);
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_EQ(query("out/tune.sqlite", "SELECT count(*) FROM verdict WHERE against = 'regret'"), "1")
      << "one block for both operators: one choice";
  EXPECT_EQ(query("out/tune.sqlite",
                  "SELECT group_concat(name) FROM (SELECT DISTINCT json_extract(params, '$.block') "
                  "|| ' ' || variant AS name FROM result JOIN bench_case USING (case_id) ORDER BY "
                  "name)"),
            "16 engine/BLOCK_SIZE_M=16,shipped engine");

  shell("sed 's/DOWN = 32/DOWN = 16/' blocks.py >apart.py");
  const Outcome apart = moegate("run --module apart.py" + suite);
  EXPECT_EQ(apart.exit, 2) << apart.out << apart.err;
  EXPECT_TRUE(says(apart,
                   "block = shipped, but engine of moe_gate_up ships 32 and engine of "
                   "moe_down 16"));
  shell("sed 's/lambda: DOWN/lambda: {}[0]/' blocks.py >raises.py");
  const Outcome raises = moegate("run --module raises.py" + suite);
  EXPECT_EQ(raises.exit, 2) << raises.out << raises.err;
  EXPECT_TRUE(says(raises, "engine of moe_down cannot be asked"));
  EXPECT_TRUE(says(raises, "KeyError"));
  const Outcome none = moegate("run" + suite);
  EXPECT_EQ(none.exit, 2) << none.out << none.err;
  EXPECT_TRUE(says(none, "no variant of --module chooses a configuration of moe_"));
}

TEST_F(ChoiceTest, BadInputIsOneLine) {
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const Outcome outcome = moegate(arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << outcome.out;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  };
  refused(check("--out tiles"), "--check writes no file");
  refused(check("--variant plain"), "no variant of --module chooses a configuration");
  refused(check("--margin 5"), "--margin '5'");
  refused("tune --suite ./waited.suite --margin 5%", "--margin is for --check");
  refused("tune --check --rounds 3 --suite ./waited.suite", "--rounds 3");
}

}  // namespace
}  // namespace moegate::test
