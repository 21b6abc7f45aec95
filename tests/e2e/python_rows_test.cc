// SPDX-License-Identifier: Apache-2.0
// Orders of routed rows that a variant in Python can ask a grouped GEMM for.
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

using PythonRowsTest = PythonTest;

constexpr const char* kRowOrders = R"(
import moegate


def decoded(p):
    return moegate.decode(p.x, "bf16"), moegate.decode(p.weights, "bf16")


@moegate.variant("moe_gate_up", "in_places", backend="host", rows="sorted")
def in_places(p):
    x, weights = decoded(p)
    for place, row in enumerate(p.sorted_token_ids):
        if row < p.tokens * p.topk:
            out = weights[p.expert_ids[place // p.block]] @ x[place]
            p.out[place] = moegate.encode(out, "bf16")


@moegate.variant("moe_down", "by_lists", backend="host", rows="listed")
def by_lists(p):
    x, weights = decoded(p)
    begin = 0
    for expert, count in enumerate(p.expert_rows):
        rows = p.rows_by_expert[begin : begin + count]
        begin += count
        out = p.routing_weights[rows, None] * (x[rows] @ weights[expert].T)
        p.out[rows] = moegate.encode(out, "bf16")


@moegate.variant("moe_down", "by_moon", backend="host", rows="by_moon")
def by_moon(p):
    pass
)";

TEST_F(PythonRowsTest, ComeInTheOrderThatTheyAskFor) {
  write("orders.py", kRowOrders);
  write("orders.suite",
        "dtype = bf16\nexperts = 6\ntopk = 2\nhidden = 64\ninter = 32\nblock = 16\n"
        "tokens = 2, 9\n[up]\nop = moe_gate_up\n[down]\nop = moe_down\n");
  const std::string verify =
      "verify --suite ./orders.suite --module orders.py --device host --variant ";
  const Outcome right = moegate(verify + "'^(in_places|by_lists)$'");
  EXPECT_EQ(right.exit, 0) << right.err;
  EXPECT_NE(right.out.find(": 4 ok"), std::string::npos) << right.out;
  const Outcome wrong = moegate(verify + "by_moon");
  EXPECT_NE(wrong.err.find("rows = 'by_moon' is not an order that this operator has"),
            std::string::npos)
      << wrong.err;
}

}  // namespace
}  // namespace moegate::test
