// SPDX-License-Identifier: Apache-2.0
// Kernels that flush, space, touch, spoil and look. The flush reads, because one that writes leaves
// dirty lines whose write-back the measured kernel pays. It also spoils and looks: a kernel of its
// own costs more than what it does. For cuda_sequence.cu only, whose is_around() knows their names.
#pragma once

#include <cuda_runtime.h>

#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/cuda/hash_words.cuh"

namespace moegate {

/// Up to as many outputs as operators have, more are left alone; and where their hash goes.
struct Look {
  static constexpr int kMost = 8;
  const void* data[kMost];
  size_t bytes[kMost];
  int count;
  SampleReading* reading;
};

namespace {

constexpr uint64_t kSpacerNs = 20'000;        // long enough to read the SM clock to 0.2 %
constexpr uint64_t kGateLimitNs = 5'000'000;  // see release()
constexpr unsigned kNeverSum = 0x6d6f6567u;   // no sum of the zeros that the buffer holds

constexpr int kFlushThreads = 512;
/// Which fill an SM; by chip, as the table of compute capabilities in NVIDIA's programming guide.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || \
    (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100)
constexpr int kFlushBlocksPerSm = 4;  // of 2048 threads
#elif __CUDA_ARCH__ >= 800
constexpr int kFlushBlocksPerSm = 3;  // of 1536
#else
constexpr int kFlushBlocksPerSm = 2;  // of 1024
#endif

enum class FlushKind { none, read, write };

struct FlushWork {
  uint4* buffer;
  size_t vectors;  // of 16 bytes
  SampleReading* reading;
  const volatile uint32_t* gate;
  uint32_t ticket;  // the gate's value that lets this sample pass
};

/// Of up to as many outputs as operators have, and the workspace; more are left alone.
struct Scribbles {
  static constexpr int kMost = 8;
  Scribble parts[kMost];
  int count;
};

__device__ void spoil(const Scribbles& all) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (int p = 0; p < all.count; ++p) {
    const Scribble& part = all.parts[p];
    const size_t count = part.count();
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
      part.to[spoilt_place(part, i)] = part.word;
    }
  }
}

__device__ void read_outputs(const Look& look) {
  constexpr uint64_t kApart = uint64_t{1} << 40;  // words of one output from those of the next
  unsigned long long sum = 0;
  for (int k = 0; k < look.count; ++k) {
    sum += hash_of_threads_words(look.data[k], look.bytes[k], kApart * static_cast<uint64_t>(k),
                                 [](uint64_t word) { return written_part(word); });
  }
  add_of_block(sum, &look.reading->outputs);
}

/// What a flush does first, of two problems whose outputs are apart. What is spoilt leaves dirty
/// lines, which the flush behind it writes back.
struct FlushFirst {
  Scribbles spoilt;  // of the launch to come
  Look look;         // at the launch before; without a reading: none
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

/// All blocks are on the chip at once, so that each starts with what comes before the flush.
template <FlushKind kind>
__global__ void __launch_bounds__(kFlushThreads, kFlushBlocksPerSm)
    flush_kernel(FlushWork work, FlushFirst outputs) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  spoil(outputs.spoilt);
  if (outputs.look.reading) read_outputs(outputs.look);
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

/// The same in a kernel of their own: where nothing is flushed.
__global__ void scribble_kernel(Scribbles all) {
  spoil(all);
}

__global__ void look_kernel(Look look) {
  read_outputs(look);
}

__global__ void empty_kernel() {}

}  // namespace
}  // namespace moegate
