// SPDX-License-Identifier: Apache-2.0
// Kernels in Python end to end on the host, with nothing but numpy: verified, measured, judged and
// reported as those in C++.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/store/sqlite.h"
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
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

class PythonVariantsTest : public PythonTest {
 protected:
  PythonVariantsTest() {
    write("variants.py", kVariants);
    write("sum.suite", "op = moe_sum\ntopk = 2\nhidden = 64\nscale = 2.5\n[s]\ntokens = 1, 3\n");
  }
};

TEST_F(PythonVariantsTest, AreVerifiedBesideTheOperatorsOwn) {
  const Outcome outcome = moegate("verify --suite ./sum.suite --module variants.py --device host");
  EXPECT_EQ(outcome.exit, 11) << outcome.err;
  const std::string& said = outcome.err;
  EXPECT_NE(said.find("numpy_wrong: out: "), std::string::npos) << said;
  EXPECT_NE(said.find("numpy_raises: RuntimeError: no such luck"), std::string::npos) << said;
  EXPECT_NE(said.find("in numpy_raises\n"), std::string::npos) << "the whole traceback: " << said;
  EXPECT_NE(outcome.out.find("7 ok, 1 unsupported, 2 wrong, 2 crashed"), std::string::npos)
      << outcome.out;
}

TEST_F(PythonVariantsTest, AreMeasuredAndRepeated) {
  const Outcome outcome = moegate(std::string("run --suite ./sum.suite --module variants.py ") +
                                  "--variant 'per_token|numpy_rows' --rounds 2" + kQuick);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const std::string rows = "FROM result WHERE variant = 'numpy_rows' AND span_ns > 0";
  EXPECT_EQ(query("results.sqlite", "SELECT count(*) " + rows), "4");
  EXPECT_EQ(query("results.sqlite", "SELECT count(DISTINCT code) " + rows + " AND code != ''"),
            "1");
  const std::string id = query("results.sqlite", "SELECT min(result_id) " + rows);
  EXPECT_NE(moegate("run --dry-run --like " + id).out.find("variants.py"), std::string::npos);
  EXPECT_EQ(moegate("run --like " + id + " --module variants.py").exit, 0);
}

TEST_F(PythonVariantsTest, WithoutTheirPackageAreUnsupported) {
  write("engine.py",
        "import moegate\n"
        "@moegate.variant('moe_sum', 'engine', backend='host', requires={'no-such': '>=0.11'},\n"
        "                 knobs={'A': [1]}, choose=lambda case, device: no_such.look_up(case))\n"
        "def engine(p): no_such.launch(p)\n");
  const std::string why = "needs no-such >=0.11, here not installed";
  const Outcome listed = moegate("list kernels --module engine.py --variant engine");
  EXPECT_NE(listed.out.find("  unsupported, " + why), std::string::npos) << listed.out;
  const Outcome ran = moegate(
      std::string("run --suite ./sum.suite --module engine.py --variant engine --rounds 1") +
      kQuick);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_NE(ran.out.find("  unsupported  " + why), std::string::npos) << ran.out;
}

TEST_F(PythonVariantsTest, AStoreNamesNoCodeThatIsRun) {
  ASSERT_EQ(
      moegate(std::string("run --suite ./sum.suite --variant per_token --rounds 1") + kQuick).exit,
      0);
  write("evil.py", "open('it-ran', 'w')\n");
  const std::string sql =
      "UPDATE run SET status = 'interrupted', options = json_set(options, '$.kernels', "
      "json_array('" +
      (folder_ / "evil.py").string() + "'))";
  Database((folder_ / "results.sqlite").string(), SQLITE_OPEN_READWRITE).execute(sql);
  const std::string row = query("results.sqlite", "SELECT min(result_id) FROM result");
  for (const std::string& command : {std::string("run --resume latest"), "run --like " + row}) {
    const Outcome refused = moegate(command);
    EXPECT_EQ(refused.exit, 2) << command << refused.err;
    EXPECT_NE(refused.err.find("if you trust these files, name all of them: --module"),
              std::string::npos)
        << refused.err;
  }
  EXPECT_FALSE(is_file(folder_ / "it-ran"));
  moegate("run --resume latest --module evil.py");
  EXPECT_TRUE(is_file(folder_ / "it-ran")) << "whoever names it means it";
}

TEST_F(PythonTest, AKeptProgramStillHasItsKernels) {
  const Outcome ran =
      moegate(std::string("run --keep-artifact --module operator.py ") + kDoubled + kQuick);
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  write("operator.py", "raise SystemExit('not this one')\n");
  const Outcome kept = shell(
      "env -u MOEGATE_HOME artifacts/*/bin/moegate verify --suite ./doubled.suite --device host "
      "--variant other --module artifacts/*/kernels/0/operator.py");
  EXPECT_EQ(kept.exit, 0) << kept.err;
  EXPECT_NE(kept.out.find("1 ok"), std::string::npos) << kept.out;
}

constexpr const char* kPicked = R"(
import moegate


class Picked(moegate.Operator):
    name = "picked"
    parameters = [moegate.Param("tokens")]
    yardstick = "plain"

    def tensors(self, case):
        ids = moegate.Input(
            "ids",
            "int32",
            (case.tokens,),
            lambda case, random: random.integers(0, 1000, case.tokens),
        )
        return [ids, moegate.Output("out", "int32", (case.tokens,))]

    def truth(self, inputs, case):
        return {"out": 3 * inputs["ids"]}


@moegate.variant("picked", "plain", backend="host")
def plain(p):
    p.out[:] = 3 * p.ids


answers = {}


@moegate.variant("picked", "remembers", backend="host")
def remembers(p):
    if id(p) not in answers:
        answers[id(p)] = 3 * p.ids
    p.out[:] = answers[id(p)]


@moegate.variant("picked", "packs_late", backend="host")
def packs_late(p):
    p.packed("answers", (p.tokens,), "int32")[:] = 3 * p.ids
    p.out[:] = p.packed("answers")
)";

TEST_F(PythonTest, WhatAFunctionFillsIsDrawnAnewToo) {
  write("picked.py", kPicked);
  write("picked.suite", "op = picked\n[p]\ntokens = 50\n");
  const Outcome verified = moegate("verify --suite ./picked.suite --module picked.py");
  EXPECT_EQ(verified.exit, 11) << verified.err;
  EXPECT_NE(verified.out.find("1 ok, 2 wrong"), std::string::npos) << verified.out << verified.err;
  EXPECT_NE(verified.err.find("remembers: on activations that it never saw: out: "),
            std::string::npos)
      << verified.err;
  EXPECT_NE(verified.err.find("packs 'answers' in a launch"), std::string::npos) << verified.err;
  const std::string run =
      "run --suite ./picked.suite --module picked.py --variant plain --rounds 1";
  EXPECT_EQ(moegate(run + kQuick).exit, 0);
  EXPECT_EQ(query("results.sqlite",
                  "SELECT value FROM metric WHERE name = 'unseen_activations' AND unit = 'share'"),
            "1.0");
}

constexpr const char* kNibbles = R"(
import numpy as np
import moegate

LIMITS = moegate.Tolerance(rtol=0.1, atol=0.1, rel_l2=0.1, row=0.3, scale=0.02)
EXACT = moegate.Tolerance(rtol=1e-6, atol=0, rel_l2=1e-6, row=1e-6, scale=1e-6)


def values(outputs):
    codes = outputs["codes"].astype(np.int64)
    pairs = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    return (pairs - 8) * outputs["scales"][:, None].astype(np.float32)


class Nibbles(moegate.Operator):
    name = "nibbles"
    parameters = [moegate.Param("tokens")]
    yardstick = "plain"

    def tensors(self, case):
        return [
            moegate.Input("x", "fp32", (case.tokens, 64), moegate.uniform(-1, 1)),
            moegate.Output("codes", "uint8", (case.tokens, 32), LIMITS, values=values),
            moegate.Output("scales", "fp32", (case.tokens,), EXACT),
        ]

    def truth(self, inputs, case):
        x = inputs["x"].astype(np.float64)
        return {"codes": x, "scales": np.abs(x).max(axis=1) / 7}


def quantise(p, shift):
    scales = np.abs(p.x).max(axis=1) / np.float32(7)
    codes = np.clip(np.floor(p.x / scales[:, None] + shift) + 8, 0, 15).astype(np.uint8)
    p.scales[:] = scales
    p.codes[:] = codes[:, 0::2] | codes[:, 1::2] << 4


@moegate.variant("nibbles", "plain", backend="host")
def plain(p):
    quantise(p, 0.5)


@moegate.variant("nibbles", "rounds_down", backend="host")
def rounds_down(p):
    quantise(p, 0)
)";

TEST_F(PythonTest, AFormatOfItsOwnIsComparedByItsValues) {
  write("nibbles.py", kNibbles);
  write("nibbles.suite", "op = nibbles\n[p]\ntokens = 50\n");
  const std::string verify = "verify --suite ./nibbles.suite --module nibbles.py";
  const Outcome verified = moegate(verify);
  EXPECT_EQ(verified.exit, 11) << verified.err;
  EXPECT_NE(verified.out.find("1 ok, 1 wrong"), std::string::npos) << verified.out << verified.err;
  EXPECT_NE(verified.err.find("rounds_down: codes: "), std::string::npos) << verified.err;
  EXPECT_EQ(moegate(verify + " --controls --variant plain").exit, 0);

  const auto refused = [&](const std::string& edit, const std::string& why) {
    shell("sed '" + edit + "' nibbles.py >other.py");
    const Outcome outcome = moegate("verify --suite ./nibbles.suite --module other.py");
    EXPECT_NE(outcome.exit, 0) << edit;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  refused("s/scale=0.02/scale=0.02, between=0.1/", "codes has values=");
  refused("s/LIMITS, values/None, values/", "codes has no tolerance");
  refused("s/pairs - 8/pairs[1:] - 8/", "could not be broadcast");
  refused("s/\"codes\": x,/\"codes\": x[:, 1:],/", "values= of codes returns 3200 elements");
}

// What is compiled where it is launched, here for each number of tokens, takes its time once: a
// row's first launch in a process says so, and no later one.
TEST_F(PythonTest, WhatALaunchCompilesIsCounted) {
  std::string text = read("operator.py");
  const std::string other = "def other(p):\n";
  text.replace(text.find(other), other.size(),
               "def other(p):\n    import time\n    if p.tokens not in compiled:\n"
               "        compiled.add(p.tokens)\n        time.sleep(0.4)\n");
  write("operator.py", text + "\n\ncompiled = set()\n");
  write("sweep.suite", "op = doubled\n[d]\ntokens = 4, 8, 12\n");
  const Outcome run = moegate(
      "run --suite ./sweep.suite --module operator.py --variant '^(plain|other)$' --rounds 2 "
      "--db " +
      std::string("c.sqlite") + kQuick);
  ASSERT_EQ(run.exit, 0) << run.err;
  const std::string calls =
      " FROM metric JOIN result USING (result_id) WHERE name = 'first_call' AND variant = ";
  EXPECT_EQ(query("c.sqlite", "SELECT count(*) || ' ' || sum(value >= 0.4)" + calls + "'other'"),
            "6 6");
  EXPECT_EQ(query("c.sqlite", "SELECT count(*)" + calls + "'plain'"), "6");
  EXPECT_EQ(
      moegate("report compile --db c.sqlite --format csv --columns variant,cases,Modules").out,
      "variant,cases,Modules\r\nother,3,\r\nplain,3,\r\n");
}

// As a server meets them: more and more tokens, in a process of the variant's own, which finds
// nothing that an earlier one compiled.
TEST_F(PythonTest, ASweepOfFirstLaunchesFindsNoCache) {
  std::string text = read("operator.py");
  const std::string other = "def other(p):\n";
  text.replace(text.find(other), other.size(),
               "def other(p):\n    import os, time\n"
               "    made = os.path.join(os.environ.get('TRITON_CACHE_DIR', '.'), str(p.tokens))\n"
               "    if not os.path.exists(made):\n        time.sleep(0.4)\n"
               "        open(made, 'w').close()\n");
  write("operator.py", text);
  write("sweep.suite", "op = doubled\n[d]\ntokens = 12, 4, 8\n");
  const std::string sweep =
      "profile compile --suite ./sweep.suite --module operator.py --device host "
      "--variant '^(plain|other)$' --db c.sqlite";
  const std::string of_other =
      " FROM metric JOIN result USING (result_id) JOIN process USING (process_id) WHERE variant = "
      "'other' AND name = ";
  for (const std::string run : {"1", "2"}) {
    const Outcome swept = moegate(sweep);
    EXPECT_EQ(swept.exit, 0) << swept.err;
    EXPECT_NE(swept.out.find("empty"), std::string::npos) << swept.out;
    EXPECT_EQ(query("c.sqlite", "SELECT count(*) || ' ' || sum(value >= 0.4)" + of_other +
                                    "'first_call' AND run_id = " + run),
              "3 3");
    EXPECT_EQ(query("c.sqlite",
                    "SELECT group_concat(value)" + of_other + "'jit_cache' AND run_id = " + run),
              "0.0,0.0,0.0");
  }
  EXPECT_EQ(query("c.sqlite",
                  "SELECT group_concat(tokens) FROM (SELECT variant || "
                  "json_extract(params, '$.tokens') AS tokens FROM result JOIN "
                  "bench_case USING (case_id) JOIN process USING (process_id) WHERE "
                  "run_id = 1 ORDER BY result_id)"),
            "other4,other8,other12,plain4,plain8,plain12");
  EXPECT_EQ(query("c.sqlite", "SELECT count(*) FROM process WHERE run_id = 1"), "2");
  EXPECT_EQ(query("c.sqlite", "SELECT count(*) FROM result WHERE samples > 0"), "0");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "jit"));
  for (const auto& left : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(left.path().filename().string().find("sweep-"), std::string::npos) << left.path();
  }

  const std::string columns = " --db c.sqlite --format csv --columns variant,cases,Caches";
  EXPECT_EQ(moegate("report compile" + columns).out,
            "variant,cases,Caches\r\nother,3,empty\r\nplain,3,empty\r\n");
  ASSERT_EQ(moegate(std::string("run --suite ./sweep.suite --module operator.py --variant "
                                "'^(plain|other)$' --rounds 1 --db c.sqlite") +
                    kQuick)
                .exit,
            0);
  EXPECT_EQ(moegate("report compile" + columns).out,
            "variant,cases,Caches\r\nother,3,as found\r\nplain,3,as found\r\n");
  const Outcome none = moegate("profile compile --suite tiny --device host --db c.sqlite");
  EXPECT_EQ(none.exit, 2) << none.out;
  EXPECT_TRUE(says(none, "no variant here is compiled at its launch"));
}

TEST_F(PythonTest, AnEarlierStoreIsReadAndTakesNoSweep) {
  const std::string rows = std::string(kDoubled) + "--module operator.py --db d.sqlite ";
  ASSERT_EQ(moegate("run --rounds 1 " + rows + kQuick).exit, 0);
  write(
      "earlier.py",
      "import sqlite3\nstore = sqlite3.connect('d.sqlite')\n"
      "store.execute('PRAGMA writable_schema = ON')\n"
      "store.execute('UPDATE sqlite_master SET sql = replace(sql, ?, ?)', (\"'compile', \", ''))\n"
      "store.commit()\n");
  const Outcome edited = shell("/usr/bin/python3 -I earlier.py");
  ASSERT_EQ(edited.exit, 0) << edited.err;
  EXPECT_EQ(moegate("report latency --db d.sqlite").exit, 0) << "an earlier store is read";
  const Outcome earlier = moegate("profile compile --device host " + rows);
  EXPECT_EQ(earlier.exit, 2) << earlier.out;
  EXPECT_TRUE(says(earlier, "--db d.sqlite: an earlier program made it"));
}

// Nobody counts modules on a host: the store is told what a GPU would have said.
TEST_F(PythonTest, ModulesThatASuiteLoadsMayNotBecomeMore) {
  write("sweep.suite", "op = doubled\n[d]\ntokens = 4, 8, 12\n");
  const std::string of_run = " --resources --baselines b --db r.sqlite --module operator.py";
  const auto store = [&](const std::string& sql) {
    Database((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE).execute(sql);
  };
  const auto expect = [&](const std::string& verb, int exit, const std::string& part) {
    const Outcome outcome = moegate(verb + of_run);
    EXPECT_EQ(outcome.exit, exit) << outcome.out << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find(part), std::string::npos)
        << "no '" << part << "' in: " << outcome.out << outcome.err;
  };
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(moegate(std::string("run --suite ./sweep.suite --module operator.py --variant "
                                  "'^(plain|other)$' --rounds 1 --db r.sqlite") +
                      kQuick)
                  .exit,
              0);
  }
  expect("gate --run 1", 2, "not 'nvidia-h200'");
  store("UPDATE device SET class = 'nvidia-h200'");
  expect("gate --run 1", 21, "no modules were counted");
  store(
      "INSERT INTO metric_name (name, unit) VALUES ('modules', 'modules');"
      "INSERT INTO metric_value (result_id, ordinal, metric_id, value)"
      " SELECT result_id, -1, (SELECT max(metric_id) FROM metric_name), 1 FROM result");
  expect("gate --run 1", 22, "there is no such file");
  expect("bless --run 1 --reason 'a module a case'", 0, "2 lines");
  EXPECT_NE(read("b/nvidia-h200/resources.tsv").find("\nmodules\tsweep\tother\t3\t3\t"),
            std::string::npos)
      << read("b/nvidia-h200/resources.tsv");
  expect("gate --run 1", 0, "PASS: 2 variants");
  store(
      "INSERT INTO metric_name (name, unit) VALUES ('module_codes', 'codes');"
      "INSERT INTO metric_value (result_id, ordinal, metric_id, value)"
      " SELECT result_id, -1, (SELECT max(metric_id) FROM metric_name), row_number() OVER rows < 3"
      " FROM result WHERE variant = 'other' WINDOW rows AS (PARTITION BY process_id)");
  const std::string kernels = "report compile --run 1 --db r.sqlite --format csv --columns ";
  EXPECT_EQ(moegate(kernels + "variant,Modules,Kernels").out,
            "variant,Modules,Kernels\r\nother,3,2\r\nplain,3,\r\n");

  const std::string more =
      "UPDATE metric_value SET value = {} WHERE metric_id = (SELECT "
      "metric_id FROM metric_name WHERE name = 'modules') AND result_id = (SELECT "
      "min(result_id) FROM result WHERE variant = 'other')";
  store(fmt::format(fmt::runtime(more), 2));
  expect("gate --run 1", 10, "worse: sweep other: modules 3 -> 4 in 3 cases");
  expect("gate --run 1 --variant plain", 0, "PASS: 1 variant");
  expect("gate --run 1 --variant none", 13, "matches no variant");
  store(fmt::format(fmt::runtime(more), 0));
  expect("gate --run 1", 13, "better: sweep other: modules 3 -> 2 in 3 cases");
  const Outcome against = moegate("gate --against 1 --run 2 --db r.sqlite");
  EXPECT_NE(against.out.find("First launches of other in sweep: modules 2 -> 3, "),
            std::string::npos)
      << against.out << against.err;
  EXPECT_EQ(against.out.find("First launches of plain"), std::string::npos) << against.out;
  store("DELETE FROM run_case WHERE case_id = 1");
  expect("gate --run 1", 13, "the file counts 3 cases");
  EXPECT_EQ(moegate("gate --baselines b --resources --run 1 --db r.sqlite").exit, 2);
  EXPECT_EQ(moegate("gate --baselines b --resources --module operator.py").exit, 2);
}

TEST_F(PythonTest, AnOperatorHasControlsOfItsOwn) {
  const Outcome listed = moegate("list kernels --module operator.py --variant forgetful");
  EXPECT_NE(listed.out.find("\ndoubled "), std::string::npos) << listed.err;
  const Outcome wrong = moegate("verify --suite ./doubled.suite --module operator.py");
  EXPECT_EQ(wrong.exit, 11) << wrong.err;
  EXPECT_NE(wrong.err.find("forgetful: signs: 1 of 256 elements differ"), std::string::npos)
      << wrong.err;
  const Outcome controls =
      moegate(std::string("verify --controls --module operator.py ") + kDoubled);
  EXPECT_EQ(controls.exit, 0) << controls.err;
  EXPECT_NE(controls.out.find("\ntoken dropped             1         0  "), std::string::npos)
      << controls.out;
}

TEST_F(PythonTest, ASuiteOfAGpusCanBeLookedAtWithoutOne) {
  write("gpu.py",
        "import moegate\nclass Gpu(moegate.Operator):\n  name = 'gpu_only'\n"
        "  parameters = [moegate.Param('tokens')]\n"
        "@moegate.variant('gpu_only', 'v')\ndef v(p): pass\n");
  write("gpu.suite", "op = gpu_only\n[g]\ntokens = 1, 2\n");
  const std::string list = "list cases --device host --module gpu.py --suite ./gpu.suite";
  EXPECT_NE(moegate(list).out.find("  gpu_only/tokens=2  (none on the host)\n"), std::string::npos);
  EXPECT_EQ(moegate(list + " --filter tokens=3").exit, 13);
  EXPECT_EQ(moegate("verify --device host --module gpu.py --suite ./gpu.suite").exit, 13);
}

TEST_F(PythonTest, AParameterThatDoesNotFitIsToldAsItsOperatorPutsIt) {
  const Outcome bad =
      moegate("verify --suite ./doubled.suite --axis tokens=0 --module operator.py");
  EXPECT_EQ(bad.exit, 2);
  EXPECT_EQ(bad.err, "moegate: doubled.suite [d]: tokens = 0 is not 1 or more\n");
}

TEST_F(PythonVariantsTest, AFileThatCannotBeTakenIsOneLine) {
  write("missing.py", "import no_such_module\n");
  write("unknown.py",
        "import moegate\n@moegate.variant('no_op', 'v', backend='host')\ndef v(p): pass\n");
  write("twice.py",
        "import moegate\n@moegate.variant('moe_sum', 'blocked', backend='host')\ndef v(p): pass\n");
  const auto refused = [&](const std::string& file, const std::string& why) {
    const Outcome outcome = moegate("verify --suite ./sum.suite --device host --module " + file);
    EXPECT_EQ(outcome.exit, 2) << file;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused("missing.py", "No module named 'no_such_module' in /");
  refused("missing.py",
          " -m pip install no_such_module`, or set MOEGATE_PYTHON to a Python that has it");
  refused("unknown.py", "operator 'no_op', which does not exist");
  refused("twice.py", "two host variants named 'blocked'");
  write("odd.py",
        "import moegate\n@moegate.variant('moe_sum', 'v', backend='host', tolerance='x')\n"
        "def v(p): pass\n");
  refused("odd.py", "odd.py/odd.py: the statement of v has a value of the wrong type");
  refused("none.py", "none.py: No such file or directory");
  const ScopedVariable python("MOEGATE_PYTHON", "/no/python");
  refused("variants.py", "'/no/python' cannot be run");
}

}  // namespace
}  // namespace moegate::test
