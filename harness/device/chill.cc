// SPDX-License-Identifier: Apache-2.0
#include "harness/device/chill.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

#include "harness/base/rng.h"

namespace moegate {
namespace {

constexpr size_t kLine = 64;

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) void flush_lines_opt(const char* p, const char* end) {
  for (; p < end; p += kLine) _mm_clflushopt(const_cast<char*>(p));
  _mm_sfence();
}

void flush_lines(const char* p, const char* end) {
  for (; p < end; p += kLine) _mm_clflush(p);
  _mm_mfence();
}

bool has_clflushopt() {
  // CPUID leaf 7, EBX bit 23 (Intel SDM, CLFLUSHOPT).
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (b >> 23 & 1) != 0;
}

void flush(const char* p, const char* end) {
  static const bool optimised = has_clflushopt();
  optimised ? flush_lines_opt(p, end) : flush_lines(p, end);
}

constexpr bool kFlushes = true;
#elif defined(__aarch64__)
// Linux lets programs clean and invalidate lines by address.
void flush(const char* p, const char* end) {
  for (; p < end; p += kLine) __asm__ volatile("dc civac, %0" : : "r"(p) : "memory");
  __asm__ volatile("dsb ish" : : : "memory");
}

constexpr bool kFlushes = true;
#else
void flush(const char*, const char*) {}
constexpr bool kFlushes = false;
#endif

}  // namespace

Chiller::Chiller(int64_t cache_bytes) {
  if (!kFlushes) sweep_.resize(2 * static_cast<size_t>(std::max<int64_t>(cache_bytes, 1 << 20)), 1);
}

void Chiller::chill(const Problem& problem) {
  touch_lines(sweep_.data(), sweep_.size());
  for (const Tensor* tensor : problem.tensors()) {
    const char* p = tensor->data<char>();
    flush(first_line(p), p + tensor->bytes());
  }
}

const char* first_line(const void* from) {
  const auto* p = static_cast<const char*>(from);
  return p - std::bit_cast<uintptr_t>(p) % kLine;
}

void forget_branches() {
  constexpr uint64_t kBranches = 1 << 16;  // more than a predictor has entries
#pragma omp parallel
  for (uint64_t i = 0; i < kBranches; ++i) {
    if (mix64(i) & 1) {
      __asm__ volatile("nop");
    } else {
      __asm__ volatile("nop; nop");
    }
  }
}

void touch_lines(const void* from, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(from);
  unsigned sum = 0;
  for (size_t i = 0; i < bytes; i += kLine) sum += p[i];
  __asm__ volatile("" : : "r"(sum));  // keeps the loads
}

}  // namespace moegate
