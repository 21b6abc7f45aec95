// SPDX-License-Identifier: Apache-2.0
// An operator in Python, in the scratch folder of a test that drives the program.
#pragma once

#include "harness/base/test_fixture.h"
#include "tests/e2e/program.h"

namespace moegate::test {

class PythonTest : public ProgramTest {
 protected:
  PythonTest() {
    setenv("MOEGATE_PYTHON", "/usr/bin/python3", 0);
    write("operator.py", kOperator);
    write("doubled.suite", "op = doubled\n[d]\ntokens = 4\n");
  }

  /// The operator in a file; variant `other` is off by a factor, which no load on the
  /// machine hides.
  void write_scaled(const std::string& file, const std::string& factor) const {
    std::string text = kOperator;
    const std::string right = "FACTOR = 1";
    text.replace(text.find(right), right.size(), "FACTOR = " + factor);
    write(file, text);
  }
  static constexpr const char* kQuick =
      " --device host --min-samples 10 --max-samples 20 --budget 100ms ";
  static constexpr const char* kDoubled = "--suite ./doubled.suite --variant other ";

 private:
  static constexpr const char* kOperator = R"(
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
};

}  // namespace moegate::test
