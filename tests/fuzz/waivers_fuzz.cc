// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <sstream>

#include "harness/base/text.h"
#include "harness/baseline/waivers.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void waivers(std::string_view bytes) {
  using std::chrono::sys_days;
  const sys_days day = std::chrono::year(2026) / 11 / 20;
  std::vector<Waiver> read;
  const std::string text(bytes);
  if (!accepted({Exit::usage}, [&] { read = parse_waivers(text, "input", day); })) return;
  size_t sections = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) sections += trimmed(line).starts_with('[');
  require(read.size() == sections, "a section that is no waiver");
  std::set<std::string> ids;
  for (const Waiver& w : read) {
    require(ids.insert(w.id).second, "an id twice: " + w.id);
    require(w.created <= day && w.created < w.expires, "a life that cannot be");
    require(w.max_cases >= 1 && w.max_regression >= 0 && w.max_regression <= 0.25, "no bounds");
    w.cases.matches("topk_sort/experts=128,tokens=8");
  }
}

}  // namespace moegate::fuzz
