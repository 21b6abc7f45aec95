// SPDX-License-Identifier: Apache-2.0
// The spans of a result in few bytes. A year of nights has 10^10 of them; timers tick in whole
// nanoseconds, a GPU's in steps of about 32, and most spans lie close to their median.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace moegate {

/// How the table sample holds spans; its column `packing`.
enum class Packing { plain = 0, rice = 1 };

struct PackedSpans {
  Packing packing = Packing::plain;
  std::vector<std::byte> bytes;
};

/// Loses nothing. Each span is split into steps of 1 or 32 ns and what is left; their distances
/// from the median step, and what is left, are Rice codes. Plain, little-endian f32, where a span
/// is no whole number of nanoseconds or takes longer than a second, or where that is shorter.
PackedSpans pack_spans(std::span<const float> spans_ns);

/// Nothing for bytes that pack_spans() cannot have written.
std::optional<std::vector<float>> unpack_spans(Packing packing, std::span<const std::byte> bytes);

}  // namespace moegate
