// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's JSON, written by its own reporter from stored rows, so that its compare.py
// reads a moegate run: one entry per case and variant, one repetition per round, and the aggregates
// of the repetitions. The context says what was measured on which device; the label of a
// repetition, how.
#pragma once

#include <cstdint>
#include <string>

namespace moegate {

/// Throws Error(usage) when the file cannot be written.
void write_benchmark_json(const std::string& db, int64_t run, const std::string& path);

}  // namespace moegate
