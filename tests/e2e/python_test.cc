// SPDX-License-Identifier: Apache-2.0
// Kernels in Python end to end on the host, with nothing but numpy: verified, measured, judged and
// reported as those in C++; and commits of the repository that they live in.
#include <algorithm>
#include <cstdlib>

#include "harness/base/variable_fixture.h"
#include "tests/e2e/program.h"

namespace moegate {
namespace {

constexpr const char* kVariants = R"(
import numpy as np
import moegate


def rows_of(p):
    return moegate.decode(p.y, "bf16").reshape(p.tokens, p.topk, p.hidden)


@moegate.variant("moe_sum", "numpy_rows", backend="host")
def numpy_rows(p):
    """all rows in one go"""
    p.out[:] = moegate.encode(np.float32(p.scale) * rows_of(p).sum(axis=1), "bf16")


@moegate.variant("moe_sum", "numpy_wrong", backend="host")
def numpy_wrong(p):
    p.out[:] = moegate.encode(1.1 * rows_of(p).sum(axis=1), "bf16")


@moegate.variant("moe_sum", "numpy_raises", backend="host")
def numpy_raises(p):
    raise RuntimeError("no such luck")


@moegate.variant(
    "moe_sum",
    "numpy_packed",
    backend="host",
    prepare=lambda p: p.packed("scales", (p.hidden,), "fp32").fill(p.scale),
    workspace=lambda case: 4 * case.tokens * case.hidden,
    unsupported=lambda case, device: "one token only" if case.tokens > 1 else None,
)
def numpy_packed(p):
    sums = p.workspace.view(np.float32).reshape(p.tokens, p.hidden)
    np.sum(rows_of(p), axis=1, out=sums)
    p.out[:] = moegate.encode(sums * p.packed("scales"), "bf16")
)";

constexpr const char* kOperator = R"(
import numpy as np
import moegate

FACTOR = 1


class Doubled(moegate.Operator):
    name = "doubled"
    parameters = [moegate.Param("tokens"), moegate.Param("factor", "2")]
    yardstick = "plain"

    def validate(self, case):
        if case.tokens < 1:
            raise ValueError(f"tokens = {case.tokens} is not 1 or more")

    def tensors(self, case):
        limits = moegate.Tolerance(rtol=1e-6, atol=1e-6, rel_l2=1e-6, row=1e-6, scale=1e-6)
        return [
            moegate.Input("x", "fp32", (case.tokens, 64), moegate.uniform(-1, 1)),
            moegate.Input("bias", "fp32", (64,), lambda case, random: random.random(64), "weight"),
            moegate.Output("out", "fp32", (case.tokens, 64), limits),
            moegate.Output("signs", "int32", (case.tokens, 64)),
        ]

    def truth(self, inputs, case):
        x = inputs["x"].astype(np.float64)
        return {"out": case.factor * x + inputs["bias"], "signs": x > 0}

    def corruptions(self):
        def drop(outputs):
            outputs["out"][0] = 0

        return {"token_dropped": drop}


def compute(p):
    np.multiply(p.x, np.float32(p.factor), out=p.out)
    np.add(p.out, p.bias, out=p.out)
    np.greater(p.x, 0, out=p.signs, casting="unsafe")


@moegate.variant("doubled", "plain", backend="host")
def plain(p):
    compute(p)


@moegate.variant("doubled", "other", backend="host")
def other(p):
    compute(p)
    p.out *= np.float32(FACTOR)


@moegate.variant("doubled", "forgetful", backend="host")
def forgetful(p):
    compute(p)
    p.signs[-1, -1] ^= 1
)";

class PythonTest : public ProgramTest {
 protected:
  PythonTest() {
    setenv("MOEGATE_PYTHON", "/usr/bin/python3", 0);
    write("variants.py", kVariants);
    write("operator.py", kOperator);
    write("sum.suite", "op = moe_sum\ntopk = 2\nhidden = 64\nscale = 2.5\n[s]\ntokens = 1, 3\n");
    write("doubled.suite", "op = doubled\n[d]\ntokens = 4\n");
  }
  const ScopedVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};

  /// The operator in a file; variant `other` is off by a factor, which no load on the machine hides.
  void write_scaled(const std::string& file, const std::string& factor) const {
    std::string text = kOperator;
    const std::string right = "FACTOR = 1";
    text.replace(text.find(right), right.size(), "FACTOR = " + factor);
    write(file, text);
  }
  void make_repository(const std::vector<std::string>& factors) const {
    std::string commands =
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
        "GIT_COMMITTER_EMAIL=a@b "
        "&& git init -q -b work engine && cd engine && mkdir bench";
    for (size_t i = 0; i < factors.size(); ++i) {
      const std::string file = "kernels" + std::to_string(i) + ".py";
      write_scaled(file, factors[i]);
      commands += " && cp ../" + file + " bench/kernels.py && echo " + std::to_string(i) +
                  " >number && git add -A && git commit -q -m 'Commit " + std::to_string(i) +
                  "' && git tag c" + std::to_string(i);
    }
    const Outcome made = shell(commands);
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  static constexpr const char* kQuick =
      " --device host --min-samples 10 --max-samples 20 --budget 100ms ";
  static constexpr const char* kDoubled = "--suite ./doubled.suite --kernel other ";
};

TEST_F(PythonTest, VariantsAreVerifiedBesideTheOperatorsOwn) {
  const Outcome outcome = moegate("verify --suite ./sum.suite --kernels variants.py --device host");
  EXPECT_EQ(outcome.exit, 11) << outcome.err;
  const std::string& said = outcome.err;
  EXPECT_NE(said.find("numpy_wrong: out: "), std::string::npos) << said;
  EXPECT_NE(said.find("numpy_raises: RuntimeError: no such luck"), std::string::npos) << said;
  EXPECT_NE(said.find("in numpy_raises\n"), std::string::npos) << "the whole traceback: " << said;
  EXPECT_NE(outcome.out.find("7 ok, 1 unsupported, 2 wrong, 2 crashed"), std::string::npos)
      << outcome.out;
}

TEST_F(PythonTest, VariantsAreMeasuredAndRepeated) {
  const Outcome outcome = moegate(std::string("run --suite ./sum.suite --kernels variants.py ") +
                                  "--kernel 'per_token|numpy_rows' --rounds 2" + kQuick);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const std::string rows = "FROM result WHERE variant = 'numpy_rows' AND span_ns > 0";
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) " + rows), "4");
  EXPECT_EQ(query("results.sqlite", "SELECT count(DISTINCT code) " + rows + " AND code != ''"),
            "1");
  const std::string id = query("results.sqlite", "SELECT min(result_id) " + rows);
  EXPECT_NE(moegate("repro " + id).out.find("variants.py"), std::string::npos);
  EXPECT_EQ(moegate("repro --run " + id).exit, 0);
}

TEST_F(PythonTest, AKeptProgramStillHasItsKernels) {
  const Outcome ran =
      moegate(std::string("run --keep-artifact --kernels operator.py ") + kDoubled + kQuick);
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  write("operator.py", "raise SystemExit('not this one')\n");
  const Outcome kept = shell(
      "env -u MOEGATE_HOME artifacts/*/bin/moegate verify --suite ./doubled.suite --device host "
      "--kernel other --kernels artifacts/*/kernels/$(cat artifacts/*/kernels/list)");
  EXPECT_EQ(kept.exit, 0) << kept.err;
  EXPECT_NE(kept.out.find("1 ok"), std::string::npos) << kept.out;
}

TEST_F(PythonTest, AnOperatorHasControlsOfItsOwn) {
  const Outcome listed = moegate("list kernels --kernels operator.py --kernel forgetful");
  EXPECT_NE(listed.out.find("| doubled "), std::string::npos) << listed.err;
  const Outcome wrong = moegate("verify --suite ./doubled.suite --kernels operator.py");
  EXPECT_EQ(wrong.exit, 11) << wrong.err;
  EXPECT_NE(wrong.err.find("forgetful: signs: 1 of 256 elements differ"), std::string::npos)
      << wrong.err;
  const Outcome controls =
      moegate(std::string("verify --controls --kernels operator.py ") + kDoubled);
  EXPECT_EQ(controls.exit, 0) << controls.err;
  EXPECT_NE(controls.out.find("| token dropped     |        1 |        0 |"), std::string::npos)
      << controls.out;
}

TEST_F(PythonTest, ASuiteOfAGpusCanBeLookedAtWithoutOne) {
  write("gpu.py",
        "import moegate\nclass Gpu(moegate.Operator):\n  name = 'gpu_only'\n"
        "  parameters = [moegate.Param('tokens')]\n"
        "@moegate.variant('gpu_only', 'v')\ndef v(p): pass\n");
  write("gpu.suite", "op = gpu_only\n[g]\ntokens = 1, 2\n");
  const std::string list = "list cases --device host --kernels gpu.py --suite ./gpu.suite";
  EXPECT_NE(moegate(list).out.find("| gpu_only/tokens=2 | (none on the host) |"),
            std::string::npos);
  EXPECT_EQ(moegate(list + " --filter tokens=3").exit, 13);
  EXPECT_EQ(moegate("verify --device host --kernels gpu.py --suite ./gpu.suite").exit, 13);
}

TEST_F(PythonTest, AParameterThatDoesNotFitIsToldAsItsOperatorPutsIt) {
  const Outcome bad =
      moegate("verify --suite ./doubled.suite --axis tokens=0 --kernels operator.py");
  EXPECT_EQ(bad.exit, 2);
  EXPECT_EQ(bad.err, "moegate: doubled.suite [d]: tokens = 0 is not 1 or more\n");
}

TEST_F(PythonTest, AFileThatCannotBeTakenIsOneLine) {
  write("missing.py", "import no_such_module\n");
  write("unknown.py",
        "import moegate\n@moegate.variant('no_op', 'v', backend='host')\ndef v(p): pass\n");
  write("twice.py",
        "import moegate\n@moegate.variant('moe_sum', 'blocked', backend='host')\ndef v(p): pass\n");
  const auto refused = [&](const std::string& file, const std::string& why) {
    const Outcome outcome = moegate("verify --suite ./sum.suite --device host --kernels " + file);
    EXPECT_EQ(outcome.exit, 2) << file;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused("missing.py", "No module named 'no_such_module'");
  refused("unknown.py", "operator 'no_op', which does not exist");
  refused("twice.py", "two host variants named 'blocked'");
  write("odd.py",
        "import moegate\n@moegate.variant('moe_sum', 'v', backend='host', tolerance='x')\n"
        "def v(p): pass\n");
  refused("odd.py", "odd.py/odd.py: v states what is of another type");
  refused("none.py", "none.py: No such file or directory");
  const ScopedVariable python("MOEGATE_PYTHON", "/no/python");
  refused("variants.py", "'/no/python' cannot be run");
}

TEST_F(PythonTest, EachSideHasItsFile) {
  write_scaled("off.py", "1.5");
  const std::string sides = "ab --base-kernels operator.py --head-kernels off.py --rounds 2 ";
  const Outcome wrong = moegate(sides + kDoubled + kQuick);
  EXPECT_EQ(wrong.exit, 11) << wrong.out << wrong.err;
  const Outcome same = moegate(
      std::string("ab --base-kernels operator.py --head-kernels operator.py ") + kDoubled + kQuick);
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("1 identical"), std::string::npos) << same.out;
}

TEST_F(PythonTest, CommitsOfTheirRepositoryAreCompared) {
  make_repository({"1", "1", "1.5"});
  const std::string common = std::string("--kernels bench/kernels.py ") + kDoubled + "--rounds 2 ";
  const Outcome wrong = moegate("ab --repo engine c0 c2 --build 'touch built' " + common + kQuick);
  EXPECT_EQ(wrong.exit, 11) << wrong.out << wrong.err;
  const std::string commit = shell("git -C engine rev-parse c2").out.substr(0, 40);
  EXPECT_NE(wrong.out.find("engine " + commit), std::string::npos) << wrong.out;
  EXPECT_EQ(shell("ls cache/moegate/*/" + commit + "/built").exit, 0);

  // The working tree: what is not committed counts, and is left as it is.
  shell("sed -i 's/FACTOR = 1.5/FACTOR = 1/' engine/bench/kernels.py");
  const Outcome same = moegate("ab --repo engine --base c1 " + common + kQuick);
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("1 identical"), std::string::npos) << same.out;
  EXPECT_EQ(shell("git -C engine status --porcelain").out, " M bench/kernels.py\n");

  const Outcome found = moegate(
      "bisect --repo engine --kernels bench/kernels.py --good c0 --bad c2 "
      "--case doubled --variant other --suite ./doubled.suite --rounds 2 "
      "--device host");
  EXPECT_EQ(found.exit, 0) << found.err;
  EXPECT_NE(found.out.find("first bad commit: " + commit), std::string::npos) << found.out;
}

TEST_F(PythonTest, ARunSaysWhichCommitItsKernelsAreOf) {
  make_repository({"1"});
  const std::string run = std::string("run --kernels engine/bench/kernels.py ") + kDoubled + kQuick;
  ASSERT_EQ(moegate(run).exit, 0);
  const std::string commit = shell("git -C engine rev-parse c0").out.substr(0, 40);
  const std::string tag = "SELECT value FROM tag WHERE name = 'commit' AND run_id = ";
  EXPECT_EQ(query("results.sqlite", tag + "1"), commit);
  shell("echo '# more' >>engine/bench/kernels.py");
  ASSERT_EQ(moegate(run).exit, 0);
  EXPECT_EQ(query("results.sqlite", tag + "2"), commit + "-dirty");
}

TEST_F(PythonTest, WhatIsMissingToCompareCommitsIsNamed) {
  make_repository({"1"});
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = moegate("ab --suite ./doubled.suite " + arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  refused("--repo engine c0", "give --kernels FILE");
  refused("--repo engine --kernels bench/kernels.py", "give --base REF");
  refused("--repo engine c9 --kernels bench/kernels.py", "'c9' is no commit of");
  refused("--repo cache c0 --kernels bench/kernels.py", "is in no git repository");
  refused("--repo engine c0 --kernels operator.py", "is not in --repo");
  refused("c0", "give --repo DIR");
  const std::string commit = shell("git -C engine rev-parse c0").out.substr(0, 12);
  refused("--repo engine c0 --kernels bench/none.so",
          "--kernels bench/none.so: --base 'c0' (" + commit +
              ") has no such file; give one that it has, or --build CMD where it is built");
  refused("--repo engine c0 --kernels bench/none.so --build 'touch built'",
          "has no such file after --build 'touch built'; give the path where that puts it");
}

TEST_F(PythonTest, ACommitThatDoesNotBuildIsNoFaultOfTheProgram) {
  make_repository({"1"});
  const std::string commit = shell("git -C engine rev-parse c0").out.substr(0, 12);
  const Outcome broken = moegate(
      "ab --suite ./doubled.suite --repo engine c0 --kernels bench/kernels.py --build 'echo no; "
      "exit 3'");
  EXPECT_EQ(broken.exit, 21) << broken.err;
  EXPECT_NE(broken.err.find("no\nmoegate: --base 'c0' (" + commit +
                            ") does not build: --build 'echo no; exit 3' exits with 3; all it said "
                            "is in " +
                            (folder_ / "cache").string()),
            std::string::npos)
      << broken.err;
  EXPECT_EQ(shell("cat cache/moegate/*/" + commit + "*.log").out, "no\n");
}

}  // namespace
}  // namespace moegate
