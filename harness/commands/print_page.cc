// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/print_page.h"

#include <fmt/format.h>
#include <unistd.h>

#include "harness/report/page_markdown.h"
#include "harness/report/page_text.h"

namespace moegate {

bool is_for_people(Format format) {
  return format == Format::text || format == Format::md;
}

void print_page(const Page& page, Format format) {
  fmt::print("{}", format == Format::text ? to_text(page, screen_of(STDOUT_FILENO))
                                          : to_markdown(page, kAnyBytes));
}

}  // namespace moegate
