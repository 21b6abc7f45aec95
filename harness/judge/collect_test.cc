// SPDX-License-Identifier: Apache-2.0
// What a store gives for a verdict comes to the same as all that it has.
#include <fmt/format.h>

#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

/// Results in which every number that a side is made of says something.
bool make_telling(Result& r, int round) {
  r.timer = "clock", r.tick_ns = 7, r.samples = 9;
  r.judged = Judged::ratio;
  r.span_ns = 5000 + round, r.min_ns = 4999, r.mean_ns = 5100 + round;
  r.low_ns = r.median_ns = r.high_ns = 5000;
  r.ratio = 0.5 + 0.01 * round, r.mean_ratio = 0.6 + 0.01 * round;
  r.yardstick = "chain", r.yardstick_code = "c0de", r.code = "beef";
  r.impossible = round == 0, r.suspect_warm = round == 1;
  r.deterministic = round != 2;
  r.metrics = {{kEnqueueMetric, "ns", 2000.0 + round},
               {"other", "ns", 1},
               {kInvarianceMetric, "tokens", 16.0 * round}};
  if (round == 2) r.status = Status::noisy, r.why = "loud";
  return true;
}

std::string text_of(const ByRound& values) {
  std::string text;
  for (const auto& [round, value] : values) text += fmt::format(" {}:{}", round, value);
  return text;
}

std::string text_of(const Sides& sides) {
  std::string text;
  for (const auto& [id, s] : sides) {
    text += fmt::format(
        "{} {} {}: {} {} {} |{}|{}|{}|{}|{}| {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n",
        id.suite, id.key, id.variant, s.level.mean_log, s.level.sd_log, s.level.n,
        text_of(s.by_round), text_of(s.times), text_of(s.means), text_of(s.mean_times),
        text_of(s.enqueues), s.tick, s.error, s.deterministic, static_cast<int>(s.invariance),
        name_of(s.judged), s.disturbed, s.yardstick, s.code, s.out, s.tail, s.timer,
        name_of(s.status), s.why, s.noisy, s.impossible, s.warm);
  }
  return text;
}

TEST_F(GateTest, AVerdictReadsEnough) {
  const int64_t run = add_run([](Row& row, int round) {
    row.result.variant = row.variant;
    return make_telling(row.result, round);
  });
  Store store = Store::open(db_, Store::Mode::read);
  const std::string whole = text_of(collect(store.levels(run)));
  EXPECT_NE(whole.find("chain@c0de beef"), std::string::npos) << whole;
  EXPECT_EQ(text_of(collect(store.each_level(run))), whole);
}

}  // namespace
}  // namespace moegate::test
