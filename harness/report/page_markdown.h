// SPDX-License-Identifier: Apache-2.0
// A page as markdown: the one place of report/ that knows its syntax and the sizes it may have.
#pragma once

#include <cstddef>
#include <string>

#include "harness/report/page.h"

namespace moegate {

/// Sizes in bytes that a forge takes: it refuses comments from 65,536 characters, and drops a
/// step's summary from 1 MiB. A file may have any size.
constexpr size_t kCommentBytes = 60'000;
constexpr size_t kSummaryBytes = (size_t{1} << 20) - 1;
constexpr size_t kAnyBytes = std::string::npos;

/// At most `max_bytes`. What does not fit is left out by rank and counted in the text: rows from
/// the end of a table first, then whole sections. Empty when not even the sections of rank 0 fit.
std::string to_markdown(const Page& page, size_t max_bytes);

}  // namespace moegate
