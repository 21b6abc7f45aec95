// SPDX-License-Identifier: Apache-2.0
// What a runner reads of a worker: one message. A result goes where a run puts it: into a store,
// which a gate then reads.
#include "harness/store/store_fixture.h"
#include "harness/worker/protocol.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

using nlohmann::json;

/// The message as it arrives, once it was sent.
json sent(const json& message) {
  return parse_message(json::to_cbor(message));
}

/// Whether the message is a T; of one that is, that it is the same T once it is sent on.
template <class T>
bool read_as(const json& message, T& value) {
  try {
    value = decode<T>(message);
  } catch (const Nonsense&) {
    return false;
  }
  const json once = sent(encode(value)), twice = sent(encode(decode<T>(once)));
  require(json::to_cbor(once) == json::to_cbor(twice), std::string("another ") + T::kKind);
  return true;
}

class Run {
 public:
  Run() : store_(Store::open(own_file("reply.sqlite").string(), Store::Mode::write)) {
    store_.database().execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
    run_ = store_.begin_run(test::host_run());
  }

  void record(const Measured& measured) {
    const Case c{"tiny", "gpt", "topk_sort", {{"tokens", "8"}}, {}};
    const int64_t process = store_.begin_process(run_, 0, 1);
    // What a store does not take costs its row (campaign/recording.cc).
    const bool taken = accepted({Exit::store}, [&] {
      store_.add_result(process, c, measured.cost, measured.facts, measured.result);
    });
    if (!taken) return;
    const auto levels = store_.levels(run_);
    require(levels.size() == 1, "a result that the gate does not see");
    require(levels[0].variant == measured.result.variant, "a result of another variant");
    require(levels[0].result.status == measured.result.status, "a result of another status");
    store_.database().execute("DELETE FROM process; DELETE FROM run_case; DELETE FROM bench_case");
  }

 private:
  Store store_;
  int64_t run_ = 0;
};

}  // namespace

void reply(std::string_view bytes) {
  json message;
  try {
    message =
        parse_message(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  } catch (const Nonsense&) {
    return;
  }
  Hello hello;
  Answers answers;
  Throttled throttled;
  Files files;
  Fault fault;
  Measured measured;
  read_as(message, hello);
  read_as(message, answers);
  read_as(message, throttled);
  read_as(message, files);
  if (read_as(message, fault)) require(error_of(fault).code() != Exit::ok, "a fault that is none");
  if (!read_as(message, measured) || !implausible(measured.result, 1).empty()) return;
  static Run run;
  run.record(measured);
}

}  // namespace moegate::fuzz
