// SPDX-License-Identifier: Apache-2.0
// A value described once: the list of its fields, from which the wire's JSON and the store's INSERT
// and SELECT follow. Most lists are in result_fields.h; to add a field is a name there and a column
// in the newest schema.
#pragma once

#include <boost/preprocessor/seq/enum.hpp>
#include <boost/preprocessor/seq/transform.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

#include <cstddef>
#include <tuple>
#include <utility>

namespace moegate {

/// One field of T: its name on the wire, where it is, and its column in the store, which is called
/// like it unless stated.
template <class T, class V>
struct Field {
  constexpr Field(const char* the_name, V T::*the_member) : Field(the_name, the_member, the_name) {}
  constexpr Field(const char* the_name, V T::*the_member, const char* the_column)
      : name(the_name), member(the_member), column(the_column) {}

  constexpr const V& of(const T& value) const { return value.*member; }
  constexpr V& of(T& value) const { return value.*member; }

  const char* name;
  V T::*member;
  const char* column;
};

/// The fields of these members, called like them.
#define MOEGATE_FIELDS(Type, ...) \
  std::tuple(BOOST_PP_SEQ_ENUM(   \
      BOOST_PP_SEQ_TRANSFORM(MOEGATE_FIELD, Type, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))))
#define MOEGATE_FIELD(ignored, Type, member) Field(#member, &Type::member)

/// A field of a member of T: on the wire and in the store it stands among T's own.
template <class T, class Part, class V>
struct InnerField {
  constexpr const V& of(const T& value) const { return value.*part.*member; }
  constexpr V& of(T& value) const { return value.*part.*member; }

  const char* name;
  Part T::*part;
  V Part::*member;
  const char* column;
};

/// The fields of T that are one number or text each: columns of its table.
template <class T>
inline constexpr auto kFields = std::tuple<>();
/// The fields of T that are lists: tables of their own. On the wire they stand beside the others.
template <class T>
inline constexpr auto kParts = std::tuple<>();

/// Those of a member that has a list, as fields of T.
template <class T, class Part>
constexpr auto fields_of(Part T::*part) {
  return std::apply(
      [part]<class... V>(const Field<Part, V>&... field) {
        return std::tuple(InnerField<T, Part, V>{field.name, part, field.member, field.column}...);
      },
      kFields<Part>);
}

/// Calls `does` with every Field of a list.
template <class Fields, class F>
constexpr void for_each_field(const Fields& fields, F&& does) {
  std::apply([&](const auto&... field) { (does(field), ...); }, fields);
}

template <class Fields>
constexpr size_t count_fields(const Fields&) {
  return std::tuple_size_v<Fields>;
}

/// Converts to anything, so that the members of an aggregate can be counted.
struct Anything {
  template <class V>
  operator V() const;  // NOLINT: implicit is what it is for
};

template <class T, class... Members>
consteval size_t count_members() {
  if constexpr (requires { T{std::declval<Members>()..., Anything{}}; }) {
    return count_members<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

/// How many of them are in no list: to be asserted beside the lists, so that none is forgotten.
template <class T>
consteval size_t count_unlisted() {
  return count_members<T>() - count_fields(kFields<T>) - count_fields(kParts<T>);
}

}  // namespace moegate
