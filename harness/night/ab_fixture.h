// SPDX-License-Identifier: Apache-2.0
// For tests of an A/B: two programs of the fake operator.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "harness/campaign/campaign_fixture.h"
#include "harness/night/ab.h"

namespace moegate::test {

class AbTest : public CampaignTest {
 protected:
  AbTest() {
    ab_.run = options_;
    std::ofstream(base_path_) << "a program to hash\n";
    ab_.base.program = base_path_;
    ab_.plan = {.screen_rounds = 3, .rounds = 6, .extra_rounds = 0};
    for (const std::string& path : {base_path_, std::string()}) fake_.program(path).noise = 0.001;
  }

  Comparison run() {
    Store kept = store();
    return run_ab(kept, prepare_ab(ab_, fake_), [](Backend) { return Limits::cuda(); });
  }
  CaseId id(const std::string& variant, int rows = 1) const {
    return {"s", fmt::format("fake/rows={}", rows), variant};
  }
  std::vector<std::string> starts() const {
    std::vector<std::string> all;
    std::ranges::copy_if(fake_.journal, std::back_inserter(all),
                         [](const std::string& entry) { return entry.ends_with("start"); });
    return all;
  }

  const std::string base_path_ = (folder_ / "base.out").string();
  AbOptions ab_;
};

}  // namespace moegate::test
