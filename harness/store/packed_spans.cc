// SPDX-License-Identifier: Apache-2.0
#include "harness/store/packed_spans.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace moegate {
namespace {

static_assert(std::endian::native == std::endian::little, "plain spans are little-endian");

// Head of packed spans: count, median step, both u32; step, Rice parameters of steps and rests.
constexpr size_t kHead = 4 + 4 + 1 + 1 + 1;
constexpr uint32_t kMost = 1 << 30;  // ns; a second
constexpr uint32_t kEscape = 20;     // ones before a number that is written out
constexpr int kWide = 32;            // bits of a number that is written out
constexpr std::array<uint32_t, 2> kSteps = {1, 32};
constexpr std::array<int, 2> kMostRice = {24, 5};  // of the distances, of the rests

/// 0, -1, 1, -2, … -> 0, 1, 2, 3, …
uint32_t fold(int64_t value) {
  return static_cast<uint32_t>(value >= 0 ? value * 2 : -value * 2 - 1);
}
int64_t unfold(uint32_t folded) {
  const auto half = static_cast<int64_t>(folded >> 1);
  return (folded & 1) == 0 ? half : -half - 1;
}

size_t bits_of(uint32_t folded, int rice) {
  const uint32_t ones = folded >> rice;
  return ones < kEscape ? ones + 1 + static_cast<size_t>(rice) : kEscape + size_t{kWide};
}

/// Spans in steps: what is coded, and how.
struct Coded {
  uint32_t step = 1, median = 0;
  std::array<std::vector<uint32_t>, 2> folded;  // distances from the median; rests, none of step 1
  std::array<int, 2> rice = {0, 0};
  size_t bits = 0;
};

void choose_rice(Coded& coded) {
  for (size_t i = 0; i < coded.folded.size(); ++i) {
    size_t best = SIZE_MAX;
    for (int rice = 0; rice <= kMostRice[i]; ++rice) {
      size_t bits = 0;
      for (const uint32_t f : coded.folded[i]) bits += bits_of(f, rice);
      if (bits < best) coded.rice[i] = rice;
      best = std::min(best, bits);
    }
    coded.bits += best;
  }
}

Coded in_steps_of(uint32_t step, const std::vector<uint32_t>& spans) {
  Coded coded{.step = step};
  std::vector<uint32_t> steps;
  for (const uint32_t s : spans) steps.push_back((s + step / 2) / step);
  std::vector<uint32_t> sorted = steps;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  coded.median = *middle;
  for (size_t i = 0; i < spans.size(); ++i) {
    coded.folded[0].push_back(fold(int64_t{steps[i]} - coded.median));
    if (step > 1) coded.folded[1].push_back(fold(int64_t{spans[i]} - int64_t{steps[i]} * step));
  }
  choose_rice(coded);
  return coded;
}

class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void put(uint32_t value, int count) {  // the lowest first
    for (int i = 0; i < count; ++i) put_bit((value >> i & 1) != 0);
  }
  void put_rice(uint32_t folded, int rice) {
    const uint32_t ones = std::min(folded >> rice, kEscape);
    for (uint32_t i = 0; i < ones; ++i) put_bit(true);
    if (ones == kEscape) return put(folded, kWide);
    put_bit(false);
    put(folded, rice);
  }

 private:
  void put_bit(bool bit) {
    if (used_ == 0) bytes_.push_back(std::byte{0});
    if (bit) bytes_.back() |= std::byte{1} << used_;
    used_ = (used_ + 1) % 8;
  }
  std::vector<std::byte>& bytes_;
  int used_ = 0;  // bits of the last byte
};

/// Behind the end it reads zeros, and says so.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint32_t take(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(take_bit()) << i;
    return value;
  }
  uint32_t take_rice(int rice) {
    uint32_t ones = 0;
    while (ones < kEscape && take_bit()) ++ones;
    return ones == kEscape ? take(kWide) : ones << rice | take(rice);
  }
  bool overrun() const { return at_ > bytes_.size() * 8; }

 private:
  bool take_bit() {
    const size_t at = at_++;
    return at < bytes_.size() * 8 && (std::to_integer<unsigned>(bytes_[at / 8]) >> at % 8 & 1) != 0;
  }
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

void put_u32(std::vector<std::byte>& bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(std::byte(value >> shift & 0xff));
}
uint32_t u32_at(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::byte> written(const Coded& coded) {
  std::vector<std::byte> bytes;
  put_u32(bytes, static_cast<uint32_t>(coded.folded[0].size()));
  put_u32(bytes, coded.median);
  bytes.push_back(std::byte(coded.step));
  for (const int rice : coded.rice) bytes.push_back(std::byte(rice));
  BitWriter bits(bytes);
  for (size_t i = 0; i < coded.folded[0].size(); ++i) {
    bits.put_rice(coded.folded[0][i], coded.rice[0]);
    if (coded.step > 1) bits.put_rice(coded.folded[1][i], coded.rice[1]);
  }
  return bytes;
}

std::optional<std::vector<float>> unpack_rice(std::span<const std::byte> bytes) {
  if (bytes.size() < kHead) return std::nullopt;
  const uint32_t count = u32_at(bytes, 0), median = u32_at(bytes, 4);
  const auto at = [&](size_t i) { return std::to_integer<int>(bytes[i]); };
  const int step = at(8), rice = at(9), rest_rice = at(10);
  if (std::ranges::count(kSteps, static_cast<uint32_t>(step)) == 0 || median > kMost ||
      rice > kMostRice[0] || rest_rice > kMostRice[1] || count > (bytes.size() - kHead) * 8) {
    return std::nullopt;
  }
  BitReader bits(bytes.subspan(kHead));
  std::vector<float> spans;
  spans.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    int64_t span = (median + unfold(bits.take_rice(rice))) * step;
    if (step > 1) span += unfold(bits.take_rice(rest_rice));
    if (span < 0 || span > kMost || bits.overrun()) return std::nullopt;
    spans.push_back(static_cast<float>(span));
  }
  return spans;
}

PackedSpans plain(std::span<const float> spans_ns) {
  const auto bytes = std::as_bytes(spans_ns);
  return {Packing::plain, {bytes.begin(), bytes.end()}};
}

}  // namespace

PackedSpans pack_spans(std::span<const float> spans_ns) {
  std::vector<uint32_t> whole;
  for (const float s : spans_ns) {
    if (!(s >= 0 && s < static_cast<float>(kMost)) || s != std::floor(s) || std::signbit(s))
      return plain(spans_ns);
    whole.push_back(static_cast<uint32_t>(s));
  }
  if (whole.empty()) return plain(spans_ns);
  Coded best = in_steps_of(kSteps[0], whole);
  Coded other = in_steps_of(kSteps[1], whole);
  if (other.bits < best.bits) best = std::move(other);
  if (kHead + (best.bits + 7) / 8 >= spans_ns.size_bytes()) return plain(spans_ns);
  return {Packing::rice, written(best)};
}

std::optional<std::vector<float>> unpack_spans(Packing packing, std::span<const std::byte> bytes) {
  if (packing == Packing::rice) return unpack_rice(bytes);
  if (packing != Packing::plain) return std::nullopt;
  std::vector<float> spans(bytes.size() / sizeof(float));
  if (!spans.empty()) std::memcpy(spans.data(), bytes.data(), spans.size() * sizeof(float));
  return spans;
}

}  // namespace moegate
