// SPDX-License-Identifier: Apache-2.0
// What the runner and a worker say to each other, as types; PROTOCOL.md is the page. The worker may
// be another build of moegate (the base of an A/B) or another program altogether. A message is an
// object with a `kind`; its fields and enumerators go by name, a field that the receiver does not
// know is ignored, and one that is absent keeps its default.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/values/device_facts.h"
#include "harness/values/json_fields.h"
#include "harness/worker/wire.h"
#include "harness/worker/worker.h"

namespace moegate {

/// Version of the conversation; programs of different versions do not talk. It changes when a peer
/// that ignores unknown fields would misunderstand.
constexpr int kWire = 2;

/// What a peer can do beside answering `run`; a runner asks nothing of a worker that does not name
/// it.
namespace feature {
constexpr const char* kCheck = "check";      // answers `check`
constexpr const char* kLike = "like";        // reads a question that is like the one before
constexpr const char* kCanary = "canary";    // builds canaries in
constexpr const char* kKernels = "kernels";  // opens files of kernels
// Of both: after the first launch of a variant in Python comes a message of this kind, before the
// result of the row.
constexpr const char* kLaunched = "launched";
// Answers the question of this kind, which has no fields.
constexpr const char *kThrottle = "throttle", *kLoaded = "loaded", *kEnvironment = "environment";
// Beside these, the names of the tasks but verify and measure, which every worker has.
}  // namespace feature

// What a worker says of measured values, as JSON beside the described ones (json_fields.h). A field
// that the other side does not name keeps its default; one that this side does not know is ignored.

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Cost, flops, read_bytes, write_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fact, name, value)

struct Start {
  static constexpr const char* kKind = "start";
  int wire = 0;
  std::vector<std::string> features;
  WorkerOptions options;
};

struct Check {
  static constexpr const char* kKind = "check";
  std::vector<CaseQuestion> questions;
};

struct Answers {
  static constexpr const char* kKind = "answers";
  std::vector<CaseAnswer> answers;  // as many as there were questions
};

/// Answer to `run`.
struct Measured {
  static constexpr const char* kKind = "result";
  Result result;
  Cost cost;
  std::vector<Fact> facts;
};

struct Throttled {
  static constexpr const char* kKind = "throttled";
  std::string reasons;  // empty: none or unknown
};

struct Files {
  static constexpr const char* kKind = "files";
  std::vector<LoadedFile> files;
};

struct Items {
  static constexpr const char* kKind = "items";
  EnvironmentItems items;
};

/// The worker's last words. These two fields are those of every version, so that programs of
/// different versions can say that they are.
struct Fault {
  static constexpr const char* kKind = "fault";
  std::string fault;
  int exit = static_cast<int>(Exit::internal);  // base/error.h
};

// Hello and Request, of worker.h, are the messages "hello" and "run".

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Param, name, default_value, help)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(OpDescription, name, help, params, yardstick,
                                                before)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ExpectedResult, status, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Leeway, factor, between)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(VariantDescription, op, name, backend, language,
                                                help, leeway, expected)
template <>
inline constexpr auto kFields<Hello> = MOEGATE_FIELDS(Hello, wire, language, version, git_sha,
                                                      dirty, build, timer, timer_note, features,
                                                      device, operators, variants);
static_assert(count_unlisted<Hello>() == 0);
inline void to_json(nlohmann::json& json, const SharedParams& params) {
  json = params.get();
}
inline void from_json(const nlohmann::json& json, SharedParams& params) {
  params = json.get<SharedParams::Map>();
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Case, suite, section, op, params, defaults)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Canary, slow_by, scale)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CaseQuestion, spec, resolve, variants)
/// Of the hundred thousand answers of a plan nearly all say nothing.
inline void to_json(nlohmann::json& json, const CaseAnswer& answer) {
  json = nlohmann::json::object();
  if (!answer.error.empty()) json["error"] = answer.error;
  if (!answer.unsupported.empty()) json["unsupported"] = answer.unsupported;
}
inline void from_json(const nlohmann::json& json, CaseAnswer& answer) {
  answer.error = json.value("error", std::string());
  answer.unsupported = json.value("unsupported", decltype(answer.unsupported)());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Request, spec, variant, canary, invariance)
template <>
inline constexpr auto kFields<Start> = MOEGATE_FIELDS(Start, wire, features, options);
static_assert(count_unlisted<Start>() == 0);
void to_json(nlohmann::json& json, const Check& check);
void from_json(const nlohmann::json& json, Check& check);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Answers, answers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Measured, result, cost, facts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Throttled, reasons)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LoadedFile, path, as, name, hash)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Files, files)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Items, items)
template <>
inline constexpr auto kFields<Fault> = MOEGATE_FIELDS(Fault, fault, exit);
static_assert(count_unlisted<Fault>() == 0);

/// The kind of a message; empty where it has none.
std::string kind_of(const nlohmann::json& message);

/// `check` for a worker that has feature::kLike: a question that differs from the one before it in
/// values of parameters only is {"params": those}. Cases of a suite follow each other so.
nlohmann::json check_message(const std::vector<CaseQuestion>& questions);

/// The message as it travels.
template <class T>
nlohmann::json encode(const T& value) {
  nlohmann::json message = value;
  message["kind"] = T::kKind;
  return message;
}

/// Throws Nonsense for a message of another kind, or with a field of another type.
template <class T>
T decode(const nlohmann::json& message) {
  try {
    if (kind_of(message) == T::kKind) return message.get<T>();
  } catch (const std::exception& e) {
    throw Nonsense(std::string(T::kKind) + ": " + e.what());
  }
  throw Nonsense("'" + kind_of(message) + "' where '" + T::kKind + "' was due");
}

/// What a worker of this program says it can do.
std::vector<std::string> own_features();
/// Throws Error(usage) naming both versions and the side that is behind, unless the peer's is ours.
void check_wire(int theirs, const std::string& who);
/// What a worker ended of. An exit code that no worker ends with becomes Exit::environment.
Error error_of(const Fault& fault);
/// What in a timed result cannot be, in one clause, when the worker took `elapsed_s` for it; empty
/// when all can.
std::string implausible(const Result& result, double elapsed_s);

}  // namespace moegate
