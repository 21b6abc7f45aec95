// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/wire.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>

#include "harness/values/fields_fixture.h"
#include "harness/worker/protocol.h"

namespace moegate::test {
namespace {

class WireTest : public ::testing::Test {
 protected:
  WireTest() { EXPECT_EQ(pipe(ends_), 0); }
  ~WireTest() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  int ends_[2];
};

TEST_F(WireTest, AResultArrivesAsItWas) {
  Result result;
  result.variant = "chain";
  result.status = Status::wrong;
  result.why = "off";
  result.slow = 7;
  result.accuracy.resize(1);
  result.accuracy[0].rel_l2 = std::numeric_limits<double>::quiet_NaN();
  result.accuracy[0].max_abs = std::numeric_limits<double>::infinity();
  result.kernels.push_back({"kernel<int>", "1x1x1", "32x1x1", "", 16, 0, 1024, 24, 12.5, 0});
  result.spans_ns.assign(100000, 3.5f);  // more than a pipe holds
  std::thread writer([&] { EXPECT_TRUE(send(ends_[1], result)); });
  nlohmann::json message;
  EXPECT_EQ(receive(ends_[0], 10, message), Arrival::message);
  writer.join();
  const Result back = message;
  EXPECT_EQ(back.status, Status::wrong);
  EXPECT_EQ(back.slow, 7);
  EXPECT_TRUE(std::isnan(back.accuracy[0].rel_l2));
  EXPECT_TRUE(std::isinf(back.accuracy[0].max_abs));
  EXPECT_EQ(back.kernels[0].dynamic_shared, 1024);
  EXPECT_EQ(back.spans_ns, result.spans_ns);
}

TEST_F(WireTest, EveryFieldOfAResultSurvives) {
  const auto result = Distinct().make<Result>();
  ASSERT_TRUE(send(ends_[1], result));
  nlohmann::json message;
  ASSERT_EQ(receive(ends_[0], 10, message), Arrival::message);
  EXPECT_EQ(message["judged"], "span") << "enumerators have names";
  message["added later"] = 1;
  const Result back = message;
  expect_same(back, result, kFields<Result>);
  expect_same(back, result, kParts<Result>);
  message.erase("judged");
  EXPECT_EQ(message.get<Result>().judged, Judged::none) << "a field that was not sent";
  message["status"] = "unheard of";
  EXPECT_THROW(message.get<Result>(), std::invalid_argument);
}

TEST_F(WireTest, TextsAreUtf8OnceTheyHaveArrived) {
  const nlohmann::json message = {{"why \xff", "bytes \xc0\x80 of a kernel"},
                                  {"list", {"\xfe", "µ"}}};
  ASSERT_TRUE(send(ends_[1], message));
  nlohmann::json arrived;
  ASSERT_EQ(receive(ends_[0], 10, arrived), Arrival::message);
  EXPECT_NO_THROW(arrived.dump());
  EXPECT_TRUE(arrived.contains("why \uFFFD")) << arrived;
  EXPECT_EQ(arrived["list"][1], "µ");
}

TEST_F(WireTest, TellsSilenceFromTheEnd) {
  nlohmann::json message;
  EXPECT_EQ(receive(ends_[0], 0.01, message), Arrival::timeout);
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_EQ(receive(ends_[0], 10, message), Arrival::closed);
}

}  // namespace
}  // namespace moegate::test
