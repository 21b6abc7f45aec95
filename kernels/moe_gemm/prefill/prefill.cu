// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// The fp8 grouped GEMMs at prefill: tiles of 128 routed rows times 256 columns, as in wide_tiles,
// whose sums these are bit by bit. What is new is who waits for what:
//
// - Warps that multiply touch no global memory. Two warps look up each tile's expert, rows and
//   factors a tile ahead and copy scale factors into the stages; two write.
// - Output leaves shared memory by bulk copies, a row of 512 bytes each, wherever the row belongs,
//   while the next tile is multiplied. The third of three stages pays for the staged tile.
// - Of the two multiplying warpgroups one multiplies while the other adds up. Who is to start next
//   is not said: they fall into turns.
// - Nobody waits for an address. Places in shared memory are computed once, gathered rows' pointers
//   advance by constants (gathered_rows.cuh), TMA and barriers are started by an elected
//   lane (barrier.cuh).
// - Halves of blocks that are padding are neither copied nor multiplied, so that blocks of 128
//   serve 64 rows per expert, too.
// - Where a last round would be for up to half of the SMs, two take the halves of a tile's rows.
// - One factor per channel or tensor comes with the last stage of a tile, whose sums it scales; so
//   does a bias. Kernels with a bias are not measured yet.
//
// prefill_fast_accum leaves the sums of such products in the tensor cores' registers over all of K,
// which costs bits (kFastAccumError); cuBLAS and CUTLASS call that fast accumulation. int8 is added
// up likewise, and exactly, by prefill itself. One H200 (2c6a15a2), 2026-11-29, 8192 tokens, one
// factor per channel, us, for Mixtral-8x7B TP2 gate-up and down, Qwen3-30B gate-up and down; beside
// them as it was with turns and without strips (below):
//   of channels             1525 763 385 223    1613 778 382 226
//     fast_accum            1357 671 349 213    1504 711 356 217
//   int8                    1267 627 331 205    1399 668 338 211
//
// prefill_sorted is down with x in sorted order: half a block of rows is one TMA copy.
// prefill_contiguous, of both operators, writes that order, too, by TMA. With cluster=2 two
// neighbouring blocks of rows that have one expert share its weights by multicast.
//
// Beside the strongest public kernels, and in the layer: reports/gallery/nvidia-h200-prefill.md.
//
// The levers one by one, on H200s at 8192 tokens, us, R1 TP8 down (K = 256), R1 TP8 gate-up
// (K = 7168), Qwen3-30B gate-up (K = 2048); medians of 12 to 25 cold launches by events, in turn,
// each group in one process. GPUs differ by a tenth: compare within a group.
//   wide_tiles                                              626  586  452
//     its warpgroups without turns                          672  625  472
//     one product of 192 columns (m64n192), no turns        719  675  471
//       and output by bulk copies, by whoever multiplies    656  686  483
//         and rows one by one by TMA, some 50 cycles each  1443 3115 2253
//         and x in sorted order, rows by TMA                662  670  446
//           and weights shared by two blocks (multicast)    599  657  448
//   wide_tiles                                              629  604  473
//     the last of the above                                 599  665  467
//       without copies                                      544  617  443
//       without products                                    440  647  296
//       without output                                      359  635  407
//       without copies and output                           347  587  391
//   wide_tiles                                              622  638  479
//     192 columns, sorted, warps that look up and write     514  751  500
//       and strict turns                                    518  671  419
//     256 columns, sorted, warps that look up and write     506  627  435
//       and strict turns                                    499  582  402
//         and weights shared                                473  562  417
// So copies were not what bound wide_tiles and its kin: tiles paid for a chain of loads (expert,
// rows, factors), for writing output and for idle tensor cores, one after the other.
//
// Then, 2026-11-23, the same bits; the last two columns are gate-up of R1 with whole experts and of
// Qwen3-235B TP4:
//   turns that pass when three of four instructions are done, cluster=1   -  611  478  648  539
//     that pass at once, and uniform registers                            -  599  466  628  517
//   both, cluster=1                                                     491  629  462  612  464
//     rows' addresses computed ahead                                    488  587  441  570  438
//       and an elected lane starts TMA                                  469  584  438  569  439
//   both, cluster=2                                                     491  629  490  631  480
//     addresses ahead, an elected lane                                  487  562  453  567  446
//       and bytes of a row's copy known to be the warp's (fewer compared)  468 547 (of 499 547)
//   x in sorted order, cluster=1                                        505  567  409  549  409
//   x in sorted order, cluster=2                                        471  547  419  545  420
//   x and output in sorted order, cluster=1                             518  566  410  549  412
//   x and output in sorted order, cluster=2                             422  545  422  552  421
// Each row had had its address computed in registers that the copy before still read, from
// constants loaded anew: some 100 cycles, eight of them per stage of 1024. 64 threads that gather
// instead of 128 cost Qwen3-30B gate-up a quarter then: it was issuing copies that took the time.
//
// Tried in the same groups, without gain (R1 down, gate-up, Qwen3-30B gate-up; the kernel as
// it was):
//   tiles dealt out by an atomic counter                      594  648  456  (507 650 465)
//     by a schedule that every block simulates                626  629  480
//     by the counter, with addresses ahead                    585  641  484  (517 610 473)
//   half blocks' columns shared by both warpgroups            581  662  465  (573 652 465)
//   half the rows by ordinary stores, all of them             558, 753 of down (507)
//   rows' copies by an elected lane, one after the other      652  597  461  (469 584 438)
//   output with L2::evict_first                               519  650  464  (507 650 465)
//   cluster=2 of blocks of one expert wherever it has two     471  534  403  (470 526 404)
// The ring that tiles are dealt through costs down 66 us alone, with two stages per tile.
//
// Writing x in sorted order by a launch of its own, then the products, us: R1 TP8 231 and 549 where
// token order takes 575; Qwen3-30B 56 and 397 where it takes 446; R1 with whole experts, k = 1, 34
// and 492 where it takes 554, all with the kernel before addresses were computed ahead.
//
// Then, 2026-11-29, the same bits, counters of whole calls, us; Mixtral-8x7B TP2 down at 2048 and
// 8192 tokens, gate-up likewise, Qwen3-30B gate-up and R1 TP8 gate-up at 8192:
//   one H200: x in token order                 241  797  474 1698  392  511
//       addresses computed once                233  783  471 1690  381  503
//         no turns                             229  770  455 1644  377  499
//     x and output in sorted order             235  773  477 1735  374  525
//       addresses computed once                224  753  458 1678  362  520
//         no turns                             219  731  484 1641  360  523
//   another: no turns, strips of 16 blocks     231  775  446 1574  381  490
//       strips of 8                            233  783  450 1594  388  503
//       of 32                                  232  783  447 1584  392  497
//       turns that pass with 3 of 4 products   251  828  459 1649  405  522
//     in sorted order, strips, cluster=2       220  735  412 1443  366  499
//       cluster=1                              219  744  414 1458  363  622
//   a third: factors of one stage at a time    231  771  448 1573  386  500
//       of up to four                          229  772  435 1536  383  498
//   a fourth: in token order                   230  763  432 1530  387  498
//       a last round's tiles divided by rows   224  766  430 1534  381  495
//     in sorted order                          219  728  412 1440  353  513
//       divided by rows                        213  729  409 1443  353  520
//   a fifth: in sorted order                   219  724  405 1438  351  518
//       by rows, a product per warpgroup       207  721  405 1446  352  513
//   a sixth: in sorted order                   226  751  423 1483  362  548
//       clusters of two blocks of one expert   227  754  423 1493  361  533
// Strips of R1's two columns cost 4 and 8 % at 2048 tokens: few columns go across first, as before.
// A last round divided by columns, into single products, lost 1 to 2 % in four cells: copies of
// weights come in two pieces then. A product per warpgroup, in all tiles with a single half, costs
// R1's down at 2048 tokens 5 % and Qwen3-30B gate-up 1 to 2 % in token order. Clusters of one
// expert's blocks, before neighbours, cost R1's gate-up 4 % in token order and V2-Lite's 2 %. What
// is left of Mixtral's down at 2048 tokens, 0.89 of DeepGEMM, is rounds: 576 tiles are 4.4 rounds
// of 132 SMs. DeepGEMM's tiles of 192 columns are six rounds of 0.75.
//
// Counters of one lone launch by ncu, in late turns, 8192 tokens, clocks left alone:
//                               Qwen3-30B gate-up         R1 gate-up
//                               c1    c2    c1, sorted    c1    c2    c2, sorted
//   us                          432   443   388           593   558   512
//   thousands of cycles         728   756   627           979   935   826
//   tensor cores, % of peak     56    54    65            52    54    61
//   L2, % of peak               63    68    70            88    87    95
//   DRAM, % of peak             35    34    41            74    52    64
// R1's is at L2's limit, and its two or three blocks of rows per expert fall unevenly: the busiest
// SM has 1.15 times the mean of the products (Qwen3-30B: 1.03).
//
// What a launch of Qwen3-30B gate-up consists of before addresses were computed ahead, thousands of
// cycles, x in token / in sorted order. 418 would be those of the products of the SM that has the
// most, at the tensor cores' peak:
//   all of it                                                    703  612
//     without scale factors and output                           680  594
//     without any copies and output                              603  572
//     adding up half of the products                             670  549
//     adding up none                                             629  526
//     adding up none, without copies and output                  503  490
//   without the fence between copies and tensor cores (wrong)    688
// What binds is in the SM: every stage's products read 96 KiB of shared memory and its copies write
// 48, 1152 cycles at 128 bytes where the tensor cores need 1024; and adding up takes registers'
// bandwidth from them (200 to 300 cycles for 64 FFMA per thread). Tried for that, without gain, in
// thousands of cycles where 705 / 617 are as it was: rows from registers (m64n128 with A loaded
// once for both products; spills in token order) 998 / 642; these as products of 64 columns, two of
// a warpgroup's under way, no turns (spills likewise) 829 / 673; a fourth stage 731 / 663 with
// output staged by halves, which alone cost 725 / 653; copies that arrive by the warp, a stage late
// 741 / 618.
//
// racecheck does not see that a warp's one arrival, behind __syncwarp, stands for what its lanes
// read: it reports factors that are copied into a stage again. With an arrival per lane it
// reports nothing.
#include "kernels/moe_gemm/prefill/prefill.h"

#include "kernels/cuda/with_rows.cuh"
#include "kernels/moe_gemm/fp8/token_sums.h"
#include "kernels/moe_gemm/prefill/launch.cuh"
#include "kernels/moe_gemm/prefill/rows.cuh"
#include "kernels/moe_gemm/prefill/sorted_rows.cuh"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::prefill {
namespace {

template <Order kOrder, class Out>
void launch_clusters(const MoeGemmArgs& args, const Out& out, int cluster, Start start,
                     const Launch& where) {
  with_rows<1, 2>(
      cluster, [&]<int kCluster>() { launch_kernel<kOrder, kCluster>(args, out, start, where); });
}

/// `any_epilogue`: scale factors that follow the sum, a bias, and int8 are compiled.
std::string unsupported(const MoeGemmShape& s, bool any_epilogue) {
  if (!s.scaled()) return "multiplies fp8 and int8 only";
  if (s.block != kTokens) return fmt::format("block = {} is not {}", s.block, kTokens);
  return tiles::tile_unsupported(s, any_epilogue, any_epilogue, any_epilogue);
}

std::string fast_accum_unsupported(const MoeGemmShape& s) {
  if (!s.scaled_once() || s.dtype != DType::e4m3)
    return "adds up fp8 with scale factors of a channel or tensor only";
  if (s.biased) return "adds no bias";
  return unsupported(s, true);
}

Knobs knobs_of(int cluster) {
  return {{"cluster", cluster}};
}

std::string cluster_text(int cluster) {
  return fmt::format("cluster={}", cluster);
}

const tiles::TileRegistration tiles(
    {.name = "prefill",
     .backend = Backend::cuda,
     .compiled = {knobs_of(1), knobs_of(2)},
     .launch = [](const MoeGemmArgs& args, const Knobs& knobs, void*,
                  const Launch& where) { launch_tokens(args, knobs.at("cluster"), where); },
     .unsupported = [](const MoeGemmShape& s, const Knobs&) { return unsupported(s, true); },
     .usual = [](const MoeGemmShape& s,
                 const DeviceFacts&) { return knobs_of(usual_cluster(s, false)); }});

void launch_contiguous(const MoeGemmArgs& args, int cluster, Start start, const Launch& where) {
  launch_clusters<Order::sorted>(args, SortedRows(args), cluster, start, where);
}

template <class P>
using Step = void (*)(P& problem, const Launch& where);

/// What the variants have in common; `kSorted`: x is.
template <class P, bool kSorted>
KernelSpec<P> variant(std::string name, std::string help, Step<P> launch,
                      Step<P> prepare = nullptr) {
  return {.name = std::move(name),
          .backend = Backend::cuda,
          .help = std::move(help),
          .launch = launch,
          .prepare = prepare,
          .unsupported = [](const Case& c,
                            const DeviceFacts&) { return unsupported(P::shape_of(c), !kSorted); },
          .path =
              [](const Case& c, const DeviceFacts&) {
                return cluster_text(usual_cluster(P::shape_of(c), kSorted));
              }};
}

template <class P>
KernelSpec<P> in_token_order() {
  return variant<P, false>("prefill", "wgmma, apart from the warps that gather, look up and write",
                           [](P& problem, const Launch& where) {
                             launch_tokens(problem.args(), usual_cluster(problem.shape, false),
                                           where);
                           });
}

/// Relative to the output. Measured: 4.7e-4, 8.4e-4, 1.4e-3 and 1.8e-3 at K = 768, 2048, 4096 and
/// 7168, where sums that leave the accumulators every 128 of K have 3.5e-4. Tensor cores cut what
/// they add at the largest of it, so that single elements lose more: of 134 million at K = 7168 the
/// worst was at 3.3 times the operators' limit of one element.
constexpr double kFastAccumError = 2e-3;

/// For factors per channel or tensor alone: what the tensor cores add up has no factors in between.
template <class P>
KernelSpec<P> fast_accum() {
  return {
      .name = "prefill_fast_accum",
      .backend = Backend::cuda,
      .help = "prefill with sums of all of K in the tensor cores' accumulators",
      .launch =
          [](P& problem, const Launch& where) {
            launch_clusters<Order::tokens>(problem.args(), WholeRows{{{problem.args().out}}},
                                           usual_cluster(problem.shape, false), Start::after,
                                           where);
          },
      .unsupported = [](const Case& c,
                        const DeviceFacts&) { return fast_accum_unsupported(P::shape_of(c)); },
      .path = [](const Case& c,
                 const DeviceFacts&) { return cluster_text(usual_cluster(P::shape_of(c), false)); },
      .tolerance = 5,
      .between = kFastAccumError};
}

/// What its time leaves out of gate-up: somebody has to write x in sorted order first, where it is
/// k times as large as in token order, which is what the operator's cost counts.
template <class P>
KernelSpec<P> contiguous() {
  return variant<P, true>(
      "prefill_contiguous",
      "as prefill, x and output in sorted order, as in DeepGEMM's contiguous layout",
      [](P& problem, const Launch& where) {
        launch_contiguous(problem.args(RowOrder::sorted, RowOrder::sorted),
                          usual_cluster(problem.shape, true), Start::after, where);
      },
      [](P& problem, const Launch&) {
        problem.sort_activations();
        problem.sort_output();
      });
}

const Kernel<MoeGateUp> gate_up(in_token_order<MoeGateUp>());
const Kernel<MoeDown> down(in_token_order<MoeDown>());
const Kernel<MoeGateUp> fast_gate_up(fast_accum<MoeGateUp>());
const Kernel<MoeDown> fast_down(fast_accum<MoeDown>());
const Kernel<MoeDown> sorted_down(variant<MoeDown, true>(
    "prefill_sorted", "prefill with activations in sorted order, both operands by TMA",
    [](MoeDown& problem, const Launch& where) {
      launch_sorted(problem.args(RowOrder::sorted), usual_cluster(problem.shape, true), where);
    },
    [](MoeDown& problem, const Launch&) { problem.sort_activations(); }));
const Kernel<MoeGateUp> contiguous_gate_up(contiguous<MoeGateUp>());
const Kernel<MoeDown> contiguous_down(contiguous<MoeDown>());

}  // namespace

int usual_cluster(const MoeGemmShape& s, bool sorted) {
  const bool long_k = s.k_groups() > 32, wide = s.n >= 10 * kColumns;
  if (sorted) {
    const bool pairs = s.rows() >= 2 * kTokens * s.experts;  // of blocks, for most experts
    return s.k_groups() <= 2 || (long_k && pairs) || (wide && fills_blocks(s)) ? 2 : 1;
  }
  return fills_blocks(s) && (long_k || wide || s.n <= kColumns) ? 2 : 1;
}

std::string unsupported(const MoeGemmShape& s) {
  return unsupported(s, false);
}

void launch_tokens(const MoeGemmArgs& args, int cluster, const Launch& where) {
  const auto launch = [&](const auto& out) {
    launch_clusters<Order::tokens>(args, out, cluster, Start::after, where);
  };
  const MoeGemmShape& s = args.shape;
  if (s.biased) {
    const RowsBiased out{{{args.out}}, with_bias(args).bias};
    return s.dtype == DType::i8 ? launch(Int8RowsBiased{out}) : launch(out);
  }
  if (s.dtype == DType::i8) return launch(Int8Rows{{{args.out}}});
  if (s.scaled_once()) return launch(RowsScaledOnce{{args.out}});
  launch(Rows<fp8::Output::rows>{args.out});
}
void launch_sorted(const MoeGemmArgs& args, int cluster, const Launch& where) {
  launch_clusters<Order::sorted>(args, Rows<fp8::Output::rows>{args.out}, cluster, Start::after,
                                 where);
}
void launch_sorted_rows(const MoeGemmArgs& args, int cluster, const Launch& where) {
  launch_contiguous(args, cluster, Start::early, where);
}
void launch_sorted_token_sums(const MoeGemmArgs& args, int cluster, const Launch& where) {
  launch_clusters<Order::sorted>(args, Rows<fp8::Output::token_sums, true>{args.out}, cluster,
                                 Start::early, where);
}

}  // namespace moegate::moe_gemm::prefill

namespace moegate::moe_gemm {

/// Down the rows first where out does not stay in L2 with what else passes through it. On an H200
/// (60 MiB), us of this launch in the layer, across first / down first, each in another run on
/// another GPU: R1 TP8 at 8192 tokens (117 MB) 826 / 552; Qwen3-30B at 4096 and 8192 (17 and 34 MB)
/// 150 / 169 and 263 / 284. As a control, chain_tuned at 8192: R1 TP8 1466 us in both runs,
/// Qwen3-30B 903 / 885. Nothing was measured between 34 and 117 MB both ways.
void fp8::launch_prefill_token_sums(const MoeGemmArgs& args, const Launch& where) {
  using namespace prefill;
  const int64_t out_bytes = int64_t{args.shape.tokens} * args.shape.n * 2;
  if (out_bytes > where.device.cache_bytes / 4 * 3) {
    launch_kernel<Order::tokens, 1>(args, Rows<Output::token_sums, true>{args.out}, Start::after,
                                    where);
  } else {
    launch_kernel<Order::tokens, 1>(args, Rows<Output::token_sums>{args.out}, Start::after, where);
  }
}
std::string fp8::prefill_unsupported(const MoeGemmShape& shape) {
  return prefill::unsupported(shape);
}

}  // namespace moegate::moe_gemm
