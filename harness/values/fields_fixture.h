// SPDX-License-Identifier: Apache-2.0
// For tests: values of which every field differs from its default and from the others, and their
// comparison field by field.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/values/json_fields.h"

namespace moegate::test {

class Distinct {
 public:
  template <class T>
  T make() {
    T value;
    set(value);
    return value;
  }

 private:
  template <class V>
  void set(V& value) {
    ++n_;
    if constexpr (Described<V>) {
      const auto each = [&](const auto& field) { set(field.of(value)); };
      for_each_field(kFields<V>, each);
      for_each_field(kParts<V>, each);
    } else if constexpr (std::is_same_v<V, std::string>) {
      value = "text " + std::to_string(n_);
    } else if constexpr (std::is_same_v<V, bool>) {
      value = !value;
    } else if constexpr (std::is_enum_v<V>) {
      value = static_cast<V>(1);
    } else if constexpr (std::is_arithmetic_v<V>) {
      value = static_cast<V>(n_ + 0.5);
    } else if constexpr (std::is_same_v<V, std::map<std::string, std::string>>) {
      value["name"] = "text " + std::to_string(n_);
    } else {
      value.resize(2);
      for (auto& element : value) set(element);
    }
  }
  int n_ = 0;
};

/// Expects what `fields` lists, and what those list, to be equal.
template <class T, class Fields>
void expect_same(const T& a, const T& b, const Fields& fields, const std::string& where = "") {
  for_each_field(fields, [&](const auto& field) {
    using V = std::remove_cvref_t<decltype(field.of(a))>;
    const std::string here = where + "." + field.name;
    const V &x = field.of(a), &y = field.of(b);
    if constexpr (Described<V>) {
      expect_same(x, y, kFields<V>, here);
    } else if constexpr (requires { x.back(); } && !std::is_same_v<V, std::string>) {
      ASSERT_EQ(x.size(), y.size()) << here;
      for (size_t i = 0; i < x.size(); ++i) {
        using E = typename V::value_type;
        if constexpr (Described<E>) {
          expect_same(x[i], y[i], kFields<E>, here);
          expect_same(x[i], y[i], kParts<E>, here);
        } else {
          EXPECT_EQ(x[i], y[i]) << here;
        }
      }
    } else {
      EXPECT_EQ(x, y) << here;
    }
  });
}

}  // namespace moegate::test
