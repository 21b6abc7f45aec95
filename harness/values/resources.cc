// SPDX-License-Identifier: Apache-2.0
#include "harness/values/resources.h"

#include <algorithm>

namespace moegate {
namespace {

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
  return text;
}

}  // namespace

std::string short_kernel_name(const std::string& kernel) {
  const std::string name = without(without(kernel, "(anonymous namespace)::"), "moegate::");
  // Its own part of the name begins after the last "::" or blank outside of brackets, and ends where
  // the arguments begin.
  size_t begin = 0, end = name.size();
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && depth == 0) {
      end = i;
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (depth == 0 && (c == ':' || c == ' ')) begin = i + 1;
  }
  return begin < end ? name.substr(begin, end - begin) : kernel;
}

}  // namespace moegate
