// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/baseline.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

auto fields_of(const Blessing& b) {
  return std::tie(b.id, b.date, b.kind, b.author, b.klass, b.suite, b.run, b.git_sha, b.reason,
                  b.program, b.sha256);
}

}  // namespace

void ledger(std::string_view bytes) {
  const auto path = write_own_file("input.tsv", bytes);
  std::vector<Blessing> read;
  if (!accepted({Exit::usage}, [&] { read = read_ledger(path); })) return;
  const auto other = own_file("again.tsv");
  std::filesystem::remove(other);
  for (const Blessing& b : read) append_blessing(other, b);
  std::vector<Blessing> again = read_ledger(other);
  require(again.size() == read.size(), "another number of lines");
  for (size_t i = 0; i < read.size(); ++i) {
    require(fields_of(again[i]) == fields_of(read[i]), "another line than that of " + read[i].id);
  }
  accepted({Exit::usage}, [&] {
    Blessing next;
    next.id = next_blessing(other);
    append_blessing(other, next);
    again = read_ledger(other);
    require(again.size() == read.size() + 1 && again.back().id == next.id, "its next line is lost");
    for (const Blessing& b : read) require(b.id != next.id, "its next id is taken");
  });
}

}  // namespace moegate::fuzz
