// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/protocol.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <set>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

using nlohmann::json;

/// The messages that PROTOCOL.md shows.
std::vector<json> example_dialogue() {
  std::ifstream page(std::string(MOEGATE_SOURCE_DIR) + "/harness/worker/PROTOCOL.md");
  std::vector<json> messages;
  std::string line, text;
  bool inside = false;
  while (std::getline(page, line)) {
    if (line == "```json") {
      inside = true;
      text.clear();
    } else if (line == "```" && inside) {
      inside = false;
      messages.push_back(json::parse(text));
    } else if (inside) {
      text += line + "\n";
    }
  }
  return messages;
}

json through_its_type(const json& message) {
  const std::string kind = kind_of(message);
  if (kind == Start::kKind) return encode(decode<Start>(message));
  if (kind == Hello::kKind) return encode(decode<Hello>(message));
  if (kind == Check::kKind) return encode(decode<Check>(message));
  if (kind == Answers::kKind) return encode(decode<Answers>(message));
  if (kind == Request::kKind) return encode(decode<Request>(message));
  if (kind == Measured::kKind) return encode(decode<Measured>(message));
  for (const char* question : {feature::kThrottle, feature::kLoaded, feature::kEnvironment}) {
    if (kind == question) return {{"kind", question}};
  }
  if (kind == Items::kKind) return encode(decode<Items>(message));
  if (kind == Files::kKind) return encode(decode<Files>(message));
  if (kind == Throttled::kKind) return encode(decode<Throttled>(message));
  if (kind == Fault::kKind) return encode(decode<Fault>(message));
  throw Nonsense("no message is a '" + kind + "'");
}

/// Expects every field that is shown in what came back, with the same value.
void expect_kept(const json& shown, const json& back, const std::string& where) {
  if (shown.is_object()) {
    for (const auto& [name, value] : shown.items()) {
      ASSERT_TRUE(back.contains(name)) << where << " has no field " << name;
      expect_kept(value, back.at(name), where + "." + name);
    }
  } else if (shown.is_array()) {
    ASSERT_EQ(shown.size(), back.size()) << where;
    for (size_t i = 0; i < shown.size(); ++i) {
      expect_kept(shown[i], back[i], where + "[" + std::to_string(i) + "]");
    }
  } else {
    EXPECT_EQ(shown, back) << where;
  }
}

TEST(ProtocolTest, ThePageShowsEveryMessageAsItIs) {
  std::set<std::string> kinds;
  for (const json& message : example_dialogue()) {
    kinds.insert(kind_of(message));
    expect_kept(message, through_its_type(message), kind_of(message));
  }
  EXPECT_EQ(kinds.size(), 13u);
}

TEST(ProtocolTest, UnknownFieldsAreIgnoredAndAbsentOnesKeepTheirDefault) {
  const auto start = decode<Start>(
      {{"kind", "start"}, {"wire", 2}, {"colour", "red"}, {"options", {{"task", "verify"}}}});
  EXPECT_EQ(start.options.task, Task::verify);
  EXPECT_EQ(start.options.sampling.max_samples, 2000);
}

TEST(ProtocolTest, EnumeratorsGoByName) {
  const json start =
      encode(Start{.wire = kWire, .features = {}, .options = {.task = Task::controls}});
  EXPECT_EQ(start["options"]["task"], "controls");
  EXPECT_EQ(start["options"]["flush"], "read");
  Measured measured;
  measured.result.status = Status::bad_timer;
  measured.result.controls = {{"zeros", "out", ControlOutcome::accepted, ""}};
  EXPECT_EQ(encode(measured)["result"]["status"], "bad_timer");
  EXPECT_EQ(encode(measured)["result"]["controls"][0]["outcome"], "accepted");
  Hello hello;
  hello.device.backend = Backend::cuda;
  EXPECT_EQ(encode(hello)["device"]["backend"], "cuda");
}

TEST(ProtocolTest, WhatDoesNotFitIsNonsense) {
  const json good = encode(Measured{});
  const auto with = [&](const char* path, const json& value) {
    json bad = good;
    bad[json::json_pointer(path)] = value;
    return bad;
  };
  for (const json& bad :
       {json(), json(1), json("result"), json::array(), json::object(), encode(Throttled{}),
        with("/result/status", "splendid"), with("/result/status", 3),
        with("/result/span_ns", "fast"), with("/result/kernels", 7), with("/facts", "none"),
        with("/result", nullptr), with("/kind", 4)}) {
    EXPECT_THROW(decode<Measured>(bad), Nonsense) << bad;
  }
}

TEST(ProtocolTest, AnotherVersionIsAUsageErrorThatNamesBoth) {
  EXPECT_NO_THROW(check_wire(kWire, "a.out"));
  const std::string text = refusal_of([&] { check_wire(kWire + 1, "a.out"); });
  for (const std::string part : {"a.out", "version 3", "version 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(ProtocolTest, ANumberIsNeverTakenForAnother) {
  const auto with = [](const char* path, const json& value) {
    json message = encode(Measured{});
    message[json::json_pointer(path)] = value;
    return message;
  };
  EXPECT_EQ(decode<Measured>(with("/result/samples", 7)).result.samples, 7);
  EXPECT_EQ(decode<Measured>(with("/result/span_ns", 7)).result.span_ns, 7);
  for (const json& bad : {json(4294967296), json(-2147483649), json(1e300), json(2.5), json(true),
                          json(std::numeric_limits<double>::quiet_NaN())}) {
    EXPECT_THROW(decode<Measured>(with("/result/samples", bad)), Nonsense) << bad;
    EXPECT_THROW(decode<Hello>({{"kind", "hello"}, {"wire", bad}}), Nonsense) << bad;
    EXPECT_THROW(decode<Fault>({{"kind", "fault"}, {"exit", bad}}), Nonsense) << bad;
  }
  EXPECT_THROW(decode<Measured>(with("/result/flags", -1)), Nonsense);
}

TEST(ProtocolTest, AFaultIsAnErrorWhateverItsExitCode) {
  for (const Exit known : {Exit::usage, Exit::environment, Exit::internal}) {
    EXPECT_EQ(error_of({"gone", static_cast<int>(known)}).code(), known);
  }
  for (const int exit : {0, 10, 24, 130, 256, -1}) {
    EXPECT_EQ(error_of({"gone", exit}).code(), Exit::environment) << exit;
  }
}

TEST(ProtocolTest, ALatencyThatCannotBeIsSeen) {
  Result result;
  result.timer = "cupti";
  result.samples = 1;
  result.span_ns = result.median_ns = result.low_ns = result.high_ns = 5000;
  EXPECT_EQ(implausible(result, 0.5), "");
  const auto spoilt = [&](auto change) {
    Result bad = result;
    change(bad);
    return implausible(bad, 0.5);
  };
  EXPECT_NE(spoilt([](Result& r) { r.span_ns = 9e18; }), "");
  EXPECT_NE(spoilt([](Result& r) { r.span_ns = -1; }), "");
  EXPECT_NE(spoilt([](Result& r) { r.median_ns = std::nan(""); }), "");
  EXPECT_NE(spoilt([](Result& r) { r.low_ns = 6000; }), "");
  EXPECT_NE(spoilt([](Result& r) { r.ratio_low = 2; }), "");
  EXPECT_NE(spoilt([](Result& r) { r.samples = 0; }), "");
  EXPECT_NE(spoilt([](Result& r) { r.median_ns = r.high_ns = 1e16; }), "")
      << "none the store holds";
  EXPECT_NE(spoilt([](Result& r) { r.span_ns = 0; }), "");
  EXPECT_EQ(spoilt([](Result& r) {
              r.span_ns = 9e18;
              r.status = Status::wrong;
            }),
            "")
      << "nobody reads the latency of a wrong result";
}

TEST(ProtocolTest, AQuestionMayBeWhatDiffersFromTheOneBefore) {
  const Case first{"s", "a", "op", {{"tokens", "1"}, {"topk", "2"}}, {{"topk", "2"}}};
  Case second = first, other = first, more = first;
  second.params["tokens"] = "2";
  other.section = "b";
  more.params["new"] = "1";
  const std::vector<CaseQuestion> asked = {{.spec = first},
                                           {.spec = second},
                                           {.spec = second},
                                           {.spec = first, .resolve = true},
                                           {.spec = other, .resolve = true},
                                           {.spec = more, .resolve = true}};
  const nlohmann::json message = check_message(asked);
  EXPECT_EQ(message["questions"][1].dump(), R"({"params":{"tokens":"2"}})");
  EXPECT_EQ(message["questions"][2].dump(), R"({"params":{}})");
  EXPECT_TRUE(message["questions"][3].contains("spec"));
  const auto read = decode<Check>(message).questions;
  EXPECT_EQ(nlohmann::json(read), nlohmann::json(asked));
  EXPECT_EQ(nlohmann::json(decode<Check>(encode(Check{asked})).questions), nlohmann::json(asked));
}

}  // namespace
}  // namespace moegate::test
