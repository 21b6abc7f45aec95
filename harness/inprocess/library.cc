// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <string>

#include "harness/inprocess/in_process.h"
#include "harness/inprocess/moegate.h"

using moegate::Error;
using moegate::Exit;
using nlohmann::json;

struct moegate_session {
  explicit moegate_session(const char* options) : in_process(json::parse(options)) {}
  moegate::InProcess in_process;
  std::string answer;
};

namespace {

json failure(const std::string& why, Exit exit, bool busy = false) {
  return {{"error", why}, {"exit", static_cast<int>(exit)}, {"busy", busy}};
}

/// What a call answers, or why it cannot.
template <class Call>
json answer_of(Call call) {
  try {
    return call();
  } catch (const moegate::TimerBusy& e) {
    return failure(e.what(), e.code(), true);
  } catch (const Error& e) {
    return failure(e.what(), e.code());
  } catch (const std::exception& e) {
    return failure(e.what(), Exit::internal);
  }
}

}  // namespace

int moegate_abi(void) {
  return 1;
}

moegate_session* moegate_open(const char* options, const char** error) {
  static thread_local std::string why;
  try {
    return new moegate_session(options);
  } catch (const std::exception& e) {
    why = e.what();
    if (error) *error = why.c_str();
    return nullptr;
  }
}

const char* moegate_ask(moegate_session* session, const char* what, const char* question,
                        moegate_launch launch, void* user) {
  const json answer = answer_of([&]() -> json {
    const std::string asked = what;
    if (asked == "hash") return session->in_process.hash(json::parse(question));
    if (asked == "bench") return session->in_process.bench(json::parse(question), launch, user);
    if (asked == "watch") {
      moegate::InProcess::watch();
      return json::object();
    }
    moegate::usage_error("moegate_ask: '{}'; ask for bench, hash or watch", asked);
  });
  session->answer = answer.dump(-1, ' ', false, json::error_handler_t::replace);
  return session->answer.c_str();
}

void moegate_close(moegate_session* session) {
  delete session;
}
