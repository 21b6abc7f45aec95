// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/resource_ratchet.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void resources(std::string_view bytes) {
  const auto path = write_own_file("input.tsv", bytes);
  ResourceFile read;
  if (!accepted({Exit::usage}, [&] { read = read_resources(path); })) return;
  const std::string text = format_resources(read);
  const ResourceFile again = read_resources(write_own_file("again.tsv", text));
  require(format_resources(again) == text, "another file once it is read");
  require(again.rows.size() == read.rows.size(), "another number of rows");
  require(changes_of(read.modules, again.modules).empty(), "other modules");
  constexpr int kArch = 90;
  std::vector<KernelResources> kernels;
  for (const ResourceRow& row : again.rows) kernels.push_back(row.kernel);
  in_shapes(kernels, {}, again, kArch);
  for (const ResourceChange& change : changes_of(again, kernels, kArch)) {
    require(!change.what.empty(), "a change without a word");
  }
}

}  // namespace moegate::fuzz
