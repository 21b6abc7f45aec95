// SPDX-License-Identifier: Apache-2.0
// One program for all targets, as each would take seconds to link: FUZZ_TARGET names the one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.h"

namespace {

moegate::fuzz::Target target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* wanted = std::getenv("FUZZ_TARGET");
  for (const auto& [name, run] : moegate::fuzz::kTargets) {
    if (wanted && std::string_view(name) == wanted) target = run;
  }
  if (target) return 0;
  std::fprintf(stderr, "FUZZ_TARGET is '%s'; it must be one of:", wanted ? wanted : "");
  for (const auto& named : moegate::fuzz::kTargets) std::fprintf(stderr, " %s", named.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target({reinterpret_cast<const char*>(data), size});
  return 0;
}
