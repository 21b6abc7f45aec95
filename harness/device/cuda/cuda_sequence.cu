// SPDX-License-Identifier: Apache-2.0
// Kernels that flush, space and touch, and the launching around them. The flush reads, because one
// that writes leaves dirty lines whose write-back the measured kernel pays.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <string_view>

#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/cuda/hash_words.cuh"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

constexpr int kFlushThreads = 512;
constexpr int kFlushBlocksPerSm = 4;          // 2048 threads: a full SM
constexpr uint64_t kSpacerNs = 20'000;        // long enough to read the SM clock to 0.2 %
constexpr uint64_t kGateLimitNs = 5'000'000;  // see release()
constexpr unsigned kNeverSum = 0x6d6f6567u;   // no sum of the zeros that the buffer holds

enum class FlushKind { none, read, write };

struct FlushWork {
  uint4* buffer;
  size_t vectors;  // of 16 bytes
  SampleReading* reading;
  const volatile uint32_t* gate;
  uint32_t ticket;  // the gate's value that lets this sample pass
};

__device__ uint64_t global_ns() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// The global timer ticks coarsely; waiting for a tick makes both ends of the reading sharp.
__device__ uint64_t next_tick() {
  const uint64_t now = global_ns();
  uint64_t t = now;
  for (int i = 0; i < 4096 && t == now; ++i) t = global_ns();
  return t;
}

__device__ void wait_at_gate(const FlushWork& work) {
  const uint64_t arrived = global_ns();
  uint64_t now = arrived;
  while (static_cast<int32_t>(*work.gate - work.ticket) < 0 && now - arrived < kGateLimitNs) {
    now = global_ns();
  }
  work.reading->wait_ns = now - arrived;
}

template <FlushKind kind>
__device__ void sweep(const FlushWork& work) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  unsigned sum = 0;
#pragma unroll 8
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < work.vectors; i += stride) {
    if constexpr (kind == FlushKind::read) {
      const uint4 v = work.buffer[i];
      sum += v.x ^ v.y ^ v.z ^ v.w;
    } else {
      work.buffer[i] = make_uint4(0, 0, 0, 0);
    }
  }
  if (kind == FlushKind::read && sum == kNeverSum) work.buffer[0].x = sum;  // keeps the loads
}

template <FlushKind kind>
__global__ void flush_kernel(FlushWork work) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  uint64_t ns = 0;
  int64_t clocks = 0;
  if (first) {
    work.reading->outputs = 0;
    ns = next_tick();
    clocks = clock64();
  }
  if constexpr (kind == FlushKind::none) {
    while (global_ns() - ns < kSpacerNs) {
    }
  } else {
    sweep<kind>(work);
  }
  if (!first) return;
  const uint64_t end_ns = next_tick();
  work.reading->clocks = static_cast<uint64_t>(clock64() - clocks);
  work.reading->ns = end_ns - ns;
  wait_at_gate(work);
}

__global__ void touch_kernel(const char* data, size_t bytes) {
  constexpr size_t kLine = 32;  // a sector: the least that a load brings into L2
  const size_t stride = size_t{gridDim.x} * blockDim.x * kLine;
  int sum = 0;
  for (size_t i = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) * kLine; i < bytes; i += stride) {
    sum += *static_cast<const volatile char*>(data + i);
  }
  // volatile loads are never removed; the sum only has to look used
  if (sum == INT32_MIN) asm volatile("");
}

/// The parts of up to as many outputs as operators have; more are left alone.
struct Scribbles {
  static constexpr int kMost = 8;
  Scribble parts[kMost];
  int count;
};

__global__ void scribble_kernel(Scribbles all) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (int p = 0; p < all.count; ++p) {
    const Scribble& part = all.parts[p];
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < part.words; i += stride) {
      part.to[i] = part.word;
    }
  }
}

/// Up to as many outputs as operators have; more are left alone.
struct Outputs {
  static constexpr int kMost = 8;
  const void* data[kMost];
  size_t bytes[kMost];
  int count;
};

__global__ void look_kernel(Outputs all, SampleReading* reading) {
  constexpr uint64_t kApart = uint64_t{1} << 40;  // words of one output from those of the next
  unsigned long long sum = 0;
  for (int k = 0; k < all.count; ++k) {
    sum += hash_of_threads_words(all.data[k], all.bytes[k], kApart * static_cast<uint64_t>(k),
                                 [](uint64_t word) { return written_part(word); });
  }
  add_of_block(sum, &reading->outputs);
}

__global__ void empty_kernel() {}

uint32_t* allocate_gate() {
  void* gate = nullptr;
  MOEGATE_CUDA_CHECK(cudaHostAlloc(&gate, sizeof(uint32_t), cudaHostAllocMapped));
  return new (gate) uint32_t(0);
}

void free_gate(uint32_t* gate) {
  cudaFreeHost(gate);
}

}  // namespace

void launch_empty_kernel(void* stream) {
  empty_kernel<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>();
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

/// One graph per problem.
struct CudaSequence::Graphs {
  std::vector<cudaGraphExec_t> execs;

  ~Graphs() {
    for (cudaGraphExec_t exec : execs) cudaGraphExecDestroy(exec);
  }

  void add(const CapturedLaunch& launch, cudaStream_t stream) {
    cudaGraphExec_t exec = nullptr;
    MOEGATE_CUDA_CHECK(cudaGraphInstantiate(&exec, launch.graph(), 0));
    execs.push_back(exec);
    MOEGATE_CUDA_CHECK(cudaGraphUpload(exec, stream));
  }
};

CudaSequence::CudaSequence(Device& device, const Subject& subject, const Conditions& conditions)
    : device_(device),
      subject_(subject),
      conditions_(conditions),
      flush_buffer_(nullptr, Release{&device}),
      readings_(device.allocate(kMostPending * sizeof(SampleReading)), Release{&device}),
      gate_(allocate_gate(), free_gate) {
  if (conditions.cache != Cache::warm && conditions.flush != Flush::none) {
    const double bytes = conditions.flush_factor * static_cast<double>(device.facts().cache_bytes);
    flush_bytes_ = static_cast<size_t>(bytes) / sizeof(uint4) * sizeof(uint4);
    flush_buffer_.reset(device.allocate(flush_bytes_));
    device.fill(flush_buffer_.get(), 0, flush_bytes_);
  }
  const bool touches = conditions.cache == Cache::cold_weights;
  for (Problem* problem : subject.sets) {
    std::vector<Span>& read = activations_.emplace_back();
    std::vector<Span>& written = outputs_.emplace_back();
    for (const Tensor* tensor : problem->tensors()) {
      const Span span{tensor->data(), tensor->bytes()};
      if (tensor->role() == Role::activation && touches) read.push_back(span);
      if (tensor->role() == Role::output) written.push_back(span);
    }
  }
  if (conditions.launch == LaunchMode::graph) graphs_ = std::make_unique<Graphs>();
  given_ = look_at_launches();
  // A kernel must not keep a part of the L2 from the flush.
  MOEGATE_CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  MOEGATE_CUDA_CHECK(cudaCtxResetPersistingL2Cache());
  device.synchronize();
}

std::string CudaSequence::look_at_launches() {
  const Launch where{device_.stream(), device_.facts()};
  std::string all;
  bool known = true;
  for (Problem* problem : subject_.sets) {
    std::optional<CapturedLaunch> launch;
    try {
      launch.emplace(*subject_.variant, *problem, where);
    } catch (const Error&) {
      if (graphs_) throw;
      cudaGetLastError();
      return {};  // a stream's launch may do what a graph cannot hold
    }
    launch->refuse_untimed_nodes();
    const std::string given = launch->given();
    known &= !given.empty();
    all += given;
    if (graphs_) graphs_->add(*launch, static_cast<cudaStream_t>(where.stream));
  }
  return known ? all : std::string();
}

bool CudaSequence::is_around(const std::string& kernel) {
  constexpr std::string_view kNamespace = "_ZN7moegate";
  if (!kernel.starts_with(kNamespace)) return false;
  for (const std::string_view name : {"12flush_kernel", "12touch_kernel", "15scribble_kernel",
                                      "11look_kernel", "12empty_kernel"}) {
    if (kernel.find(name) != std::string::npos) return true;
  }
  return false;
}

std::string CudaSequence::misdeed() const {
  size_t persisting = 0;
  MOEGATE_CUDA_CHECK(cudaDeviceGetLimit(&persisting, cudaLimitPersistingL2CacheSize));
  if (persisting == 0) return {};
  return fmt::format(
      "set {} bytes of the L2 aside (cudaLimitPersistingL2CacheSize), which no flush "
      "makes cold",
      persisting);
}

CudaSequence::~CudaSequence() {
  release();  // a sample given up half-way must not hold the device
  cudaStreamSynchronize(static_cast<cudaStream_t>(device_.stream()));
}

void CudaSequence::launch_scribble() {
  constexpr int kThreads = 256;
  Scribbles all{};
  for (const Scribble& part : scribbler_.next(*subject_.sets[next_set()])) {
    if (all.count < Scribbles::kMost) all.parts[all.count++] = part;
  }
  scribble_kernel<<<device_.facts().processors, kThreads, 0,
                    static_cast<cudaStream_t>(device_.stream())>>>(all);
  check_launch("spoiling the outputs");
}

void CudaSequence::launch_flush() {
  const FlushWork work{static_cast<uint4*>(flush_buffer_.get()), flush_bytes_ / sizeof(uint4),
                       static_cast<SampleReading*>(readings_.get()) + pending_, gate_.get(),
                       prepared_};
  const auto stream = static_cast<cudaStream_t>(device_.stream());
  const int blocks = device_.facts().processors * kFlushBlocksPerSm;
  if (!flush_buffer_) {
    flush_kernel<FlushKind::none><<<1, 1, 0, stream>>>(work);
  } else if (conditions_.flush == Flush::write) {
    flush_kernel<FlushKind::write><<<blocks, kFlushThreads, 0, stream>>>(work);
  } else {
    flush_kernel<FlushKind::read><<<blocks, kFlushThreads, 0, stream>>>(work);
  }
  check_launch("the flush");
}

void CudaSequence::launch_touch() {
  constexpr int kThreads = 256;
  const auto stream = static_cast<cudaStream_t>(device_.stream());
  for (const Span& span : activations_[next_set()]) {
    touch_kernel<<<device_.facts().processors, kThreads, 0, stream>>>(
        static_cast<const char*>(span.data), span.bytes);
  }
  check_launch("touching the activations");
}

void CudaSequence::check_launch(const char* what) const {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw Error(Exit::environment,
              fmt::format("{}/{}: {} failed: {}", subject_.variant->op, subject_.variant->name,
                          what, cudaGetErrorString(status)));
}

void CudaSequence::prepare() {
  if (pending_ == kMostPending) {
    throw Error(Exit::internal,
                fmt::format("more than {} samples between two collects", kMostPending));
  }
  ++prepared_;
  // Behind a flush every fourth launch of a stream starts 0.9 us late (measured on an H200: a chain
  // of three kernels spans 5.7 or 6.6 us). Were the launches per sample a multiple of four, one
  // session would always meet the delay and the next never; one launch more in every other sample
  // makes two samples an odd number of launches, so that the delay visits every position in turn.
  if (prepared_ % 2 == 0) launch_empty_kernel(device_.stream());
  launch_scribble();
  launch_flush();
  ++pending_;
  if (conditions_.cache == Cache::cold_weights) launch_touch();
  // The separator. A first kernel with programmatic dependent launch would otherwise overlap the
  // end of the flush, and every first kernel would share the chip with the flush's last blocks.
  launch_empty_kernel(device_.stream());
}

void CudaSequence::launch() {
  const size_t set = next_set();
  ++launched_;
  if (graphs_) {
    const auto stream = static_cast<cudaStream_t>(device_.stream());
    MOEGATE_CUDA_CHECK(cudaGraphLaunch(graphs_->execs[set], stream));
    return;
  }
  subject_.variant->launch(*subject_.sets[set], {device_.stream(), device_.facts()});
  check_launch("the launch");
}

void CudaSequence::look() {
  constexpr int kThreads = 512, kBlocksPerProcessor = 4;
  Outputs all{};
  size_t most_bytes = 1;
  for (const Span& span : outputs_[(launched_ - 1) % outputs_.size()]) {
    if (all.count == Outputs::kMost) break;
    all.data[all.count] = span.data;
    all.bytes[all.count++] = span.bytes;
    most_bytes = std::max(most_bytes, span.bytes);
  }
  const size_t useful =
      (most_bytes + kThreads * sizeof(uint64_t) - 1) / (kThreads * sizeof(uint64_t));
  const auto blocks = static_cast<unsigned>(
      std::min(useful, static_cast<size_t>(device_.facts().processors * kBlocksPerProcessor)));
  look_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(device_.stream())>>>(
      all, static_cast<SampleReading*>(readings_.get()) + (pending_ - 1));
  check_launch("reading the outputs");
}

void CudaSequence::release() {
  std::atomic_ref<uint32_t>(*gate_).store(prepared_, std::memory_order_release);
}

std::vector<SampleReading> CudaSequence::readings() {
  std::vector<SampleReading> all(pending_);
  device_.synchronize();
  if (pending_ > 0) device_.download(all.data(), readings_.get(), pending_ * sizeof(SampleReading));
  pending_ = 0;
  return all;
}

}  // namespace moegate
