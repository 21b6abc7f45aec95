// SPDX-License-Identifier: Apache-2.0
// Format: 8 bytes, the header's length, little-endian; the header, a JSON object that gives each tensor its dtype,
// shape and data_offsets [begin, end); the tensors' bytes, row-major and little-endian. Offsets count from the header's
// end. "__metadata__" is no tensor.
#include "harness/base/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/json_text.h"

namespace moegate {
namespace {

constexpr uint64_t kLongestHeader = uint64_t{16} << 20;
constexpr uint64_t kMostElements = uint64_t{1} << 26;  // 512 MiB of doubles

/// A value at an address that need not be aligned.
template <class T>
T raw_value(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
double as_is(const char* at) {
  return static_cast<double>(raw_value<T>(at));
}

double from_bf16(const char* at) {
  return std::bit_cast<float>(uint32_t{raw_value<uint16_t>(at)} << 16);
}

double from_f16(const char* at) {
  const auto bits = raw_value<uint16_t>(at);
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double size = exponent == 0    ? std::ldexp(fraction, -14)
                      : exponent != 31 ? std::ldexp(1 + fraction, exponent - 15)
                      : fraction == 0  ? INFINITY
                                       : NAN;
  return bits >> 15 != 0 ? -size : size;
}

struct NumberType {
  const char* name;
  size_t bytes;
  double (*read)(const char* at);
};
constexpr std::array kNumberTypes = {
    NumberType{"F32", 4, as_is<float>},    NumberType{"F64", 8, as_is<double>},
    NumberType{"BF16", 2, from_bf16},      NumberType{"F16", 2, from_f16},
    NumberType{"I64", 8, as_is<int64_t>},  NumberType{"I32", 4, as_is<int32_t>},
    NumberType{"I16", 2, as_is<int16_t>},  NumberType{"I8", 1, as_is<int8_t>},
    NumberType{"U64", 8, as_is<uint64_t>}, NumberType{"U32", 4, as_is<uint32_t>},
    NumberType{"U16", 2, as_is<uint16_t>}, NumberType{"U8", 1, as_is<uint8_t>},
};

/// A file under its path, so that every complaint names it.
class SafetensorsFile {
 public:
  SafetensorsFile(const std::string& path, const std::string& bytes, const std::string& name)
      : path_(path), bytes_(bytes), name_(name) {}

  NumberTensor read() {
    const nlohmann::json header = read_header();
    const nlohmann::json& tensor = find(header);
    const NumberType& type = type_of(tensor);
    NumberTensor out{shape_of(tensor), {}};
    const uint64_t count = count_of(out.shape);
    const uint64_t begin = begin_of(tensor, count * type.bytes);
    out.values.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      out.values.push_back(type.read(data_.data() + begin + i * type.bytes));
    }
    return out;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("'{}' {}; save it again, for example with safetensors.torch.save_file", path_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  nlohmann::json read_header() {
    static_assert(std::endian::native == std::endian::little);
    constexpr size_t kLength = 8;
    if (bytes_.size() < kLength) fail("is too short for a safetensors file");
    const auto length = raw_value<uint64_t>(bytes_.data());
    if (length > kLongestHeader || length > bytes_.size() - kLength) {
      fail("is no safetensors file, or truncated: its header would have {} bytes", length);
    }
    const std::string_view all = bytes_;
    data_ = all.substr(kLength + length);
    return parse_json(path_, all.substr(kLength, length));
  }

  const nlohmann::json& find(const nlohmann::json& header) const {
    const bool named = header.is_object() && name_ != "__metadata__";
    const auto found = named ? header.find(name_) : header.end();
    if (found != header.end() && found->is_object()) return *found;
    std::string names;
    for (const auto& item : header.items()) {
      if (item.key() != "__metadata__") names += (names.empty() ? "" : ", ") + item.key();
    }
    fail("has no tensor '{}'; it has {}", name_,
         names.empty() ? "none" : clipped(one_line(valid_utf8(names)), 200));
  }

  /// Null where it is missing.
  static const nlohmann::json& member(const nlohmann::json& tensor, const char* name) {
    static const nlohmann::json none;
    const auto found = tensor.find(name);
    return found == tensor.end() ? none : *found;
  }

  const NumberType& type_of(const nlohmann::json& tensor) const {
    const nlohmann::json& dtype = member(tensor, "dtype");
    const std::string text = dtype.is_string() ? dtype.get<std::string>() : "unknown";
    const auto type = std::ranges::find(kNumberTypes, text, &NumberType::name);
    if (type == kNumberTypes.end()) {
      fail("has a tensor '{}' of type {}, which is not read here", name_, one_line(text));
    }
    return *type;
  }

  std::vector<int64_t> shape_of(const nlohmann::json& tensor) const {
    const nlohmann::json& shape = member(tensor, "shape");
    std::vector<int64_t> extents;
    for (const nlohmann::json& extent : shape) {
      const bool fits = extent.is_number_unsigned() && extent.get<uint64_t>() <= kMostElements;
      if (!fits) fail("has a tensor '{}' without a shape, or a huge one", name_);
      extents.push_back(extent.get<int64_t>());
    }
    if (!shape.is_array()) fail("has a tensor '{}' without a shape", name_);
    return extents;
  }

  uint64_t count_of(const std::vector<int64_t>& shape) const {
    uint64_t count = 1;  // no product overflows: both factors are at most kMostElements
    for (const int64_t extent : shape) {
      count *= static_cast<uint64_t>(extent);
      if (count > kMostElements) {
        fail("has a tensor '{}' of more than {} elements", name_, kMostElements);
      }
    }
    return count;
  }

  uint64_t begin_of(const nlohmann::json& tensor, uint64_t bytes) const {
    const nlohmann::json& offsets = member(tensor, "data_offsets");
    const bool pair = offsets.is_array() && offsets.size() == 2 &&
                      offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    const uint64_t begin = pair ? offsets[0].get<uint64_t>() : 1;
    const uint64_t end = pair ? offsets[1].get<uint64_t>() : 0;
    if (begin > end || end > data_.size() || end - begin != bytes) {
      fail("is truncated or damaged: tensor '{}' has no {} bytes", name_, bytes);
    }
    return begin;
  }

  const std::string& path_;
  const std::string& bytes_;
  const std::string& name_;
  std::string_view data_;  // behind the header
};

}  // namespace

NumberTensor read_safetensors(const std::string& path, const std::string& bytes,
                              const std::string& name) {
  return SafetensorsFile(path, bytes, name).read();
}

}  // namespace moegate
