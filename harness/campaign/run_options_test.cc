// SPDX-License-Identifier: Apache-2.0
// A run's options as the store keeps them.
#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/plan.h"
#include "harness/campaign/setting.h"

namespace moegate {
namespace {

class RunOptionsTest : public CampaignTest {};

TEST_F(RunOptionsTest, OptionsThatNoRunHasAreADamagedStore) {
  const auto refused = [&](const std::string& field, const std::string& value) {
    std::string text = options_.to_json();
    const size_t at = text.find("\"" + field + "\":") + field.size() + 3;
    text.replace(at, text.find_first_of(",}", at) - at, value);
    try {
      RunOptions().from_json(text);
    } catch (const Error& e) {
      return e.code() == Exit::store;
    }
    return false;
  };
  EXPECT_FALSE(refused("rounds", "3"));
  EXPECT_TRUE(refused("shards", "0")) << "what is divided by";
  EXPECT_TRUE(refused("shard", "-1"));
  EXPECT_TRUE(refused("rounds", "1e300"));
  EXPECT_TRUE(refused("rounds", "4294967297"));
  EXPECT_TRUE(refused("min_samples", "0"));
  EXPECT_TRUE(refused("order_seed", "-1"));
  EXPECT_TRUE(refused("flush", "1"));
  EXPECT_TRUE(refused("flush", "\"splash\""));
  EXPECT_FALSE(refused("flush", "\"write\""));
}

TEST_F(RunOptionsTest, KernelsThatAStoreNamesAreTakenFromTheUser) {
  options_.worker.kernels = {"/home/me/evil.py", "b c.so"};
  const std::string text = options_.to_json();
  const auto named = [&](const std::vector<std::string>& files) {
    RunOptions stored;
    stored.from_json(text);
    use_named_kernels(stored, files, "run 3");
    return stored.worker.kernels;
  };
  for (const std::vector<std::string>& files : {std::vector<std::string>{}, {"a.py"}}) {
    const std::string why = refusal_of([&] { named(files); });
    EXPECT_NE(why.find("run 3 has kernels from elsewhere"), std::string::npos) << why;
    EXPECT_NE(why.find(" --module /home/me/evil.py --module 'b c.so'"), std::string::npos) << why;
  }
  EXPECT_EQ(named({"a.py", "b.so"}), (std::vector<std::string>{"a.py", "b.so"}));
  RunOptions none;
  EXPECT_NO_THROW(use_named_kernels(none, {}, "run 3"));
  EXPECT_THROW(use_named_kernels(none, {"a.py"}, "run 3"), Error);
}

TEST_F(RunOptionsTest, AnyPathCanBeStored) {
  options_.worker.tiles = "\xff";  // a name of a folder need not be UTF-8
  RunOptions back;
  EXPECT_NO_THROW(back.from_json(options_.to_json()));
}

}  // namespace
}  // namespace moegate
