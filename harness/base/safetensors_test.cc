// SPDX-License-Identifier: Apache-2.0
#include "harness/base/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/refusal_fixture.h"

namespace moegate {
namespace {

/// Written by hand, so that every field can be wrong.
std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

std::string one_tensor(const std::string& dtype, const std::string& shape, size_t end) {
  return R"({"__metadata__":{"format":"pt"},"x":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":[0,)" + std::to_string(end) + "]}}";
}

std::vector<double> tensor_values(const std::string& dtype, const std::string& data) {
  const std::string bytes = safetensors_bytes(one_tensor(dtype, "[2]", data.size()), data);
  return read_safetensors("f.safetensors", bytes, "x").values;
}

void expect_safetensors_refused(const std::string& bytes, const std::string& what) {
  const std::string why = refusal_of([&] { read_safetensors("f.safetensors", bytes, "x"); });
  EXPECT_NE(why.find("f.safetensors"), std::string::npos) << why;
  EXPECT_NE(why.find(what), std::string::npos) << why;
}

TEST(Safetensors, ReadsEveryTypeOfNumber) {
  const std::vector<double> expected = {1, -2};
  EXPECT_EQ(tensor_values("F32", std::string("\0\0\x80\x3f\0\0\0\xc0", 8)), expected);
  EXPECT_EQ(tensor_values("BF16", std::string("\x80\x3f\0\xc0", 4)), expected);
  EXPECT_EQ(tensor_values("F16", std::string("\0\x3c\0\xc0", 4)), expected);
  EXPECT_EQ(tensor_values("F64", std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0", 16)),
            expected);
  EXPECT_EQ(tensor_values("I32", std::string("\1\0\0\0\xfe\xff\xff\xff", 8)), expected);
  EXPECT_EQ(
      tensor_values("I64", std::string("\1\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16)),
      expected);
  EXPECT_EQ(tensor_values("I16", std::string("\1\0\xfe\xff", 4)), expected);
  EXPECT_EQ(tensor_values("I8", "\1\xfe"), expected);
  EXPECT_EQ(tensor_values("U8", "\1\xfe"), (std::vector<double>{1, 254}));
}

TEST(Safetensors, ReadsEveryHalf) {
  EXPECT_EQ(tensor_values("F16", std::string("\1\0\xff\x7b", 4)),
            (std::vector<double>{std::ldexp(1, -24), 65504}));
  const std::vector<double> ends = tensor_values("F16", std::string("\0\xfc\0\x7e", 4));
  EXPECT_EQ(ends[0], -INFINITY);
  EXPECT_TRUE(std::isnan(ends[1]));
}

TEST(Safetensors, KeepsTheShape) {
  const std::string data(24, '\0');
  const auto tensor =
      read_safetensors("f", safetensors_bytes(one_tensor("I32", "[2, 3]", data.size()), data), "x");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.values.size(), 6u);
}

TEST(Safetensors, RefusesWhatIsDamaged) {
  const std::string data(8, '\0');
  const auto refused = [&](const std::string& header, const std::string& what) {
    expect_safetensors_refused(safetensors_bytes(header, data), what);
  };
  expect_safetensors_refused("", "too short");
  expect_safetensors_refused(std::string(8, '\xff'), "truncated");
  expect_safetensors_refused(safetensors_bytes("{}", "").substr(0, 9), "truncated");
  refused("{", "damaged");
  refused("[1]", "no tensor 'x'");
  refused(R"({"y":{}})", "it has y");
  refused(R"({"x":{}})", "type unknown");
  refused(one_tensor("F8_E4M3", "[2]", 8), "type F8_E4M3");
  refused(one_tensor("F32", "[-2]", 8), "shape");
  refused(one_tensor("F32", "null", 8), "shape");
  refused(one_tensor("F32", "[67108864, 67108864]", 8), "more than");
  refused(one_tensor("F32", "[2]", 12), "truncated");
  refused(one_tensor("F32", "[3]", 12), "truncated");
  refused(one_tensor("F32", "[3]", 8), "truncated");
  refused(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "truncated");
  refused(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":"all"}})", "truncated");
}

}  // namespace
}  // namespace moegate
