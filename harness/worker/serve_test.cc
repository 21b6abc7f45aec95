// SPDX-License-Identifier: Apache-2.0
// The worker's end over pipes, with a registry of one operator, which is this program's own under
// another name.
#include "harness/worker/serve.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "harness/base/rng.h"
#include "harness/worker/protocol.h"

namespace moegate::test {
namespace {

using nlohmann::json;

constexpr const char* kOp = "elsewhere";

Registry small_registry() {
  OpEntry op = find_op("qmoe_fc2");
  op.name = kOp;
  op.params.push_back({"taste", "sweet", "of no use"});
  op.validate = [](const Case& c) {
    if (c.get("tokens") == "13") usage_error("{}: 13 tokens bring bad luck", c.where());
  };
  Variant good = find_variant("qmoe_fc2", Backend::host, "single");
  good.op = kOp;
  Variant picky = good;
  picky.name = "picky";
  picky.unsupported = [](const Case&, const DeviceFacts&) { return "never"; };
  Variant broken = good;
  broken.name = "broken";
  broken.launch = [](Problem&, const Launch&) { throw Error(Exit::environment, "device gone"); };
  Variant python = good;
  python.name = "python";
  python.file = "kernels.py";
  return {.ops = {op}, .variants = {broken, picky, good, python}};
}

Case small_case(const std::string& tokens = "2") {
  Case c{.suite = "test", .section = "small", .op = kOp, .params = {}, .defaults = {}};
  const Registry registry = small_registry();
  for (const Param& p : registry.ops[0].params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  c.defaults = c.params;
  for (const auto& [name, value] : {std::pair<const char*, std::string>{"tokens", tokens},
                                    {"experts", "4"},
                                    {"topk", "2"},
                                    {"hidden", "32"},
                                    {"inter", "64"}}) {
    c.params[name] = value;
  }
  return c;
}

class ServeTest : public testing::Test {
 protected:
  ServeTest() : registry_(small_registry()) {
    EXPECT_EQ(pipe(down_), 0);
    EXPECT_EQ(pipe(up_), 0);
    old_pipe_ = std::signal(SIGPIPE, SIG_IGN);
    server_ = std::thread([this] {
      clean_ = serve(down_[0], up_[1], &registry_);
      close(up_[1]);
    });
  }
  ~ServeTest() override {
    finish();
    close(up_[0]);
    close(down_[0]);
    std::signal(SIGPIPE, old_pipe_);
  }

  /// Closes the requests and waits for the server. Whether it ended without a fault.
  bool finish() {
    if (down_[1] >= 0) close(down_[1]);
    down_[1] = -1;
    if (server_.joinable()) server_.join();
    return clean_;
  }
  json ask(const json& message) {
    EXPECT_TRUE(send(down_[1], message));
    return next();
  }
  json next() {
    json reply;
    if (receive(up_[0], 60, reply) != Arrival::message) reply = nullptr;
    return reply;
  }
  Hello start(int wire = kWire, const std::vector<std::string>& features = {}) {
    WorkerOptions options;
    options.device = "host";
    options.task = Task::verify;
    return decode<Hello>(ask(encode(Start{wire, features, options})));
  }
  Fault fault_of(const json& message) { return decode<Fault>(ask(message)); }
  void write_bytes(const std::string& bytes) {
    EXPECT_EQ(write(down_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  const Registry registry_;
  int down_[2], up_[2];
  bool clean_ = false;
  std::thread server_;
  void (*old_pipe_)(int);
};

TEST_F(ServeTest, HelloDescribesTheRegistry) {
  const Hello hello = start();
  EXPECT_EQ(hello.wire, kWire);
  EXPECT_EQ(hello.language, "C++");
  EXPECT_EQ(hello.device.backend, Backend::host);
  ASSERT_EQ(hello.operators.size(), 1u);
  EXPECT_EQ(hello.operators[0].name, kOp);
  EXPECT_EQ(hello.operators[0].params.back().default_value, "sweet");
  ASSERT_EQ(hello.variants.size(), 4u);
  EXPECT_EQ(hello.variants[1].name, "picky");
  EXPECT_TRUE(finish());
}

TEST_F(ServeTest, ChecksCases) {
  start();
  Case strange = small_case();
  strange.params["colour"] = "red";
  Case homeless = small_case();
  homeless.op = "nowhere";
  const auto reply = decode<Answers>(ask(encode(Check{{{small_case(), true, {"single", "picky"}},
                                                       {small_case("13"), false, {}},
                                                       {strange, false, {}},
                                                       {homeless, false, {}}}})));
  ASSERT_EQ(reply.answers.size(), 4u);
  EXPECT_EQ(reply.answers[0].error, "");
  EXPECT_EQ(reply.answers[0].unsupported, (std::map<std::string, std::string>{{"picky", "never"}}));
  EXPECT_EQ(reply.answers[1].error, "test.suite [small]: 13 tokens bring bad luck");
  EXPECT_NE(reply.answers[2].error.find("no parameter 'colour'"), std::string::npos);
  EXPECT_NE(reply.answers[3].error.find("unknown operator 'nowhere'"), std::string::npos);
  EXPECT_TRUE(finish());
}

TEST_F(ServeTest, RunsACase) {
  start();
  for (const std::string tokens : {"2", "3"}) {
    const auto reply = decode<Measured>(ask(encode(Request{small_case(tokens), "single", {}})));
    EXPECT_EQ(reply.result.status, Status::ok) << reply.result.why;
    EXPECT_EQ(reply.result.variant, "single");
    EXPECT_GT(reply.cost.flops, 0);
  }
  const auto picky = decode<Measured>(ask(encode(Request{small_case(), "picky", {}})));
  EXPECT_EQ(picky.result.status, Status::unsupported);
  EXPECT_EQ(decode<Throttled>(ask({{"kind", feature::kThrottle}})).reasons, "");
  EXPECT_TRUE(finish());
}

TEST_F(ServeTest, TellsWhenARowInPythonHasLaunched) {
  start(kWire, {feature::kLaunched});
  for (const std::string tokens : {"2", "3", "3"}) {
    EXPECT_EQ(kind_of(ask(encode(Request{small_case(tokens), "python", {}}))), "launched");
    EXPECT_EQ(decode<Measured>(next()).result.status, Status::ok);
  }
  decode<Measured>(ask(encode(Request{small_case(), "single", {}})));
  EXPECT_TRUE(finish());
}

TEST_F(ServeTest, TellsALaunchToWhoAsksForIt) {
  start();
  EXPECT_EQ(decode<Measured>(ask(encode(Request{small_case(), "python", {}}))).result.status,
            Status::ok);
}

TEST_F(ServeTest, AFaultIsTheLastMessage) {
  start();
  const Fault fault = fault_of(encode(Request{small_case(), "broken", {}}));
  EXPECT_EQ(fault.fault, "device gone");
  EXPECT_EQ(fault.exit, static_cast<int>(Exit::environment));
  EXPECT_TRUE(next().is_null());
  EXPECT_FALSE(finish());
}

TEST_F(ServeTest, AnotherVersionIsToldBoth) {
  const Fault fault = fault_of({{"wire", 1}, {"options", {{"task", 1}}}, {"cases", json::array()}});
  EXPECT_EQ(fault.exit, static_cast<int>(Exit::usage));
  EXPECT_NE(fault.fault.find("version 2"), std::string::npos) << fault.fault;
  EXPECT_NE(fault.fault.find("runner 1"), std::string::npos) << fault.fault;
}

TEST_F(ServeTest, AVersionIsNotTakenForAnother) {
  const json start = {{"kind", "start"}, {"wire", (int64_t{1} << 32) + kWire}, {"options", {}}};
  const Fault fault = fault_of(start);
  EXPECT_EQ(fault.exit, static_cast<int>(Exit::usage)) << fault.fault;
}

TEST_F(ServeTest, NonsenseInAMessageIsAFault) {
  start();
  const Fault fault = fault_of({{"kind", "dance"}});
  EXPECT_EQ(fault.exit, static_cast<int>(Exit::internal));
  EXPECT_NE(fault.fault.find("dance"), std::string::npos) << fault.fault;
}

TEST_F(ServeTest, ALengthThatNoMessageHasIsAFault) {
  start();
  write_bytes("\xff\xff\xff\xff");
  EXPECT_EQ(kind_of(next()), Fault::kKind);
}

TEST_F(ServeTest, NestingWithoutEndIsAFault) {
  start();
  constexpr uint32_t kDeep = 1 << 20;
  std::string bytes(reinterpret_cast<const char*>(&kDeep), sizeof kDeep);
  write_bytes(bytes + std::string(kDeep, '\x81'));
  EXPECT_EQ(kind_of(next()), Fault::kKind);
}

TEST_F(ServeTest, HalfAMessageEndsWithThePipe) {
  start();
  write_bytes(std::string("\x10\x00\x00\x00\xa1", 5));
  EXPECT_TRUE(finish());
}

TEST(ServeBytes, AnyBytesEndTheWorkerAndNoneHangsIt) {
  for (uint64_t n = 0; n < 200; ++n) {
    int down[2], up[2];
    ASSERT_EQ(pipe(down), 0);
    ASSERT_EQ(pipe(up), 0);
    std::string bytes;
    for (uint64_t i = 0; i < 1 + n; ++i) bytes += static_cast<char>(random_bits(7, n, i));
    // Every second time with the length that makes the rest a message.
    const auto size = static_cast<uint32_t>(bytes.size());
    if (n % 2 == 0) bytes.insert(0, reinterpret_cast<const char*>(&size), sizeof size);
    ASSERT_EQ(write(down[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(down[1]);
    EXPECT_FALSE(serve(down[0], up[1])) << n;
    json reply;
    EXPECT_EQ(receive(up[0], 10, reply), Arrival::message);
    EXPECT_EQ(kind_of(reply), Fault::kKind) << n;
    for (const int fd : {down[0], up[0], up[1]}) close(fd);
  }
}

}  // namespace
}  // namespace moegate::test
