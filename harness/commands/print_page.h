// SPDX-License-Identifier: Apache-2.0
// A page on standard output.
#pragma once

#include "harness/base/table.h"
#include "harness/report/page.h"

namespace moegate {

/// text and md; csv and json are tables alone.
bool is_for_people(Format format);

/// In a format for people: text as wide as the terminal, else markdown, whole.
void print_page(const Page& page, Format format);

}  // namespace moegate
