// SPDX-License-Identifier: Apache-2.0
// A disk that fails or is full: what was stored stays, what fails says so, and works once the disk
// does.
#include <filesystem>
#include <optional>

#include "harness/store/crash_fixture.h"
#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class StoreFaultTest : public StoreFixture {
 protected:
  /// Has every change of a file that `work` makes fail in turn, on a store that `prepare` makes.
  void fail_at_every_change(const std::function<void()>& prepare,
                            const std::function<void()>& work) {
    // A disk that has one bad moment, one that stays full, one that is full for a moment.
    constexpr std::pair<Fault, bool> kFaults[] = {
        {Fault::io_error, false}, {Fault::disk_full, true}, {Fault::short_write, false}};
    for (const auto& [fault, lasting] : kFaults) {
      int k = 0;
      while (fails_well(k, fault, lasting, prepare, work)) ++k;
      EXPECT_GT(k, 5) << "changes of a file";
    }
    EXPECT_GT(refused_, 15);
  }
  /// The same for what is done to a store that is open.
  void fail_at_every_change(const std::function<void()>& prepare,
                            const std::function<void(Store&)>& work) {
    fail_at_every_change(
        [&] {
          store_.reset();
          prepare();
          store_.emplace(Store::open(path_, Store::Mode::update));
        },
        [&] { work(*store_); });
  }

 private:
  /// What a store holds, in a line; empty for what is no store (yet) that can be read.
  static std::string content(const std::string& path) {
    if (refusal(path, Store::Mode::read) != "accepted") return "";
    Store store = Store::open(path, Store::Mode::read);
    expect_whole(store);
    const auto count = [&](const char* what) {
      return std::to_string(store.database().integer(std::string("SELECT count(*) FROM ") + what));
    };
    return count("run") + " runs, " + count("run WHERE status = 'complete'") + " complete, " +
           count("operator") + " operators, " + count("process") + " processes, " +
           count("result") + " results";
  }

  /// False when `work` made fewer than `k` changes.
  bool fails_well(int k, Fault fault, bool lasting, const std::function<void()>& prepare,
                  const std::function<void()>& work) {
    SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at change " +
                 std::to_string(k) + (lasting ? " and after" : ""));
    fs::remove_all(dir_.path());
    fs::create_directories(dir_.path());
    prepare();
    const std::string before = content(path_);
    std::string why;
    const bool failed = vfs_.failed_at(k, fault, lasting, [&] {
      try {
        work();
      } catch (const Error& e) {
        why = e.what();
        EXPECT_EQ(e.code(), Exit::store) << why;
      }
    });
    if (!failed || HasFailure()) return false;
    if (!why.empty()) {
      ++refused_;
      EXPECT_TRUE(contains(why, path_)) << why;
      // As another process finds it, before this one touches it again.
      EXPECT_EQ(content(copy()), before) << why;
      EXPECT_NO_THROW(work()) << "the disk works again";
    }
    const std::string after = content(copy());
    EXPECT_FALSE(after.empty());
    EXPECT_NE(after, before);
    return !HasFailure();
  }

  CrashVfs vfs_;
  std::optional<Store> store_;
  int refused_ = 0;
};

TEST_F(StoreFaultTest, MakingAStore) {
  fail_at_every_change([] {}, [&] { Store::open(path_, Store::Mode::write); });
}

TEST_F(StoreFaultTest, BeginningARun) {
  RunInfo info = host_run();
  info.operators = {{"topk_sort", "per_token", {{"sort"}}}};
  info.tags = {{"night", "1"}};
  fail_at_every_change([&] { write_run(path_); }, [&](Store& store) { store.begin_run(info); });
}

TEST_F(StoreFaultTest, AddingAResult) {
  const auto add = [](Store& store) {
    const Case c{"tiny", "gpt", "topk_sort", {{"tokens", "16"}}, {}};
    store.add_result(1, c, {1, 2, 3}, {{"active_experts", 57}}, whole_result());
  };
  fail_at_every_change([&] { write_run(path_); }, add);
}

TEST_F(StoreFaultTest, EndingARun) {
  const auto prepare = [&] {
    write_run(path_);
    Store::open(path_, Store::Mode::update).database().execute("UPDATE run SET status = 'running'");
  };
  fail_at_every_change(prepare, [](Store& store) { store.end_run(1, "complete"); });
}

}  // namespace
}  // namespace moegate::test
