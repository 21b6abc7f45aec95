// SPDX-License-Identifier: Apache-2.0
#include "harness/values/kernel_name.h"

#include <algorithm>

namespace moegate {
namespace {

void drop(std::string& text, const std::string& part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
}

}  // namespace

KernelName kernel_name(const std::string& demangled) {
  std::string text = demangled;
  // Compilers and drivers do not agree on how an unnamed namespace is written.
  for (const char* part : {"(anonymous namespace)::", "<unnamed>::", "moegate::"}) drop(text, part);
  // The kernel begins after the last "::" or blank outside of brackets, and ends where the arguments begin.
  size_t begin = 0, end = text.size();
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && depth == 0) {
      end = i;
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (depth == 0 && (c == ':' || c == ' ')) begin = i + 1;
  }
  const size_t bracket = std::min(text.find('<', begin), end);
  if (begin >= bracket) return {demangled, ""};
  return {text.substr(begin, bracket - begin), text.substr(bracket, end - bracket)};
}

}  // namespace moegate
