// SPDX-License-Identifier: Apache-2.0
// How operands get into shared memory on Hopper, and who waits for what: barriers that count
// arrivals and bytes, tiles by the bulk tensor copy engine (TMA), gathered rows by asynchronous
// copies.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/barrier.cuh"

namespace moegate::cuda {

/// Arrives once this thread's asynchronous copies so far are there.
__device__ inline void arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void arrive_after_copies(uint64_t* barrier) {
  arrive_after_copies(shared_address(barrier));
}
/// What ordinary and asynchronous copies wrote to shared memory, the tensor cores may read.
__device__ inline void fence_for_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Starts a copy of 4, 8 or 16 bytes; zeros where `there` is false.
template <int Bytes>
__device__ void copy_async(uint32_t to, const void* from, bool there) {
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes),
                 "r"(there ? Bytes : 0)
                 : "memory");
  }
}

/// Ends a group of this thread's copies, which may be empty: waiting counts groups.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `Pending` groups of this thread's copies are under way.
template <int Pending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
/// Waits for all of this thread's copies, in groups or not.
__device__ inline void wait_all_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// One thread starts the copy of so many bytes, a multiple of 16.
__device__ inline void copy_bytes(uint8_t* to, const uint8_t* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// One thread brings so many bytes, a multiple of 16, to L2.
__device__ inline void prefetch_bytes(const uint8_t* from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

/// One thread starts the copy of a tile, whose first element is (column, row), counted by
/// `barrier`.
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint64_t* barrier) {
  copy_tile(to, map, column, row, shared_address(barrier));
}

/// The same into every block of the cluster whose bit is set in `blocks`, at the same place,
/// counted by the same barrier of each.
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
      : "memory");
}

/// How long L2 is to keep what a copy reads.
__device__ inline uint64_t evict_normal() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t evict_first() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline uint64_t evict_last() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// The same with a policy of L2's.
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint32_t barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
      : "memory");
}

/// The same into every block of the cluster whose bit is set in `blocks`, at the same place,
/// counted by the same barrier of each.
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint32_t barrier, uint64_t policy, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks), "l"(policy)
      : "memory");
}

/// One thread starts the copy of a tile the other way, as one of its bulk copies.
__device__ inline void write_tile(const CUtensorMap* map, int column, int row, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(column), "r"(row), "r"(from)
      : "memory");
}

/// Fetches the description of the tensor itself, which the first copy would wait for.
__device__ inline void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// What to ask for, so that any start of it can be rounded up to what the swizzle needs.
template <class S>
constexpr size_t kSharedBytes = sizeof(S) + 1024;

__device__ inline uint8_t* align_shared(uint8_t* raw) {
  return raw + (1024 - shared_address(raw) % 1024) % 1024;
}
template <class S>
__device__ S& aligned_shared(uint8_t* raw) {
  return *reinterpret_cast<S*>(align_shared(raw));
}

}  // namespace moegate::cuda
