// SPDX-License-Identifier: Apache-2.0
// A folder with one suite of the fake operator and options that measure it with fake workers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/base/test_fixture.h"
#include "harness/campaign/fake_worker_fixture.h"
#include "harness/campaign/plan.h"
#include "harness/store/store.h"

namespace moegate::test {

class CampaignTest : public testing::Test {
 protected:
  CampaignTest() {
    write_suite("op = fake\n[a]\nrows = 1, 2\n");
    options_.suites = {suite().string()};
    options_.db = (folder_ / "results.sqlite").string();
  }

  std::filesystem::path suite() const { return folder_ / "s.suite"; }
  void write_suite(const std::string& text) { std::ofstream(suite()) << text; }
  Store store() { return Store::open(options_.db, Store::Mode::write); }
  /// How often something was asked of the fake.
  long count(const std::string& entry) const { return std::ranges::count(fake_.journal, entry); }
  /// Whether something was asked of the fake with this in it.
  bool measured(const std::string& text) const {
    return std::ranges::any_of(fake_.journal, [&](const std::string& entry) {
      return entry.find(text) != std::string::npos;
    });
  }

  ScratchFolder folder_;
  RunOptions options_;
  FakePrograms fake_;
};

}  // namespace moegate::test
