// SPDX-License-Identifier: Apache-2.0
// For tests of the night: a home, its baselines and the programs that a night may meet.
#pragma once

#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"
#include "harness/baseline/baseline.h"
#include "harness/baseline/bless.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/runner.h"
#include "harness/night/night.h"

namespace moegate::test {

/// A home with suites a, b, tiny and smoke of the fake operator, whose cases are token counts.
class NightTest : public CampaignTest {
 protected:
  NightTest() {
    for (const char* name : {"suites", "reports", "baselines", "programs"}) {
      std::filesystem::create_directories(folder_ / name);
    }
    write_suite("a", "1, 2");
    write_suite("b", "3");
    write_suite("tiny", "4");
    write_suite("smoke", "16");
    options_.suites = {"a", "b"};
    night_.suites = {"a", "b"};
    night_.device = "cuda:0";
    night_.backend = Backend::cuda;
    night_.rounds = 3;
    night_.out = folder_.path().string();
    rules_.baselines = {folder_ / "baselines", ""};
    rules_.limits = [](Backend) { return Limits::cuda(); };
    rules_.fail_on.undecided = true;
    calls_.verified = calls_.spoilt = calls_.measured = [](const Tally&) {};
    calls_.flown = [](const Canaries&) {};
    calls_.failed = [this](const Error& error) { failed_.emplace_back(error.what()); };
    calls_.build = [](const std::string&, double) { return std::string(); };
    program("").touch = [](const Request& request, Result& result) {
      if (request.canary.scale != 1) result.status = Status::wrong;
    };
  }

  void write_suite(const std::string& name, const std::string& tokens) const {
    std::ofstream(folder_ / "suites" / (name + ".suite"))
        << "op = fake\n[m]\ntokens = " << tokens << "\n";
  }
  FakeProgram& program(const std::string& path) {
    FakeProgram& fake = fake_.program(path);
    fake.hello.operators[0].params = {{"tokens", "", "tokens"}};
    return fake;
  }
  /// A file that stands for a program; its script is program()'s.
  std::string program_file(const std::string& name) const {
    const std::filesystem::path path = folder_ / "programs" / name;
    std::ofstream(path) << name;
    return path.string();
  }
  int64_t run() { return run_suites(options_, 0, fake_).run; }
  /// Blesses what this program measures now, 1 us each.
  void bless_now() {
    const int64_t id = run();
    Store results = store();
    const RunInfo info = results.run_info(id);
    bless(info, collect(results.levels(id)),
          {.reason = "first", .baselines = folder_ / "baselines", .author = "me"});
  }
  /// Says in a suite's baseline which program measured it.
  void name_program(const std::string& suite, const std::string& hash) const {
    edit(suite, [&](BaselineHeader& header) { header.program = hash; });
  }
  /// Says that another GPU of the class measured it.
  void name_gpu(const std::string& suite) const {
    edit(suite, [](BaselineHeader& header) { header.gpu = "GPU-another"; });
  }
  void edit(const std::string& suite, const std::function<void(BaselineHeader&)>& change) const {
    const std::filesystem::path path = folder_ / "baselines" / "fake-gpu" / (suite + ".tsv");
    Baseline baseline = read_baseline(path);
    change(baseline.header);
    write_baseline(path, baseline);
    append_blessing(folder_ / "baselines" / "blessings.tsv",
                    {.id = "B0009",
                     .klass = "fake-gpu",
                     .suite = suite,
                     .sha256 = sha256(format_baseline(baseline))});
  }
  Verdict gate_now(const ProgramOf& program_of) {
    const int64_t id = run();
    fake_.journal.clear();
    Store results = store();
    return gate(results, options_.db, id, rules_, program_of, {}, fake_);
  }
  Night whole_night() {
    night_.rules = rules_;
    return night(night_, calls_, fake_);
  }
  static std::map<std::string, Outcome> outcomes(const Verdict& verdict) {
    std::map<std::string, Outcome> all;
    for (const CaseVerdict& v : verdict.result.cases)
      all[v.id.key + " " + v.id.variant] = v.outcome;
    return all;
  }

  const ScopedVariable home_{"MOEGATE_HOME", folder_.path()};
  GateRules rules_;
  NightOptions night_;
  NightCalls calls_;
  std::vector<std::string> failed_;
};

/// Every row takes a second.
class TimedNightTest : public NightTest {
 protected:
  TimedNightTest() {
    night_.clock = [this] { return now_; };
    write_suite("a", "1, 2, 5, 6, 7, 8, 9, 10");
    const auto touch = program("").touch;
    program("").touch = [this, touch](const Request& request, Result& result) {
      ++now_;
      touch(request, result);
    };
    program("").pass = [this](double seconds) { now_ += seconds; };
  }

  double now_ = 0;
};

}  // namespace moegate::test
