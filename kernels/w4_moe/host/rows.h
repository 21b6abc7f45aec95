// SPDX-License-Identifier: Apache-2.0
// What the host variants share: a row of weights as floats, sums over K, and what follows a sum.
// They differ in how often a row of weights is decoded.
#pragma once

#include <omp.h>

#include <cmath>

#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe::host {

/// Rows of x as floats, [source_rows, K]; behind them two rows of weights for each thread.
inline size_t workspace_bytes(const W4Shape& shape) {
  const auto rows = static_cast<size_t>(shape.source_rows() + 2 * omp_get_max_threads());
  return sizeof(float) * rows * static_cast<size_t>(shape.k);
}
inline float* weights_of_thread(const W4Args& args, float* workspace) {
  return workspace + (int64_t{args.shape.source_rows()} + 2 * omp_get_thread_num()) * args.shape.k;
}

/// Called by every thread of a parallel region, ends with a barrier.
inline void widen(const W4Args& args, float* to) {
  const int64_t elements = int64_t{args.shape.source_rows()} * args.shape.k;
#pragma omp for schedule(static)
  for (int64_t i = 0; i < elements; ++i) to[i] = bf16_to_float(args.x[i]);
}

/// 2^(byte - 127), whose bits are the byte as a float's exponent; 0 is subnormal, 255 NaN.
inline float scale_of(uint8_t byte) {
  if (byte == 0) return 0x1p-127f;
  return byte == 255 ? NAN : bits_float(uint32_t{byte} << 23);
}

/// Values of the 16 codes.
inline const float* values_of(W4Weights weights) {
  static constexpr float kE2m1[] = {0.f,  .5f,  1.f,  1.5f,  2.f,  3.f,  4.f,  6.f,
                                    -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
  static constexpr float kInt4[] = {-8.f, -7.f, -6.f, -5.f, -4.f, -3.f, -2.f, -1.f,
                                    0.f,  1.f,  2.f,  3.f,  4.f,  5.f,  6.f,  7.f};
  return weights == W4Weights::int4 ? kInt4 : kE2m1;
}

/// Row `row` of all experts' weights. Exact, of int4 too.
inline void decode(const W4Args& args, int64_t row, float* to) {
  const W4Shape& shape = args.shape;
  const float* values = values_of(shape.weights);
  const uint8_t* codes = args.codes + row * shape.k / 2;
  const int64_t first = row * shape.groups();
  for (int g = 0; g < shape.groups(); ++g) {
    const float scale = shape.weights == W4Weights::int4
                            ? bf16_to_float(static_cast<const uint16_t*>(args.scales)[first + g])
                            : scale_of(static_cast<const uint8_t*>(args.scales)[first + g]);
    for (int i = 0; i < shape.group / 2; ++i) {
      const uint8_t both = *codes++;
      *to++ = values[both & 15] * scale;
      *to++ = values[both >> 4] * scale;
    }
  }
}

inline float dot(const float* a, const float* b, int elements) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < elements; ++i) sum += a[i] * b[i];
  return sum;
}

/// Rows of weights of one column of the output, decoded, with their bias.
struct Column {
  int count;  // rows: gate and up, or one
  const float* weights;
  float bias[2];
};

/// Decodes into `to`, [2, K].
inline Column column_of(const W4Args& args, int32_t expert, int column, float* to) {
  Column c{args.shape.down ? 1 : 2, to, {}};
  for (int i = 0; i < c.count; ++i) {
    const int64_t row = int64_t{expert} * args.shape.n + c.count * column + i;
    decode(args, row, to + int64_t{i} * args.shape.k);
    c.bias[i] = args.bias ? bf16_to_float(args.bias[row]) : 0;
  }
  return c;
}

/// Row r of the output at a column.
inline void multiply(const W4Args& args, const float* x, const Column& c, int column, int32_t r) {
  const W4Shape& shape = args.shape;
  const float* row = x + int64_t{shape.source(r)} * shape.k;
  float h[2] = {};
  for (int i = 0; i < c.count; ++i) {
    h[i] = dot(c.weights + int64_t{i} * shape.k, row, shape.k) + c.bias[i];
  }
  const float y = shape.down ? args.routing_weights[r] * h[0] : swiglu(shape, h[0], h[1]);
  args.out[int64_t{r} * shape.outputs() + column] = float_to_bf16(y);
}

/// Calls work(r) for the rows of a block; those of padding come last.
template <class Work>
void for_rows(const W4Args& args, int block, Work work) {
  for (int i = 0; i < args.shape.block; ++i) {
    const int32_t r = args.sorted_token_ids[int64_t{block} * args.shape.block + i];
    if (r == args.shape.rows()) return;
    work(r);
  }
}

/// The variants of these names, for layers, too. `x`: workspace_bytes().
void launch_gather(const W4Args& args, float* x);
void launch_expert_once(const W4Args& args, float* x);

/// Registers a host variant for both operators.
template <auto kLaunch>
struct HostKernel {
  HostKernel(const char* name, const char* help, const char* file = __builtin_FILE())
      : gate_up(
            {.name = name,
             .backend = Backend::host,
             .help = help,
             .launch = [](W4GateUp& p, const Launch&) { kLaunch(p.args(), p.workspace<float>()); },
             .workspace =
                 [](const Case& c, const DeviceFacts&) {
                   return workspace_bytes(W4GateUp::shape_of(c));
                 }},
            file),
        down({.name = name,
              .backend = Backend::host,
              .help = help,
              .launch = [](W4Down& p, const Launch&) { kLaunch(p.args(), p.workspace<float>()); },
              .workspace = [](const Case& c,
                              const DeviceFacts&) { return workspace_bytes(W4Down::shape_of(c)); }},
             file) {}
  Kernel<W4GateUp> gate_up;
  Kernel<W4Down> down;
};

}  // namespace moegate::w4_moe::host
