// SPDX-License-Identifier: Apache-2.0
// Operators moe_gate_up and moe_down: the two grouped GEMMs of a fused MoE layer as the Triton
// kernels of vLLM, SGLang and aphrodite-engine run them, with block-scaled fp8 (w8a8), int8 (w8a8)
// or bf16.
// R = T*k routed rows; row r = t*k + j is token t's j-th expert e(r):
//
//   out[r, n] = w[r] * sum_g s_x[x(r), g] * s_w[e(r), n/128, g] * sum_{k in g} x[x(r), k] *
//               weights[e(r), n, k]
//
// - gate_up (K = hidden, N = 2*inter): x(r) = r / topk, without w
// - down (K = inter, N = hidden): x(r) = r, times the routing weight w[r] unless weighted = 0
//
// g counts groups of 128 along K; bf16 has no scale factors. With scaling = channel or tensor
// (compressed-tensors, Mixtral) the whole sum has one factor of x and one of weights:
//
// - channel: s_x[x(r)], s_w[e(r), n]
// - tensor: one s_x, known beforehand; s_w[e(r)], in gate_up one of the gates and one of the ups
//
// int8 is scaled so only. Its sums over K, at most 65536, are exact in int32 in any order.
//
// With `bias`, where scale factors are not of blocks: bias[e(r), n] in bf16 is added to the scaled
// sum, before w[r].
//
// Rounded once, to bf16. Every variant starts from the outputs of moe_align for blocks of BM rows
// (aligned_rows.h), which are operands here; rows of padding (sorted id R) have no row in x and
// none in out. Every block has an expert. With `rank` E is how many experts the rank has, and only
// their rows are sorted: a row of another rank's expert is not read, and its row of out is
// undefined.
//
// x and the output are in token order (x(r), r), or in sorted order: what row r reads or is at r's
// place in sorted_token_ids, undefined rows in between, as in DeepGEMM's contiguous layout and, of
// what lies between the two products, in SGLang PR 10567; or both are in masked order, each
// expert's rows at the beginning of a part of the same size (masked_capacity()), as in DeepGEMM's
// masked layout and in decoding under expert parallelism. A variant asks for each of them in the
// order it works in.
#pragma once

#include <array>
#include <cmath>

#include "harness/kernel/expert_rank.h"
#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"
#include "kernels/check/truth_of_rows.h"
#include "kernels/moe_gemm/aligned_rows.h"

namespace moegate::moe_gemm {

/// Elements that share a scale factor: along K in x and weights, along N in weights.
constexpr int kMoeGroup = 128;
/// What the CUDA kernels copy and multiply at a time of a row of x and weights, the width of the
/// swizzle: in fp8 a group of scale factors.
constexpr int kSliceBytes = 128;

namespace tiles {
struct TileChoice;  // tiles/tile.h
}

/// What the scale factors of e4m3 and i8 belong to.
enum class ScaledBy : uint8_t { block, channel, tensor };

struct MoeGemmShape {
  int tokens, experts, topk;  // T, E, k; E of this rank
  int k, n;                   // of the product
  int block;                  // BM: rows that every expert's rows are padded to
  bool down;
  // Halves of a byte: without a bias the arguments of a launch, which are hashed, stay the same.
  uint8_t unweighted : 4 = 0;  // down without routing weights
  uint8_t biased : 4 = 0;
  bool early = false;  // in a chain: it starts while the launches before it still run
  ScaledBy scaled_by = ScaledBy::block;
  DType dtype;  // of x and weights: e4m3, i8 or bf16

  MOEGATE_HD int rows() const { return tokens * topk; }                  // R
  MOEGATE_HD int source_rows() const { return down ? rows() : tokens; }  // rows of x
  MOEGATE_HD int k_groups() const { return (k + kMoeGroup - 1) / kMoeGroup; }
  MOEGATE_HD int n_groups() const { return (n + kMoeGroup - 1) / kMoeGroup; }
  /// Row of x that row r reads.
  MOEGATE_HD int source(int r) const { return down ? r : r / topk; }
  MOEGATE_HD int64_t expert_elements() const { return int64_t{n} * k; }
  bool scaled() const { return dtype == DType::e4m3 || dtype == DType::i8; }
  /// Whether factors follow the sum over all of K.
  bool scaled_once() const { return scaled() && scaled_by != ScaledBy::block; }
  /// Factors of a row of x (tensor: one of all rows), of an expert's weights.
  int x_factors() const { return scaled_by == ScaledBy::block ? k_groups() : 1; }
  int64_t weight_factors() const {
    if (scaled_by == ScaledBy::block) return int64_t{n_groups()} * k_groups();
    return scaled_by == ScaledBy::channel ? n : down ? 1 : 2;
  }
  int row_bytes() const { return k * static_cast<int>(size_of(dtype)); }  // of x and weights
  /// Slices of K, as stages hold them: kSliceBytes of each row.
  int k_slices() const { return (row_bytes() + kSliceBytes - 1) / kSliceBytes; }
  int64_t capacity() const { return aligned_capacity(rows(), experts, block); }
};

/// BM as vLLM chooses it where no tuned configuration is found.
int default_block(DType dtype, int tokens);

template <DType kDtype>
constexpr int kSliceElements = kSliceBytes / static_cast<int>(size_of(kDtype));
/// k_slices() where the type is known when a kernel is compiled.
template <DType kDtype>
MOEGATE_HD int slices_of(const MoeGemmShape& shape) {
  return (shape.k + kSliceElements<kDtype> - 1) / kSliceElements<kDtype>;
}

/// Of x with its scale factors, and of the output.
enum class RowOrder { tokens, sorted, masked };

/// Everything a launch needs, by value; pointers are device pointers. What is in sorted order has a
/// row per place instead: [capacity, ...].
struct MoeGemmArgs {
  const void* x;                    // [source_rows, K] of dtype
  const float* x_scales;            // [source_rows, K/128] (channel: [source_rows], tensor: [1])
  const void* weights;              // [E, N, K] of dtype
  const float* weight_scales;       // [E, ceil(N/128), K/128], or [E, weight_factors()]
  const float* routing_weights;     // [R]; null without
  const int32_t* sorted_token_ids;  // [capacity]
  const int32_t* expert_ids;        // [ceil(capacity / BM)]
  const int32_t* padded_rows;       // [1]: num_tokens_post_padded
  uint16_t* out;                    // [R, N] bf16
  MoeGemmShape shape;               // bf16: null scales

  /// Where scaled_once(): the factors of what row r reads, and of an expert's column.
  MOEGATE_HD const float* x_factor(int r) const {
    return x_scales + (shape.scaled_by == ScaledBy::channel ? shape.source(r) : 0);
  }
  MOEGATE_HD const float* weight_factor(int expert, int column) const {
    if (shape.scaled_by == ScaledBy::channel) {
      return weight_scales + int64_t{expert} * shape.n + column;
    }
    return weight_scales + (shape.down ? expert : 2 * expert + (column >= shape.n / 2));
  }
};
static_assert(std::has_unique_object_representations_v<MoeGemmArgs>, "a row's identity");

/// What MoeGemmArgs are where shape.biased. A type of its own: kernels without a bias keep their
/// arguments, and so their code.
struct BiasedArgs : MoeGemmArgs {
  const uint16_t* bias;  // [E, N] bf16

  MOEGATE_HD const uint16_t* bias_of(int expert, int column) const {
    return bias + int64_t{expert} * shape.n + column;
  }
};
static_assert(sizeof(BiasedArgs) == sizeof(MoeGemmArgs) + sizeof(void*), "no padding");

/// Where shape.biased: what MoeGemm::args() made; a copy of its MoeGemmArgs alone has no bias.
MOEGATE_HD inline const BiasedArgs& with_bias(const MoeGemmArgs& args) {
  return static_cast<const BiasedArgs&>(args);
}

/// Where the output is compared with the truth: these rows at these columns, both ascending.
struct MoeGemmSample {
  std::vector<int32_t> rows, columns;
};

/// 0, 1, ... up to `count`.
std::vector<int32_t> all_below(int count);

/// Everything where the whole product has at most `most_products` multiply-adds. Else up to 130
/// rows (first, last, a seeded one and the last one of each of up to 64 active experts) at seeded
/// runs of columns (the first and the last among them). Of rows without an expert (-1) none.
MoeGemmSample moe_gemm_sample(const MoeGemmShape& shape, std::span<const int32_t> row_expert,
                              uint64_t seed, double most_products);

/// Some rows of one expert and some of its columns on the host. Scale factors are absent in bf16.
struct ExpertProduct {
  int k;
  DType dtype;
  std::vector<uint8_t> x, weights;             // bytes of [rows, K], [columns, K]
  std::vector<float> x_scales, weight_scales;  // [rows, K/128], [columns, K/128]
  std::vector<float> routing_weights;          // [rows]; empty: 1
  std::vector<double> bias;                    // [rows, columns]; empty: none
};

/// Scale factors or a bias misread, as outputs spoilt on purpose have them.
enum class Slip {
  none,
  transposed,   // of blocks, as [K/128, N/128]
  of_expert_0,  // of weights, for all experts; the bias, too
  gate_for_up,  // of weights per tensor
  neighbours,   // of x per channel, the row's beside it
  forgotten,    // of weights
  bias_dropped,
  bias_twice,
  bias_scaled,     // added before the scale factors
  bias_unweighted  // added after the routing weight
};

/// The expected output [rows, columns] in plain double code.
std::vector<double> expert_truth(const ExpertProduct& product);

/// What a case's routing led to, from the experts [R] of its rows.
std::vector<Fact> routing_facts(std::span<const int32_t> row_expert, int experts,
                                double padded_rows);

/// What a sum of S parts of K, added up in bf16, rounds in between (Tolerance::between): S parts,
/// each the root of 1/S of the output, and S - 1 sums, of which the last is the output's own
/// rounding; their squares are less than S roundings of the output.
inline double rounded_between(int splits) {
  return splits == 1 ? 0 : 0.43 * 0x1p-8 * std::sqrt(splits);
}

/// What both operators are; they differ in their shape alone.
class MoeGemm : public Problem {
 public:
  // Measured: 1.7e-3, worst row 1.9e-3, nearly all of it the output's own rounding. Variants that
  // round partial products state a factor.
  static constexpr Tolerance kTolerance{
      .rtol = 1e-2, .atol = 1e-2, .rel_l2 = 3e-3, .row = 9e-3, .scale = 2e-3, .between = 0};
  /// Multiply-adds up to which the truth is the whole output.
  static constexpr double kWholeTruth = 5e8;

  MoeGemm(Device& device, const Case& c, const MoeGemmShape& shape,
          double most_products = kWholeTruth);
  /// check() expects the output in the order last asked for. Throws Error(internal) for what nobody
  /// has sorted.
  BiasedArgs args(RowOrder x = RowOrder::tokens, RowOrder out = RowOrder::tokens);
  /// Copies the activations to sorted order, poison in the rows of padding; for prepare(). gate_up:
  /// a token's row topk times.
  void sort_activations();
  /// Makes an output [capacity, N] beside the one in token order; for prepare().
  void sort_output();

  Checked check() const override;
  bool find_truth() override;
  std::vector<SampledOutput> sampled_outputs() const override;
  std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows) override;
  std::vector<TokenRows> rows_of(int64_t place) const override;
  Corruptions corruptions() override;
  /// Puts the output of a slip in place of the right one; none where the case cannot have it.
  void slip(Slip slip);
  Cost cost() const override;
  /// listed: tensors expert_rows [E] and rows_by_expert [R], which have no padding, and topk_ids
  /// [T, k]; sorted: also x and out in sorted order, tensors "sorted x" and so on; masked: "masked
  /// x" [E, Mmax, K] ...
  void lay_out(const std::string& rows) override;
  bool writes(const Tensor& output) const override { return &output == &out(); }
  std::vector<Fact> facts() const override;

  const MoeGemmShape shape;
  /// The rank of the case.
  const ExpertRank& rank() const { return rank_; }
  /// What variant `tuned` launches, put here by its prepare().
  std::shared_ptr<const tiles::TileChoice> tile;

 private:
  Tolerance own_ceilings() const;
  void fill_operands();
  /// Activations and output in another order than the tokens'; null until a variant asks for them.
  struct Reordered {
    Tensor *x, *x_scales, *out;
  };
  void reorder_activations(RowOrder order);
  void reorder_output(RowOrder order);
  Tensor* make_reordered(const Tensor& like, RowOrder order);
  void copy_reordered(RowOrder order);
  void upload_lists();
  bool redraw(uint64_t change) override;
  Reordered& in(RowOrder order) { return reordered_.at(order == RowOrder::masked); }
  /// In the order last asked for.
  Tensor& out() const {
    return out_order_ == RowOrder::tokens ? out_
                                          : *reordered_.at(out_order_ == RowOrder::masked).out;
  }
  std::vector<uint16_t> download_rows() const;
  void upload_rows(const std::vector<uint16_t>& rows);
  void put_block_factors(ExpertProduct& p, int32_t expert, const std::vector<int64_t>& sources,
                         const std::vector<int32_t>& columns, Slip slip) const;
  void put_factors(ExpertProduct& p, int32_t expert, std::vector<int64_t> sources,
                   const std::vector<int32_t>& columns, Slip slip) const;
  void put_bias(ExpertProduct& p, int32_t expert, const std::vector<int32_t>& columns,
                Slip slip) const;
  ExpertProduct product_of(int32_t expert, const MoeGemmSample& at, Slip slip) const;
  std::vector<double> truth(Slip slip, const MoeGemmSample& at) const;
  /// Of the routed rows, -1 of other ranks' ones; empty: in token order.
  std::vector<int32_t> places(RowOrder order) const;
  /// Of the rank's rows in the output; empty where in_order().
  std::vector<int32_t> places() const;
  std::function<std::string(int64_t row)> row_name() const;
  /// Whether the output's rows are all R, each where its number says.
  bool in_order() const { return out_order_ == RowOrder::tokens && rank_.is_whole(); }
  void swap_experts();
  void drop_row();

  ExpertRank rank_;
  const uint64_t seed_;
  const double most_products_;  // that are compared whole
  Tensor& x_;
  Tensor* x_scales_;
  Tensor& weights_;
  Tensor* weight_scales_;
  Tensor* bias_;
  Tensor* routing_weights_;
  Tensor& sorted_token_ids_;
  Tensor& expert_ids_;
  Tensor& padded_rows_;
  Tensor& out_;
  std::array<Reordered, 2> reordered_{};  // sorted, masked
  // Made when a variant first asks for them.
  Tensor *expert_rows_ = nullptr, *rows_by_expert_ = nullptr, *topk_ids_ = nullptr;
  DrawnRows<int32_t> drawn_experts_;  // of the layer
  std::vector<int32_t> experts_;      // [R], of this rank; -1: another rank's
  std::vector<int32_t> rows_;         // of this rank, ascending
  AlignedRows aligned_;
  RowOrder out_order_ = RowOrder::tokens;
  MoeGemmSample sample_;
  std::vector<double> truth_;
  ByChange<std::vector<double>> truths_;
  check::TruthOfRows<std::vector<double>> row_truth_;
  ByChange<check::TruthOfRows<std::vector<double>>> row_truths_;
};

struct MoeGateUp : MoeGemm {
  static constexpr const char* kOp = "moe_gate_up";
  static MoeGemmShape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  MoeGateUp(Device& device, const Case& c, double most_products = kWholeTruth)
      : MoeGemm(device, c, shape_of(c), most_products) {}
};

struct MoeDown : MoeGemm {
  static constexpr const char* kOp = "moe_down";
  static MoeGemmShape shape_of(const Case& c);  // throws Error(usage)
  static void validate(const Case& c);
  MoeDown(Device& device, const Case& c, double most_products = kWholeTruth)
      : MoeGemm(device, c, shape_of(c), most_products) {}
};

}  // namespace moegate::moe_gemm
