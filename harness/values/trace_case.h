// SPDX-License-Identifier: Apache-2.0
// A case in FlashInfer-Bench's trace schema, and back. There a definition is a kernel with its constant sizes, which
// whoever measures gives axes; here both are one key. Every parameter stands in the definition's name but tokens and
// seed, which differ from launch to launch of one model's layer: the schema has no place for texts such as a routing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace moegate {

struct TraceCase {
  std::string definition;  // "moegate.topk_sort,experts=256,routing=zipf%3A0.67,topk=8"
  std::map<std::string, int64_t> axes;    // every parameter that is a whole number from 0
  std::map<std::string, double> scalars;  // every other number
};

/// Of a case's key. What is no letter, digit, '-', '_' or '.' becomes %XX, so that the name can be a file's.
TraceCase trace_case(const std::string& key);

struct NamedCase {
  std::string op;
  std::map<std::string, std::string> params;  // those of the key
};

/// Whether the name is one that trace_case() makes, of this or another run.
bool is_own_definition(const std::string& definition);

/// Back to the case; nothing for a name that trace_case() does not make, or that contradicts the axes.
std::optional<NamedCase> case_of_trace(const std::string& definition,
                                       const std::map<std::string, int64_t>& axes);

}  // namespace moegate
