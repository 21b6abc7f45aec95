// SPDX-License-Identifier: Apache-2.0
// What a run states about itself, once: see fields.h.
#pragma once

#include "harness/values/fields.h"
#include "harness/values/run.h"

namespace moegate {

template <>
inline constexpr auto kFields<DeviceFacts> = std::tuple(
    Field("backend", &DeviceFacts::backend), Field("name", &DeviceFacts::name),
    Field("klass", &DeviceFacts::klass, "class"), Field("uuid", &DeviceFacts::uuid),
    Field("processors", &DeviceFacts::processors), Field("cache_bytes", &DeviceFacts::cache_bytes),
    Field("memory_bytes", &DeviceFacts::memory_bytes),
    Field("shared_per_block", &DeviceFacts::shared_per_block),
    Field("driver", &DeviceFacts::driver));
static_assert(count_fields(kFields<DeviceFacts>) == count_members<DeviceFacts>());

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
