// SPDX-License-Identifier: Apache-2.0
// What a Result and its lists are made of, once: see fields.h.
#pragma once

#include "harness/values/fields.h"
#include "harness/values/result.h"
#include "harness/values/run.h"

namespace moegate {

template <>
inline constexpr auto kFields<Result> = std::tuple(
    Field("variant", &Result::variant), Field("status", &Result::status),
    Field("why", &Result::why), Field("path", &Result::path), Field("code", &Result::code),
    Field("deterministic", &Result::deterministic), Field("timer", &Result::timer),
    Field("tick_ns", &Result::tick_ns), Field("samples", &Result::samples),
    Field("invalid", &Result::invalid), Field("slow", &Result::slow),
    Field("flags", &Result::flags), Field("judged", &Result::judged),
    Field("span_ns", &Result::span_ns), Field("median_ns", &Result::median_ns),
    Field("low_ns", &Result::low_ns), Field("high_ns", &Result::high_ns),
    Field("min_ns", &Result::min_ns), Field("busy_ns", &Result::busy_ns),
    Field("sum_ns", &Result::sum_ns), Field("mean_ns", &Result::mean_ns),
    Field("ratio", &Result::ratio), Field("mean_ratio", &Result::mean_ratio),
    Field("ratio_low", &Result::ratio_low), Field("ratio_high", &Result::ratio_high),
    Field("yardstick", &Result::yardstick), Field("yardstick_code", &Result::yardstick_code),
    Field("sm_mhz", &Result::sm_mhz), Field("impossible", &Result::impossible),
    Field("suspect_warm", &Result::suspect_warm), Field("wall_s", &Result::wall_s));
/// Controls are not stored: a run that spoils outputs on purpose has no store.
template <>
inline constexpr auto kParts<Result> = std::tuple(Field("accuracy", &Result::accuracy),
                                                  Field("seeds", &Result::seeds),
                                                  Field("controls", &Result::controls),
                                                  Field("kernels", &Result::kernels),
                                                  Field("metrics", &Result::metrics),
                                                  Field("stalls", &Result::stalls),
                                                  Field("spans_ns", &Result::spans_ns));
static_assert(count_fields(kFields<Result>) + count_fields(kParts<Result>) ==
              count_members<Result>());

template <>
inline constexpr auto kFields<BeyondRounding> = std::tuple(
    Field("graded", &BeyondRounding::graded), Field("misrounded", &BeyondRounding::misrounded),
    Field("row_misrounded", &BeyondRounding::row_misrounded),
    Field("column_misrounded", &BeyondRounding::column_misrounded),
    Field("excess", &BeyondRounding::excess), Field("beyond", &BeyondRounding::beyond),
    Field("common_scale", &BeyondRounding::common_scale),
    Field("row_scale", &BeyondRounding::row_scale),
    Field("row_scale_most", &BeyondRounding::row_scale_most),
    Field("column_scale", &BeyondRounding::column_scale),
    Field("column_scale_most", &BeyondRounding::column_scale_most),
    Field("digits", &BeyondRounding::digits), Field("by_chance", &BeyondRounding::by_chance),
    Field("at_row", &BeyondRounding::at_row), Field("at_column", &BeyondRounding::at_column));
static_assert(count_fields(kFields<BeyondRounding>) == count_members<BeyondRounding>());

template <>
inline constexpr auto kFields<Accuracy> = std::tuple_cat(
    std::tuple(Field("output", &Accuracy::output), Field("ok", &Accuracy::ok),
               Field("why", &Accuracy::why), Field("elements", &Accuracy::elements),
               Field("mismatches", &Accuracy::mismatches), Field("nonfinite", &Accuracy::nonfinite),
               Field("rel_l2", &Accuracy::rel_l2), Field("cosine", &Accuracy::cosine),
               Field("scale", &Accuracy::scale), Field("max_abs", &Accuracy::max_abs),
               Field("max_rel", &Accuracy::max_rel), Field("worst_row", &Accuracy::worst_row),
               Field("row_p999", &Accuracy::row_p999), Field("worst_index", &Accuracy::worst_index),
               Field("truth", &Accuracy::truth),
               Field("between", &Accuracy::between, "rounded_between")),
    fields_of(&Accuracy::rounding));
static_assert(count_fields(kFields<Accuracy>) ==
              count_members<Accuracy>() - 1 + count_fields(kFields<BeyondRounding>));

template <>
inline constexpr auto kFields<SeedError> = std::tuple_cat(
    std::tuple(Field("seed", &SeedError::seed), Field("hash", &SeedError::hash),
               Field("rel_l2", &SeedError::rel_l2), Field("worst_row", &SeedError::worst_row),
               Field("bias", &SeedError::bias), Field("inputs", &SeedError::inputs),
               Field("terms", &SeedError::terms), Field("truth", &SeedError::truth)),
    fields_of(&SeedError::rounding));
static_assert(count_fields(kFields<SeedError>) ==
              count_members<SeedError>() - 1 + count_fields(kFields<BeyondRounding>));

template <>
inline constexpr auto kFields<Control> = std::tuple(Field("name", &Control::name),
                                                    Field("output", &Control::output),
                                                    Field("outcome", &Control::outcome),
                                                    Field("why", &Control::why));
static_assert(count_fields(kFields<Control>) == count_members<Control>());

template <>
inline constexpr auto kFields<KernelRow> = std::tuple(
    Field("name", &KernelRow::name), Field("grid", &KernelRow::grid),
    Field("block", &KernelRow::block), Field("cluster", &KernelRow::cluster),
    Field("registers", &KernelRow::registers), Field("static_shared", &KernelRow::static_shared),
    Field("dynamic_shared", &KernelRow::dynamic_shared),
    Field("local_bytes", &KernelRow::local_bytes), Field("ns", &KernelRow::ns),
    Field("gap_ns", &KernelRow::gap_ns));
static_assert(count_fields(kFields<KernelRow>) == count_members<KernelRow>());

template <>
inline constexpr auto kFields<Metric> = std::tuple(Field("name", &Metric::name),
                                                   Field("unit", &Metric::unit),
                                                   Field("value", &Metric::value),
                                                   Field("ordinal", &Metric::ordinal));
static_assert(count_fields(kFields<Metric>) == count_members<Metric>());

template <>
inline constexpr auto kFields<StallRow> = std::tuple(Field("ordinal", &StallRow::ordinal),
                                                     Field("offset", &StallRow::offset),
                                                     Field("instruction", &StallRow::instruction),
                                                     Field("line", &StallRow::line),
                                                     Field("reason", &StallRow::reason),
                                                     Field("samples", &StallRow::samples));
static_assert(count_fields(kFields<StallRow>) == count_members<StallRow>());

// What a run states about itself, once: see fields.h.

template <>
inline constexpr auto kFields<DeviceFacts> = std::tuple(
    Field("backend", &DeviceFacts::backend), Field("name", &DeviceFacts::name),
    Field("klass", &DeviceFacts::klass, "class"), Field("uuid", &DeviceFacts::uuid),
    Field("processors", &DeviceFacts::processors), Field("cache_bytes", &DeviceFacts::cache_bytes),
    Field("memory_bytes", &DeviceFacts::memory_bytes),
    Field("shared_per_block", &DeviceFacts::shared_per_block),
    Field("driver", &DeviceFacts::driver));
// Whoever has the device asks it for its capability, which is not stored.
static_assert(count_fields(kFields<DeviceFacts>) == count_members<DeviceFacts>() - 1);

template <>
inline constexpr auto kFields<RunInfo> = std::tuple(
    Field("uuid", &RunInfo::uuid), Field("campaign", &RunInfo::campaign),
    Field("shard", &RunInfo::shard), Field("label", &RunInfo::label),
    Field("started", &RunInfo::started), Field("finished", &RunInfo::finished),
    Field("status", &RunInfo::status), Field("protocol", &RunInfo::protocol),
    Field("task", &RunInfo::task), Field("timer", &RunInfo::timer), Field("flush", &RunInfo::flush),
    Field("rounds", &RunInfo::rounds), Field("git_sha", &RunInfo::git_sha),
    Field("dirty", &RunInfo::dirty), Field("build", &RunInfo::build), Field("host", &RunInfo::host),
    Field("command", &RunInfo::command), Field("program", &RunInfo::program),
    Field("options", &RunInfo::options));
template <>
inline constexpr auto kParts<RunInfo> = std::tuple(Field("shards", &RunInfo::shards),
                                                   Field("device", &RunInfo::device),
                                                   Field("operators", &RunInfo::operators),
                                                   Field("tags", &RunInfo::tags));
/// The id is the row's own.
static_assert(count_fields(kFields<RunInfo>) + count_fields(kParts<RunInfo>) + 1 ==
              count_members<RunInfo>());

template <>
inline constexpr auto kFields<OperatorFacts> = std::tuple(Field("name", &OperatorFacts::name, "op"),
                                                          Field("yardstick",
                                                                &OperatorFacts::yardstick));
template <>
inline constexpr auto kParts<OperatorFacts> = std::tuple(Field("before", &OperatorFacts::before));
static_assert(count_fields(kFields<OperatorFacts>) + count_fields(kParts<OperatorFacts>) ==
              count_members<OperatorFacts>());

template <>
inline constexpr auto kFields<Before> = std::tuple(Field("variant", &Before::variant),
                                                   Field("after", &Before::after));
static_assert(count_fields(kFields<Before>) == count_members<Before>());

}  // namespace moegate
