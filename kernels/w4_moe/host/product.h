// SPDX-License-Identifier: Apache-2.0
// What the host variants share: widening the activations, dot products of a panel of rows and
// columns on the best instruction set present, and what follows a dot product. The variants differ
// in which rows meet a column whose codes are in the cache.
#pragma once

#include <span>

#include "kernels/host/isa.h"
#include "kernels/w4_moe/w4_moe.h"

namespace moegate::w4_moe::host {

/// Columns of one unit of parallel work, rows of weights; a gate and its up stay together.
constexpr int kPanelColumns = 32;
constexpr int kPanelRows = 32;  // at most

/// Rows of one expert times neighbouring columns of it.
struct Panel {
  const float* x[kPanelRows];  // rows as Isa::widen wrote them
  int32_t ids[kPanelRows];     // r: rows of the output
  int rows, columns;
  const uint8_t* codes;  // [columns, K/2]
  const void* scales;    // [columns, K/group]
  const uint16_t* bias;  // [columns]; null: none
  int first_output;      // column of out
};

/// The inner loops on one instruction set.
struct Isa {
  const char* name;
  bool (*present)();  // null: always
  /// A row of x, pitch() floats, in the form that `multiply` understands.
  void (*widen)(const uint16_t* from, int k, float* to);
  /// Dot products [panel.rows, panel.columns], scales applied.
  void (*multiply)(const W4Shape& shape, const Panel& panel, float* sums);
  /// Writes a panel's part of the output.
  void (*finish)(const W4Args& args, const Panel& panel, const float* sums);
};

/// Those that this processor has, best first.
std::span<const Isa* const> isas();
inline const Isa& best_isa() {
  return *isas().front();
}

/// Floats of a widened row: K, rounded up so that K of bf16 fill whole steps of 128.
inline int pitch(const W4Shape& shape) {
  return (shape.k + 63) / 64 * 64;
}

/// A launch's input and its activations [source_rows, pitch].
struct Operands {
  const W4Args& args;
  float* x;
  const Isa& isa = best_isa();
};
inline size_t workspace_bytes(const W4Shape& shape) {
  return sizeof(float) * static_cast<size_t>(shape.source_rows()) *
         static_cast<size_t>(pitch(shape));
}

/// Widens all of x; called by every thread of a parallel region, ends with a barrier.
void widen(const Operands& operands);

/// The output of the rows of blocks `first` to `end`, all of one expert, at the columns of a panel
/// of rows of weights that begins with `column`.
void multiply_blocks(const Operands& operands, int first, int end, int column);

/// The variants of these names, for layers and tests, too.
void launch_gather(const Operands& operands);
void launch_expert_once(const Operands& operands);

extern const Isa kPortable, kAvx2, kAvx512, kAvx512Bf16;

/// As KernelSpec::path.
inline std::string isa_path(const Case&, const DeviceFacts&) {
  return best_isa().name;
}

/// Registers a host variant for both operators.
template <auto kLaunch>
struct HostKernel {
  template <class P>
  static KernelSpec<P> spec(const char* name, const char* help) {
    return {.name = name,
            .backend = Backend::host,
            .help = help,
            .launch =
                [](P& p, const Launch&) {
                  kLaunch({p.args(), p.template workspace<float>()});
                },
            .workspace = [](const Case& c,
                            const DeviceFacts&) { return workspace_bytes(P::shape_of(c)); },
            .path = isa_path};
  }
  HostKernel(const char* name, const char* help, const char* file = __builtin_FILE())
      : gate_up(spec<W4GateUp>(name, help), file), down(spec<W4Down>(name, help), file) {}
  Kernel<W4GateUp> gate_up;
  Kernel<W4Down> down;
};

}  // namespace moegate::w4_moe::host
