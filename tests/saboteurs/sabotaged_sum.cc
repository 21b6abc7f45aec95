// SPDX-License-Identifier: Apache-2.0
#include "tests/saboteurs/sabotaged_sum.h"

#include "harness/kernel/only_tensor_fixture.h"

namespace moegate::sabotaged_sum {
namespace {

const Op<SabotagedSum> op({
    .help = "moe_sum, by variants that must be caught",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"topk", "", "k, 1 to 16"},
               {"hidden", "", "H"},
               {"scale", "1", "factor on the sum"}},
    .yardstick = "honest",
    .parts = {"moe_sum"},
});

void launch_honest(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
}

const Kernel<SabotagedSum> on_host({.name = "honest",
                                    .backend = Backend::host,
                                    .help = "no saboteur: has to be measured",
                                    .launch = launch_honest});
#ifdef MOEGATE_HAS_CUDA
const Kernel<SabotagedSum> on_gpu({.name = "honest",
                                   .backend = Backend::cuda,
                                   .help = "no saboteur: has to be measured",
                                   .launch = launch_honest});
#endif

}  // namespace

void honest(SabotagedSum& problem, const Launch& where) {
  const Backend backend = where.device.backend;
  static const Variant& variant =
      find_variant("moe_sum", backend, backend == Backend::host ? "blocked" : "sum_vectorised");
  variant.launch(problem, where);
}

Tensor& output_of(Problem& problem) {
  return test::only(problem, Role::output);
}
Tensor& input_of(Problem& problem) {
  return test::only(problem, Role::activation);
}

Bytes bytes_of(const Tensor& tensor) {
  return {tensor.data<uint8_t>(), tensor.data<uint8_t>() + tensor.bytes()};
}

uint64_t sparse_hash(const Tensor& tensor) {
  uint64_t hash = 0;
  for (size_t at = 0; at < tensor.bytes(); at += 4096) {
    hash = hash_bytes(tensor.data<char>() + at, 8, hash);
  }
  return hash;
}

std::string no_sanitizer(const Case&, const DeviceFacts&) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
  return "a sanitizer's own memory is not told from a variant's";
#else
  return "";
#endif
}

}  // namespace moegate::sabotaged_sum
