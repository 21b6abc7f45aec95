// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/baseline.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void baseline(std::string_view bytes) {
  const auto path = write_own_file("input.tsv", bytes);
  Baseline read;
  if (!accepted({Exit::usage}, [&] { read = read_baseline(path); })) return;
  const std::string text = format_baseline(read);
  const Baseline again = read_baseline(write_own_file("again.tsv", text));
  require(format_baseline(again) == text, "another file once it is read");
  require(again.rows.size() == read.rows.size() && again.retired.size() == read.retired.size(),
          "another number of rows");
  require(other_conditions(read.header, again.header).empty(), "other conditions");
  std::vector<BaselineChange> changes;
  settle(again, again, changes);
  require(changes.empty(), "it differs from itself");
}

}  // namespace moegate::fuzz
