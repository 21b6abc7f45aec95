// SPDX-License-Identifier: Apache-2.0
// What is launched around a sample, in which order: sequence_kernels.cuh has the kernels.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/device/cannot_capture.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/cuda/sequence_kernels.cuh"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

uint32_t* allocate_gate() {
  void* gate = nullptr;
  MOEGATE_CUDA_CHECK(cudaHostAlloc(&gate, sizeof(uint32_t), cudaHostAllocMapped));
  return new (gate) uint32_t(0);
}

/// Of the flush, that are on an SM at once.
template <FlushKind kind>
int blocks_per_sm() {
  int blocks = 0;
  MOEGATE_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, flush_kernel<kind>, kFlushThreads, 0));
  return blocks;
}

}  // namespace

void launch_empty_kernel(void* stream) {
  empty_kernel<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>();
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

CudaSequence::CudaSequence(Device& device, const Subject& subject, const Conditions& conditions)
    : device_(device),
      subject_(subject),
      conditions_(conditions),
      flush_buffer_(nullptr, {&device}),
      readings_(device.allocate(kMostPending * sizeof(SampleReading)), {&device}),
      gate_(allocate_gate(), [](uint32_t* gate) { cudaFreeHost(gate); }) {
  if (conditions.cache != Cache::warm && conditions.flush != Flush::none) {
    const double bytes = conditions.flush_factor * static_cast<double>(device.facts().cache_bytes);
    flush_bytes_ = static_cast<size_t>(bytes) / sizeof(uint4) * sizeof(uint4);
    flush_buffer_.reset(device.allocate(flush_bytes_));
    device.fill(flush_buffer_.get(), 0, flush_bytes_);
    flush_blocks_ = device.facts().processors * (conditions.flush == Flush::write
                                                     ? blocks_per_sm<FlushKind::write>()
                                                     : blocks_per_sm<FlushKind::read>());
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
  given_ = look_at_launches();
  // A kernel must not keep a part of the L2 from the flush.
  MOEGATE_CUDA_CHECK(cudaDeviceGetLimit(&persisting_, cudaLimitPersistingL2CacheSize));
  MOEGATE_CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  MOEGATE_CUDA_CHECK(cudaCtxResetPersistingL2Cache());
  device.synchronize();
}

std::string CudaSequence::look_at_launches() {
  const Launch where{device_.stream(), device_.facts()};
  const bool as_graph = conditions_.launch == LaunchMode::graph;
  std::string all;
  bool known = true;
  for (Problem* problem : subject_.sets) {
    std::optional<CapturedLaunch> launch;
    try {
      launch.emplace(*subject_.variant, *problem, where);
    } catch (const Error&) {
      if (as_graph) throw;
      cudaGetLastError();
      return {};  // a stream's launch may do what a graph cannot hold
    }
    launch->refuse_untimed_nodes();
    if (as_graph && launch->operations().empty()) throw EmptyCapture();
    const std::string given = launch->given();
    known &= !given.empty();
    all += given;
    if (!as_graph) continue;
    graphs_.push_back(launch->executable());
    MOEGATE_CUDA_CHECK(cudaGraphUpload(graphs_.back().get(), stream()));
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
  cudaStreamSynchronize(stream());
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, persisting_);
}

void CudaSequence::launch_flush() {
  constexpr int kScribbleThreads = 256;
  const FlushWork work{static_cast<uint4*>(flush_buffer_.get()), flush_bytes_ / sizeof(uint4),
                       reading(pending_), gate_.get(), prepared_};
  FlushFirst outputs{};
  for (const Scribble& part : scribbler_.next(*subject_.sets[next_set()])) {
    if (outputs.spoilt.count < Scribbles::kMost)
      outputs.spoilt.parts[outputs.spoilt.count++] = part;
  }
  if (unread_ && !flush_may_look()) launch_look();
  if (std::exchange(unread_, false)) outputs.look = last_outputs();
  if (!flush_buffer_) {
    scribble_kernel<<<device_.facts().processors, kScribbleThreads, 0, stream()>>>(outputs.spoilt);
    flush_kernel<FlushKind::none><<<1, 1, 0, stream()>>>(work, FlushFirst{});
  } else if (conditions_.flush == Flush::write) {
    flush_kernel<FlushKind::write><<<flush_blocks_, kFlushThreads, 0, stream()>>>(work, outputs);
  } else {
    flush_kernel<FlushKind::read><<<flush_blocks_, kFlushThreads, 0, stream()>>>(work, outputs);
  }
  check_launch("spoiling the outputs and the flush");
}

void CudaSequence::launch_touch() {
  constexpr int kThreads = 256;
  for (const Span& span : activations_[next_set()]) {
    touch_kernel<<<device_.facts().processors, kThreads, 0, stream()>>>(
        static_cast<const char*>(span.data), span.bytes);
  }
  check_launch("touching the activations");
}

void CudaSequence::check_launch(const char* what) const {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  give_up(Exit::environment, "{}/{}: {} failed: {}", subject_.variant->op, subject_.variant->name,
          what, cudaGetErrorString(status));
}

void CudaSequence::prepare() {
  if (pending_ == kMostPending) {
    give_up(Exit::internal, "more than {} samples between two collects", kMostPending);
  }
  ++prepared_;
  // Behind a flush every fourth launch of a stream starts 0.9 us late (measured on an H200: a chain
  // of three kernels spans 5.7 or 6.6 us). Were the launches per sample a multiple of four, one
  // session would always meet the delay and the next never; one launch more in every other sample
  // makes two samples an odd number of launches, so that the delay visits every position in turn.
  if (prepared_ % 2 == 0) launch_empty_kernel(device_.stream());
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
  if (!graphs_.empty()) {
    MOEGATE_CUDA_CHECK(cudaGraphLaunch(graphs_[set].get(), stream()));
    return;
  }
  subject_.variant->launch(*subject_.sets[set], {device_.stream(), device_.facts()});
  check_launch("the launch");
}

void CudaSequence::look() {
  unread_ = true;
}

SampleReading* CudaSequence::reading(uint32_t pending) const {
  return static_cast<SampleReading*>(readings_.get()) + pending;
}

size_t CudaSequence::last_set() const {
  return (launched_ - 1) % subject_.sets.size();
}

bool CudaSequence::flush_may_look() const {
  // What the flush spoils must have been read before, or be another problem's. Of what does not fit
  // in the cache some blocks would still read when others have flushed most of it.
  size_t bytes = 0;
  for (const Span& span : outputs_[last_set()]) bytes += span.bytes;
  return flush_buffer_ && last_set() != next_set() &&
         bytes <= static_cast<size_t>(device_.facts().cache_bytes);
}

Look CudaSequence::last_outputs() const {
  Look look{.reading = reading(pending_ - 1)};
  for (const Span& span : outputs_[last_set()]) {
    if (look.count == Look::kMost) break;
    look.data[look.count] = span.data;
    look.bytes[look.count++] = span.bytes;
  }
  return look;
}

void CudaSequence::launch_look() {
  constexpr size_t kThreads = 512, kBlocksPerProcessor = 4;
  const Look look = last_outputs();
  size_t most_bytes = 1;
  for (int k = 0; k < look.count; ++k) most_bytes = std::max(most_bytes, look.bytes[k]);
  const size_t useful =
      (most_bytes + kThreads * sizeof(uint64_t) - 1) / (kThreads * sizeof(uint64_t));
  const auto blocks = static_cast<unsigned>(
      std::min(useful, static_cast<size_t>(device_.facts().processors) * kBlocksPerProcessor));
  look_kernel<<<blocks, kThreads, 0, stream()>>>(look);
  check_launch("reading the outputs");
  unread_ = false;
}

void CudaSequence::release() {
  std::atomic_ref<uint32_t>(*gate_).store(prepared_, std::memory_order_release);
}

std::vector<SampleReading> CudaSequence::readings() {
  std::vector<SampleReading> all(pending_);
  if (unread_) launch_look();
  device_.synchronize();
  if (pending_ > 0) device_.download(all.data(), readings_.get(), pending_ * sizeof(SampleReading));
  pending_ = 0;
  return all;
}

}  // namespace moegate
