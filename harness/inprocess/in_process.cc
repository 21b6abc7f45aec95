// SPDX-License-Identifier: Apache-2.0
#include "harness/inprocess/in_process.h"

#include <unistd.h>

#include <algorithm>

#include "harness/device/open.h"
#include "harness/kernel/registry.h"
#include "harness/values/json_fields.h"
#include "harness/values/provenance.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

using nlohmann::json;

std::string variant_of(const json& question) {
  return question.value("variant", "fn");
}

/// A part of a key, without what ends one.
std::string part_of_key(std::string text) {
  const auto ends = [](char c) { return c == ',' || c == ' ' || c == '\t' || c == '\n'; };
  std::ranges::replace_if(text, ends, '_');
  return text;
}

Case case_of(const json& question) {
  const SharedParams::Map usual = {{"launch", "stream"}, {"cache", "cold"}, {"seed", "1"}};
  Case c;
  c.suite = c.section = "inprocess";
  c.op = part_of_key(question.at("name"));  // as the function is called
  std::ranges::replace(c.op, '/', '.');     // a slash would end the name
  for (const auto& [name, value] : question.at("params").get<SharedParams::Map>()) {
    if (usual.contains(name))
      usage_error("param '{}' is one of launch, cache, seed; give it another name", name);
    c.params[part_of_key(name)] = part_of_key(value);
  }
  c.params["launch"] = question.at("launch");
  c.params["cache"] = question.at("cache");
  c.params["seed"] = "1";
  c.defaults = usual;
  return c;
}

/// One operator with one variant: the caller's problem and function.
Registry registry_of(const Case& c, Backend backend, CallersMemory& memory, const json& question,
                     moegate_launch launch, void* user) {
  OpEntry op;
  op.name = c.op;
  op.make = [&memory, &question](Device&, const Case&) {
    return std::make_unique<CallersProblem>(memory, question);
  };
  Variant variant;
  variant.op = c.op;
  variant.name = variant_of(question);
  variant.backend = backend;
  variant.file = "fn.py";  // Python's, which starts threads and imports
  const bool graph = launch_of(c) == LaunchMode::graph;
  variant.launch = [launch, user, graph](Problem&, const Launch& where) {
    // Only a graph is captured: what a caller's function does then is its own affair, and memory
    // that it takes meanwhile would be the graph's.
    if (!graph && where.device.backend == Backend::cuda && is_being_captured(where.stream)) {
      throw Error(Exit::internal, "a function that is launched on a stream is not captured");
    }
    if (launch(user, where.stream) != 0) throw Error(Exit::internal, "the function failed");
  };
  Registry registry;
  registry.ops.push_back(std::move(op));
  registry.variants.push_back(std::move(variant));
  sort_and_check(registry);
  return registry;
}

}  // namespace

InProcess::InProcess(json options)
    : options_(std::move(options)), ordinal_(cuda_ordinal(options_.at("device"))) {}

InProcess::~InProcess() {
  if (!store_) return;
  try {
    store_->end_process(process_, "");
    store_->end_run(run_, "complete");
  } catch (const std::exception&) {
    // What was stored is kept; the run stays `running`.
  }
}

void InProcess::open_device(void* stream) {
  if (device_ && stream_ == stream) return;
  device_.reset();
  device_ = ordinal_ < 0 ? open_guest_host_device() : open_guest_cuda_device(ordinal_, stream);
  stream_ = stream;
}

InProcess::Timing InProcess::open_timer(const std::string& asked) const {
  Timing timing;
  if (device_->facts().backend == Backend::host) {
    if (asked != "auto") usage_error("timer '{}': the host has only its clock; use auto", asked);
    timing.timer = make_host_timer(*device_);
    return timing;
  }
  if (asked != "auto" && asked != "cupti" && asked != "event") {
    usage_error("timer '{}'; use auto, cupti or event", asked);
  }
  if (asked != "event") {
    timing.loan = std::make_unique<CuptiLoan>(ordinal_);
    if (timing.loan->why().empty()) {
      timing.timer = make_cupti_timer(*device_);
      return timing;
    }
    if (asked == "cupti") throw TimerBusy("CUPTI cannot time here: " + timing.loan->why());
    timing.note = fmt::format("timed by CUDA events, not CUPTI: {}", timing.loan->why());
  }
  timing.timer = make_event_timer(*device_);
  return timing;
}

void InProcess::watch() {
  const std::string why = keep_cupti();
  if (!why.empty()) throw TimerBusy("CUPTI cannot watch here: " + why);
}

json InProcess::bench(const json& question, moegate_launch launch, void* user) {
  open_device(reinterpret_cast<void*>(question.at("stream").get<uintptr_t>()));
  const Case c = case_of(question);
  expect_new(c, variant_of(question));
  const bool timed = question.at("timed");
  CallersMemory memory(*device_);
  const Registry registry =
      registry_of(c, device_->facts().backend, memory, question, launch, user);
  const Variant& variant = registry.variants.front();
  Bench bench(memory, c, registry, {}, Home::guest);
  Result result = bench.verify(variant);
  std::string note;
  if (result.status == Status::ok && timed) {
    const Sampling sampling{.min_samples = question.at("min_samples"),
                            .max_samples = question.at("max_samples"),
                            .budget_s = question.at("budget_s")};
    const Timing timing = open_timer(question.at("timer"));
    note = timing.note;
    bench.measure(variant, *timing.timer, {.cache = cache_of(c), .launch = launch_of(c)}, sampling,
                  result);
  }
  const json& outputs = question.at("outputs");
  const auto is_known = [](const json& output) { return output.at("truth") != 0; };
  const bool verified =
      !outputs.empty() && std::ranges::all_of(outputs, is_known) && result.measured();
  result.metrics.push_back({.name = kVerifiedMetric, .unit = "", .value = verified ? 1.0 : 0.0});
  if (timed) store(c, bench.cost(), result);
  json answer = result;
  answer["note"] = note;
  answer["verified"] = verified;
  answer["device"] = device_->facts().name;
  answer["run"] = run_;
  return answer;
}

json InProcess::hash(const json& question) {
  open_device(reinterpret_cast<void*>(question.at("stream").get<uintptr_t>()));
  device_->synchronize();
  json hashes = json::array();
  for (const json& input : question.at("inputs")) {
    const CallersBytes bytes = whole_words(input);
    hashes.push_back(bytes.size > 0 ? device_->hash(bytes.data, bytes.size) : 0);
  }
  return {{"hashes", hashes}};
}

void InProcess::expect_new(const Case& c, const std::string& variant) {
  if (!options_.contains("store") || !stored_.contains({c.key(), variant})) return;
  usage_error("{} was stored by this process before; give another name or other params", c.key());
}

RunInfo InProcess::describe(const Case& c, const Result& result) const {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  RunInfo info;
  info.label = options_.value("label", "");
  info.device = device_->facts();
  info.protocol = kProtocol;
  info.timer = result.timer;
  info.flush = info.device.backend == Backend::host ? "lines" : name_of(Flush::read);
  info.rounds = options_.value("rounds", 1);
  info.git_sha = provenance().git_sha;
  info.dirty = provenance().dirty;
  info.build = provenance().build;
  info.host = host;
  info.command = options_.value("command", "");
  info.operators = {{.name = c.op, .yardstick = "", .before = {}}};
  if (const std::string before = options_.value("before", ""); !before.empty()) {
    info.operators.front().before = {{.variant = before}};
  }
  info.tags = options_.value("tags", std::map<std::string, std::string>());
  info.tags[kInProcessTag] = "1";
  return info;
}

void InProcess::store(const Case& c, const Cost& cost, const Result& result) {
  if (!options_.contains("store")) return;
  if (!store_) {
    store_.emplace(Store::open(options_.at("store"), Store::Mode::write));
    run_ = options_.contains("run") ? options_.at("run").get<int64_t>()
                                    : store_->begin_run(describe(c, result));
    process_ = store_->begin_process(run_, options_.value("round", 0), getpid());
  }
  store_->add_result(process_, c, cost, {}, result);
  stored_.emplace(c.key(), result.variant);
}

}  // namespace moegate
