// SPDX-License-Identifier: Apache-2.0
// What a Result, its lists and a run are made of, once: see fields.h.
#pragma once

#include "harness/values/fields.h"
#include "harness/values/result.h"
#include "harness/values/run.h"

namespace moegate {

template <>
inline constexpr auto kFields<Result> =
    MOEGATE_FIELDS(Result, variant, status, why, path, code, deterministic, timer, tick_ns, samples,
                   invalid, slow, flags, judged, span_ns, median_ns, low_ns, high_ns, min_ns,
                   busy_ns, sum_ns, mean_ns, ratio, mean_ratio, ratio_low, ratio_high, yardstick,
                   yardstick_code, sm_mhz, impossible, suspect_warm, wall_s);
/// Controls are not stored: a run that spoils outputs on purpose has no store.
template <>
inline constexpr auto kParts<Result> = MOEGATE_FIELDS(Result, accuracy, seeds, controls, kernels,
                                                      metrics, stalls, spans_ns);
static_assert(count_unlisted<Result>() == 0);

template <>
inline constexpr auto kFields<BeyondRounding> =
    MOEGATE_FIELDS(BeyondRounding, graded, misrounded, row_misrounded, column_misrounded, excess,
                   beyond, common_scale, row_scale, row_scale_most, column_scale, column_scale_most,
                   digits, by_chance, at_row, at_column);
static_assert(count_unlisted<BeyondRounding>() == 0);

template <>
inline constexpr auto kFields<Accuracy> = std::tuple_cat(
    MOEGATE_FIELDS(Accuracy, output, ok, why, elements, mismatches, nonfinite, rel_l2, cosine,
                   scale, max_abs, max_rel, worst_row, row_p999, worst_index, truth),
    std::tuple(Field("between", &Accuracy::between, "rounded_between")),
    fields_of(&Accuracy::rounding));
static_assert(count_unlisted<Accuracy>() + count_fields(kFields<BeyondRounding>) == 1);

template <>
inline constexpr auto kFields<SeedError> = std::tuple_cat(MOEGATE_FIELDS(SeedError, seed, hash,
                                                                         rel_l2, worst_row, bias,
                                                                         inputs, terms, truth),
                                                          fields_of(&SeedError::rounding));
static_assert(count_unlisted<SeedError>() + count_fields(kFields<BeyondRounding>) == 1);

template <>
inline constexpr auto kFields<Control> = MOEGATE_FIELDS(Control, name, output, outcome, why);
static_assert(count_unlisted<Control>() == 0);

template <>
inline constexpr auto kFields<KernelRow> = MOEGATE_FIELDS(KernelRow, name, grid, block, cluster,
                                                          registers, static_shared, dynamic_shared,
                                                          local_bytes, ns, gap_ns);
static_assert(count_unlisted<KernelRow>() == 0);

template <>
inline constexpr auto kFields<Metric> = MOEGATE_FIELDS(Metric, name, unit, value, ordinal);
static_assert(count_unlisted<Metric>() == 0);

template <>
inline constexpr auto kFields<StallRow> = MOEGATE_FIELDS(StallRow, ordinal, offset, instruction,
                                                         line, reason, samples);
static_assert(count_unlisted<StallRow>() == 0);

template <>
inline constexpr auto kFields<DeviceFacts> =
    std::tuple_cat(MOEGATE_FIELDS(DeviceFacts, backend, name),
                   std::tuple(Field("klass", &DeviceFacts::klass, "class")),
                   MOEGATE_FIELDS(DeviceFacts, uuid, processors, cache_bytes, memory_bytes,
                                  shared_per_block, driver));
// Whoever has the device asks it for its capability, which is not stored.
static_assert(count_unlisted<DeviceFacts>() == 1);

template <>
inline constexpr auto kFields<RunInfo> = MOEGATE_FIELDS(RunInfo, uuid, campaign, shard, label,
                                                        started, finished, status, protocol, task,
                                                        timer, flush, rounds, git_sha, dirty, build,
                                                        host, command, program, options);
template <>
inline constexpr auto kParts<RunInfo> = MOEGATE_FIELDS(RunInfo, shards, device, operators, tags);
/// The id is the row's own.
static_assert(count_unlisted<RunInfo>() == 1);

template <>
inline constexpr auto kFields<OperatorFacts> =
    std::tuple_cat(std::tuple(Field("name", &OperatorFacts::name, "op")),
                   MOEGATE_FIELDS(OperatorFacts, yardstick));
template <>
inline constexpr auto kParts<OperatorFacts> = MOEGATE_FIELDS(OperatorFacts, before);
static_assert(count_unlisted<OperatorFacts>() == 0);

template <>
inline constexpr auto kFields<Before> = MOEGATE_FIELDS(Before, variant, after);
static_assert(count_unlisted<Before>() == 0);

}  // namespace moegate
