// SPDX-License-Identifier: Apache-2.0
#include "harness/store/level_walk.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/store/result_checksum.h"
#include "harness/store/result_walk.h"

namespace moegate {
namespace {

/// What a run set out to measure.
struct RunCase {
  std::string key, op, suite, section;
  size_t place = 0;  // by key
  bool chosen = true;
};
using RunCases = std::map<int64_t, RunCase>;

RunCases read_cases(Database& db, const LevelChoice& choice) {
  Statement q(db,
              "SELECT case_id, key, op, suite, section FROM run_case CROSS JOIN bench_case "
              "USING (case_id) WHERE run_id = ?1 ORDER BY key");
  q.bind(choice.run);
  RunCases cases;
  while (q.step()) {
    RunCase one{q.text(1), q.text(2), q.text(3), q.text(4), cases.size()};
    check_file_name(db, "the suite", one.suite);
    one.chosen = !choice.cases || choice.cases(one.key);
    cases.insert_or_assign(cases.end(), q.integer(0), std::move(one));
  }
  return cases;
}

/// Those that are chosen, in as few ranges as there are without one that is not.
std::vector<CaseRange> ranges_of(const RunCases& cases) {
  std::vector<CaseRange> ranges;
  bool goes_on = false;
  for (const auto& [id, one] : cases) {
    if (one.chosen && goes_on) ranges.back().second = id;
    if (one.chosen && !goes_on) ranges.emplace_back(id, id);
    goes_on = one.chosen;
  }
  return ranges;
}

}  // namespace

void check_file_name(const Database& db, const char* what, const std::string& text) {
  if (is_file_name(text)) return;
  db.damaged(fmt::format("{} '{}' of a run is no name of a file", what, one_line(text)));
}

void walk_levels(Database& db, const LevelChoice& choice,
                 const std::function<void(const WalkedLevel&)>& add) {
  const RunCases cases = read_cases(db, choice);
  const std::vector<CaseRange> ranges = ranges_of(cases);
  std::optional<Verifications> verifications;
  if (choice.verified) verifications.emplace(db);
  auto of = cases.begin();
  Level level;
  uint64_t key = 0;  // its hash
  for (ResultWalk walk(db, choice.run, ranges, choice.for_verdict); walk.next();) {
    while (of != cases.end() && of->first < walk.case_id()) ++of;
    if (of == cases.end()) break;
    const RunCase& one = of->second;
    if (of->first != walk.case_id()) continue;
    if (level.key != one.key) {
      level.key = one.key, level.op = one.op, level.suite = one.suite, level.section = one.section;
      key = hash_of_key(one.key);
    }
    walk.read(level.result);
    level.variant = level.result.variant;
    level.round = walk.round();
    const std::string why = impossible_number(level.result);
    if (!why.empty()) db.damaged(fmt::format("row {}: {}", walk.result_id(), why));
    if (walk.checksum() != kNoChecksum) {
      check_sum(db, choice.run, walk.result_id(), level.variant, "its numbers", walk.checksum(),
                checksum_of_numbers(level.result, key));
    }
    if (verifications) {
      const int64_t found = verifications->give(level.result, walk.verification_id());
      check_sum(db, choice.run, walk.result_id(), level.variant, "its accuracy and seeds",
                walk.verified_checksum(), found);
    }
    add({level, walk.result_id(), one.place});
  }
}

}  // namespace moegate
