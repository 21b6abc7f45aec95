// SPDX-License-Identifier: Apache-2.0
// What the field lists promise: whatever a result or a run states comes back from the store.
#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"
#include "harness/values/fields_fixture.h"

namespace moegate {
namespace {

class StoreFields : public ::testing::Test {
 protected:
  ScratchFolder folder_;
  const std::string path_ = (folder_ / "r.db").string();
  const Case case_{"tiny", "gpt-oss-120b", "topk_sort", {{"tokens", "8"}}, {}};
};

TEST_F(StoreFields, EveryFieldOfAResultSurvives) {
  Store store = Store::open(path_, Store::Mode::write);
  const int64_t run = store.begin_run(RunInfo{.flush = "read"});
  auto result = Distinct().make<Result>();
  result.status = Status::noisy;
  store.add_result(store.begin_process(run, 0, 1), case_, {}, {}, result);
  const auto levels = store.levels(run);
  ASSERT_EQ(levels.size(), 1u);
  const Result& back = levels[0].result;
  expect_same(back, result, kFields<Result>);
  expect_same(back, result,
              std::tuple(Field("accuracy", &Result::accuracy), Field("seeds", &Result::seeds),
                         Field("metrics", &Result::metrics)));
  Statement kernels(store.database(),
                    "SELECT " + columns_of<KernelRow>("k") + " FROM kernel k ORDER BY ordinal");
  for (const KernelRow& kernel : result.kernels) {
    ASSERT_TRUE(kernels.step());
    expect_same(Columns(kernels).row<KernelRow>(), kernel, kFields<KernelRow>);
  }
  EXPECT_FALSE(kernels.step());
}

TEST_F(StoreFields, EveryFieldOfARunSurvives) {
  Store store = Store::open(path_, Store::Mode::write);
  auto run = Distinct().make<RunInfo>();
  run.flush = "write";
  run.task = "energy";  // one of the names that there are
  run.id = store.begin_run(run);
  store.end_run(run.id, "interrupted");
  const RunInfo back = store.run_info(run.id);
  EXPECT_EQ(back.started.size(), 20u);  // 2026-11-03T12:34:56Z
  EXPECT_EQ(back.finished.size(), 20u);
  EXPECT_EQ(back.status, "interrupted");
  // What the store sets.
  run.started = back.started;
  run.finished = back.finished;
  run.status = back.status;
  run.rounds = 0;
  expect_same(back, run, kFields<RunInfo>);
  expect_same(back, run, kParts<RunInfo>);
}

TEST_F(StoreFields, EveryRunHasANameOfItsOwn) {
  Store store = Store::open(path_, Store::Mode::write);
  const RunInfo a = store.run_info(store.begin_run(host_run()));
  const RunInfo b = store.run_info(store.begin_run(host_run()));
  EXPECT_EQ(a.uuid.size(), 32u);
  EXPECT_NE(a.uuid, b.uuid);
  EXPECT_EQ(a.campaign, a.uuid) << "it stands alone";
  RunInfo part = host_run();
  part.campaign = a.uuid;
  EXPECT_EQ(store.run_info(store.begin_run(part)).campaign, a.uuid);
  part.uuid = a.uuid;
  EXPECT_THROW(store.begin_run(part), Error) << "the same run once more";
}

}  // namespace
}  // namespace moegate
