// SPDX-License-Identifier: Apache-2.0
// The parameters of the qmoe operators, and the shape they mean.
#include "kernels/qmoe/qmoe_params.h"

#include <algorithm>
#include <limits>

#include "harness/kernel/routing.h"
#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {
namespace {

const std::vector<std::string> kData = {"normal", "edges"};
const std::vector<std::string> kBlocks = {"0", "32", "64", "128"};

std::vector<Param> params(std::vector<Param> own) {
  std::vector<Param> all = {
      {"tokens", "", "T, 1 to 1024"},
      {"experts", "", "E, 1 to 1024"},
      {"topk", "", "k, 1 to 16"},
      {"hidden", "", "H"},
      {"inter", "", "I, the layer's inner width (of one rank)"},
      {"scale-block", "0", "elements of K per scale factor: 32, 64, 128, or 0: one per channel"},
      {"bias", "0", "1: a bias per column"},
      {"dtype", "fp16", "of activations, scales and output: fp16 or bf16"},
      {"values", "normal", "normal, or edges: clamp boundaries, zeros of both signs, zero scales"},
      {"routing", "uniform", kRoutingHelp}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<std::string> usual(const Case& /*c*/, const DeviceFacts& device) {
  if (device.backend == Backend::host) return {"expert_rows"};
  return {"stream_imma", "single_fp32_acc"};
}

const Op<QmoeFc1> fc1({
    .help = "int4 MoE at decode: x * W1 per routed row, interleaved SwiGLU (ONNX Runtime QMoE)",
    .params = fc1_params(),
    .yardstick = "single",
    .before = befores(),
    .tuning = tuning(usual),
});

const Op<QmoeFc2> fc2({
    .help = "int4 MoE at decode: activations * W2 per routed row (ONNX Runtime QMoE)",
    .params = params({}),
    .yardstick = "single",
    .before = befores(),
    .tuning = tuning(usual),
});

QmoeShape common_shape(const Case& c) {
  QmoeShape s{};
  s.tokens = static_cast<int>(c.get_int("tokens", 1, 1024));
  s.experts = static_cast<int>(c.get_int("experts", 1, 1024));
  s.topk = static_cast<int>(c.get_int("topk", 1, std::min(16, s.experts)));
  s.has_bias = c.get_int("bias", 0, 1) != 0;
  s.data = static_cast<QmoeData>(c.get_choice("values", kData));
  s.dtype = parse_float_dtype(c.get("dtype"));
  if (s.dtype == DType::f32) {
    usage_error("{}: dtype = fp32 is not one that QMoE has; use fp16 or bf16", c.where());
  }
  return s;
}

int even_size(const Case& c, const std::string& name) {
  const auto size = static_cast<int>(c.get_int(name, 2, 1 << 16));
  if (size % 2 != 0)
    usage_error("{}: {} = {} is odd; two codes share a byte", c.where(), name, size);
  return size;
}

void set_block(const Case& c, QmoeShape& s) {
  const int block = std::stoi(kBlocks[c.get_choice("scale-block", kBlocks)]);
  if (block != 0 && s.k % block != 0) {
    usage_error("{}: scale-block = {} does not divide K = {}", c.where(), block, s.k);
  }
  s.block = block == 0 ? s.k : block;
}

}  // namespace

std::vector<Param> fc1_params() {
  return params({{"alpha", "1.702", "factor inside the sigmoid"},
                 {"beta", "1", "added to the up half"},
                 {"limit", "7", "clamp of gate (above) and up (both sides); 0: none"}});
}

Befores befores() {
  return {
      .cuda = {{"single_fp32_acc", "split_k?_fp32_acc"}, {"single_fp16_acc"}, {"single_fp32_acc"}}};
}

Tuning tuning(std::vector<std::string> (*usual)(const Case&, const DeviceFacts&)) {
  return {.shape = {"experts", "topk", "hidden", "inter", "scale-block", "bias", "dtype"},
          .usual = usual,
          .without = {"single_fp16_acc", "split_k2_fp16_acc", "split_k3_fp16_acc"}};
}

QmoeShape QmoeFc1::shape_of(const Case& c) {
  QmoeShape s = common_shape(c);
  s.k = even_size(c, "hidden");
  s.n = 2 * static_cast<int>(c.get_int("inter", 1, 1 << 16));
  s.swiglu = true;
  s.alpha = static_cast<float>(c.get_double("alpha", 1e-3, 1e3));
  s.beta = static_cast<float>(c.get_double("beta", -1e3, 1e3));
  const auto limit = static_cast<float>(c.get_double("limit", 0, 1e4));
  s.limit = limit > 0 ? limit : std::numeric_limits<float>::infinity();
  set_block(c, s);
  return s;
}

QmoeShape QmoeFc2::shape_of(const Case& c) {
  QmoeShape s = common_shape(c);
  s.k = even_size(c, "inter");
  s.n = static_cast<int>(c.get_int("hidden", 1, 1 << 16));
  set_block(c, s);
  return s;
}

void QmoeFc1::validate(const Case& c) {
  const auto s = shape_of(c);
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), s.experts, s.topk}, 0);
}

void QmoeFc2::validate(const Case& c) {
  const auto s = shape_of(c);
  routing_scores(c.get("routing"), {std::min(s.tokens, 64), s.experts, s.topk}, 0);
}

}  // namespace moegate::qmoe
