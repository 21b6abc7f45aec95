// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity API behind CuptiLog. CUPTI calls back into request_buffer and complete_buffer,
// from any thread; both only move buffers, parsing waits for drain().
#include "harness/timing/cuda/cupti_log.h"

#include <cupti.h>

#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string_view>
#include <utility>

#include "harness/base/error.h"
#include "harness/timing/cuda/cupti_lib.h"

namespace moegate {
namespace {

// About 30 samples of one kernel each. What stays in the processor's cache is parsed quicker: of 57
// us a sample takes 1.5 less than with 2 MiB.
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kBufferAlign = 8;             // ACTIVITY_RECORD_ALIGNMENT
constexpr CUpti_CallbackId kMostCalls = 4096;  // both domains have under 1000 in CUDA 13

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

using EnableCall = CUptiResult(CUpti_CallbackId, uint8_t);

struct Functions : CuptiLib {
  MOEGATE_CUPTI_FUNCTION(cuptiActivitySetAttribute)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityRegisterTimestampCallback)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityRegisterCallbacks)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityEnable)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityDisable)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityFlushAll)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityGetNextRecord)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityGetNumDroppedRecords)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityPushExternalCorrelationId)
  MOEGATE_CUPTI_FUNCTION(cuptiActivityPopExternalCorrelationId)
  MOEGATE_CUPTI_FUNCTION(cuptiGetCallbackName)
  MOEGATE_CUPTI_FUNCTION(cuptiGetTimestamp)
  // Not in 12.4.
  EnableCall* enable_runtime_call = optional<EnableCall*>("cuptiActivityEnableRuntimeApi");
  EnableCall* enable_driver_call = optional<EnableCall*>("cuptiActivityEnableDriverApi");
};

bool own_clock = false;         // registered
bool registered = false;        // buffers
bool recording_guests = false;  // calls were enabled by a guest, who disables them

Functions& cupti() {
  static Functions* functions = new Functions;
  return *functions;
}

struct Buffer {
  uint8_t* data;
  size_t valid;
};

struct Buffers {
  std::mutex mutex;
  std::vector<uint8_t*> free;
  std::vector<Buffer> completed;
};

Buffers& buffers() {
  static Buffers* all = new Buffers;
  return *all;
}

void CUPTIAPI request_buffer(uint8_t** data, size_t* bytes, size_t* most_records) {
  Buffers& b = buffers();
  *most_records = 0;  // as many as fit
  *data = nullptr;
  {
    const std::lock_guard lock(b.mutex);
    if (!b.free.empty()) {
      *data = b.free.back();
      b.free.pop_back();
    }
  }
  if (!*data) *data = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlign, kBufferBytes));
  *bytes = *data ? kBufferBytes : 0;
}

void CUPTIAPI complete_buffer(CUcontext, uint32_t, uint8_t* data, size_t, size_t valid) {
  Buffers& b = buffers();
  const std::lock_guard lock(b.mutex);
  b.completed.push_back({data, valid});
}

std::string explain(CUptiResult result, const char* what) {
  return "launches cannot be recorded: " + cupti().failure(result, what);
}

void require(CUptiResult result, const char* what) {
  if (result != CUPTI_SUCCESS) throw Error(Exit::environment, explain(result, what));
}

// Launches, copies and fills, eager or as a graph. Matching names instead of listing numbers also
// covers the calls that later toolkits add (cudaLaunchKernelExC came with 11.6, __cudaLaunchKernel
// with 13.0).
bool starts_work(std::string_view name) {
  for (const std::string_view prefix : {"__cuda", "cuda", "cu64", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  if (name.starts_with("LaunchHostFunc")) return false;  // runs nothing on the device
  return name.starts_with("Launch") || name.starts_with("Memcpy") || name.starts_with("Memset") ||
         name.starts_with("GraphLaunch");
}

int enable_calls(CUpti_CallbackDomain domain, EnableCall* enable, uint8_t on) {
  int enabled = 0;
  for (CUpti_CallbackId id = 1; enable && id < kMostCalls; ++id) {
    const char* name = nullptr;
    if (cupti().cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
    if (starts_work(name) && enable(id, on) == CUPTI_SUCCESS) ++enabled;
  }
  return enabled;
}

int enable_calls(uint8_t on) {
  return enable_calls(CUPTI_CB_DOMAIN_RUNTIME_API, cupti().enable_runtime_call, on) +
         enable_calls(CUPTI_CB_DOMAIN_DRIVER_API, cupti().enable_driver_call, on);
}

/// Room on the device for records, taken before the context exists so that no allocation falls into
/// a sample. Not fatal: CUPTI has defaults.
void set_attributes() {
  size_t bytes = size_t{8} << 20;
  size_t preallocated = 4;
  size_t size = sizeof bytes;
  cupti().cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes);
  size = sizeof preallocated;
  cupti().cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size,
                                    &preallocated);
}

void add_kernel(const CUpti_ActivityKernel9& k, CuptiBatch& batch, ShapeTable& shapes) {
  OperationShape shape;
  shape.name = k.name ? k.name : "?";
  const int grid[3] = {k.gridX, k.gridY, k.gridZ}, block[3] = {k.blockX, k.blockY, k.blockZ};
  const uint32_t cluster[3] = {k.clusterX, k.clusterY, k.clusterZ};
  const bool clustered = uint64_t{cluster[0]} * cluster[1] * cluster[2] > 1;
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = grid[i];
    shape.block[i] = block[i];
    shape.cluster[i] = clustered ? static_cast<int>(cluster[i]) : 0;
  }
  shape.registers = k.registersPerThread;
  shape.static_shared = k.staticSharedMemory;
  shape.dynamic_shared = k.dynamicSharedMemory;
  // CUPTI states 0 of kernels with a stack, too (13.0): that is unknown.
  shape.local_bytes = k.localMemoryPerThread > 0 ? int64_t{k.localMemoryPerThread} : -1;
  const uint64_t carveout =
      k.isSharedMemoryCarveoutRequested ? 1u + k.sharedMemoryCarveoutRequested : 0u;
  const uint64_t detail = detail_of(
      {k.launchType, carveout, k.cacheConfig.config.requested, k.clusterSchedulingPolicy});
  batch.operations.push_back({k.start, k.end, k.correlationId, shapes.id_of(shape), detail});
}

template <class Record>
void add_memory(const char* name, const Record& r, uint64_t detail, CuptiBatch& batch,
                ShapeTable& shapes) {
  const int shape = shapes.id_of({.name = name});
  batch.operations.push_back({r.start, r.end, r.correlationId, shape, detail});
}

// Record layouts only grow at their ends: these types, of CUDA 12.4, fit the records of any later
// CUPTI.
void parse(CUpti_Activity* record, CuptiBatch& batch, ShapeTable& shapes) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      add_kernel(*reinterpret_cast<CUpti_ActivityKernel9*>(record), batch, shapes);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& m = *reinterpret_cast<CUpti_ActivityMemcpy5*>(record);
      add_memory("memcpy", m, detail_of({m.copyKind, m.srcKind, m.dstKind, m.bytes}), batch,
                 shapes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& m = *reinterpret_cast<CUpti_ActivityMemset4*>(record);
      add_memory("memset", m, detail_of({m.value, m.memoryKind, m.bytes}), batch, shapes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& tag = *reinterpret_cast<CUpti_ActivityExternalCorrelation*>(record);
      batch.tags[tag.correlationId] = tag.externalId;
      break;
    }
    default:
      break;
  }
}

/// Asks CUPTI for what it has and takes the buffers it gave.
std::vector<Buffer> take_completed() {
  require(cupti().cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
  Buffers& b = buffers();
  const std::lock_guard lock(b.mutex);
  return std::exchange(b.completed, {});
}

void give_back(const std::vector<Buffer>& done) {
  Buffers& b = buffers();
  const std::lock_guard lock(b.mutex);
  for (const Buffer& buffer : done) b.free.push_back(buffer.data);
}

/// The clock that CUPTI is given. It asks for the time while it takes it.
uint64_t raw_monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

std::string enable_records() {
  for (const CUpti_ActivityKind kind : kKinds) {
    const CUptiResult result = cupti().cuptiActivityEnable(kind);
    if (result == CUPTI_SUCCESS) continue;
    CuptiLog::close();
    return explain(result, "enabling activity records");
  }
  if (enable_calls(1) == 0) CuptiLog::record_all_calls();
  return "";
}

}  // namespace

std::string CuptiLog::register_buffers() {
  const CUptiResult result =
      cupti().cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
  registered = result == CUPTI_SUCCESS;
  return registered ? "" : explain(result, "registering buffers");
}

std::string CuptiLog::open() {
  Functions& c = cupti();
  const std::string why = c.why();
  if (!why.empty()) return "launches cannot be recorded: " + why;
  set_attributes();
  // Once per process: registering again corrupts the records that follow.
  const CUptiResult result = c.cuptiActivityRegisterTimestampCallback(&raw_monotonic_ns);
  own_clock = result == CUPTI_SUCCESS;
  if (!own_clock) return explain(result, "registering the clock");
  const std::string fault = register_buffers();
  return fault.empty() ? enable_records() : fault;
}

std::string CuptiLog::open_as_guest() {
  const std::string why = cupti().why();
  if (!why.empty()) return "launches cannot be recorded: " + why;
  const std::string fault = registered ? "" : register_buffers();
  if (!fault.empty()) return fault;
  recording_guests = true;
  return enable_records();
}

void CuptiLog::record_all_calls() {
  cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
  cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
}

void CuptiLog::close() noexcept {
  for (const CUpti_ActivityKind kind : kKinds) cupti().cuptiActivityDisable(kind);
  cupti().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
  cupti().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
  if (std::exchange(recording_guests, false)) enable_calls(0);
}

void CuptiLog::drain(CuptiBatch& batch, ShapeTable& shapes) {
  const std::vector<Buffer> done = take_completed();
  for (const Buffer& buffer : done) {
    CUpti_Activity* record = nullptr;
    while (cupti().cuptiActivityGetNextRecord(buffer.data, buffer.valid, &record) ==
           CUPTI_SUCCESS) {
      parse(record, batch, shapes);
    }
  }
  give_back(done);
  size_t dropped = 0;
  require(cupti().cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped),
          "cuptiActivityGetNumDroppedRecords");
  batch.dropped += dropped;
}

void CuptiLog::discard() {
  give_back(take_completed());
  size_t dropped = 0;  // reading the count resets it
  cupti().cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
}

uint64_t CuptiLog::now_ns() {
  uint64_t now = 0;
  if (own_clock) return raw_monotonic_ns();
  return cupti().cuptiGetTimestamp(&now) == CUPTI_SUCCESS ? now : 0;
}

CuptiTag::CuptiTag(uint64_t id) {
  require(
      cupti().cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id),
      "tagging a launch");
}

CuptiTag::~CuptiTag() {
  uint64_t id = 0;
  cupti().cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
}

}  // namespace moegate
