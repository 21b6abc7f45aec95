// SPDX-License-Identifier: Apache-2.0
// Verifies one variant on one case and samples its latency. Knows no store and no process: it is
// what a worker does for one variant.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "harness/kernel/check.h"
#include "harness/kernel/registry.h"
#include "harness/timing/profiler.h"
#include "harness/timing/timer.h"
#include "harness/values/result.h"
#include "harness/worker/process_state.h"
#include "harness/worker/summary.h"
#include "harness/worker/whole.h"

namespace moegate {

/// What is drawn anew for a run, so that no variant is right only where it is always looked at.
struct Draw {
  /// Of the rows that are compared with the truth beside those that always are. 0: none.
  uint64_t sample_seed = 0;
  /// One more problem set, whose inputs the sample seed draws.
  bool another_set = false;
};

/// Whose process and memory a Bench works in. A guest works in somebody else's: on tensors that are
/// there once and have no guard bands, among threads and memory that come and go without a
/// variant's doing.
enum class Home { own, guest };

/// Metric: share of the activations, in bytes, that had other values in a launch that was compared
/// with the truth of these. 0: the operator has no others, or does not know their truth.
constexpr const char* kUnseenMetric = "unseen_activations";

// What a kernel that is compiled where it is launched (a Python file's) costs before its first
// result, as metrics: seconds of its first launch in a process; modules that this launch loaded on
// the GPU, their bytes, and machine codes of kernels that no module before had. Only the seconds
// depend on what the compiler finds in its caches: 0 of the last metric says that they were empty
// when the process first launched any.
constexpr const char* kFirstCallMetric = "first_call";
constexpr const char* kModulesMetric = "modules";
constexpr const char* kModuleBytesMetric = "module_bytes";
constexpr const char* kModuleCodesMetric = "module_codes";
constexpr const char* kJitCacheMetric = "jit_cache";

/// Seed of a case's n-th problem set, counted from 0.
int64_t seed_of_set(const Case& c, size_t set);

/// One case on one device: its problems, built once and shared by the variants measured on it.
class Bench {
 public:
  /// Builds the problems: 2 to 8 of them with different seeds, more the smaller they are, and on
  /// the host as many again for the yardstick, whose outputs must not mix with the variant's. A
  /// guest builds one.
  Bench(Device& device, const Case& c, const Registry& registry = own_registry(),
        const Draw& draw = {}, Home home = Home::own);

  /// Cost and facts of the first problem.
  Cost cost() const { return sets_[0]->cost(); }
  std::vector<Fact> facts() const { return sets_[0]->facts(); }

  /// Launches the variant on every problem with poisoned outputs and compares: sets status (ok,
  /// wrong, unsupported), why, path, accuracy and seeds. A launch that breaks the device throws
  /// Error(environment). Calls `launched` once, when the first launch of a variant in Python has
  /// ended.
  Result verify(const Variant& variant, std::function<void()> launched = {});
  /// Launches a verified variant on activations that it never saw, and compares: adds the metric
  /// kUnseenMetric, and sets status wrong. measure() does so, too.
  void check_unseen(const Variant& variant, Result& result);
  /// Applies the negative controls to the correct outputs that verify() left: sets controls, and
  /// status wrong when one is accepted.
  void control(Result& result);
  /// Samples a verified variant's latency into `result`. Outputs and workspace are poisoned before
  /// every batch of timed launches and words of them before each launch; what each launch
  /// wrote is hashed, a random problem is compared after some batches, all are after the last. Then
  /// come activations that the variant never saw. What does not hold makes the result `wrong`,
  /// without a latency.
  void measure(const Variant& variant, Timer& timer, const Conditions& conditions,
               const Sampling& sampling, Result& result);
  /// Captures a verified variant's launch once, where the device has graphs: what cannot be
  /// captured is `unsupported`, and one that leaves the graph empty `wrong`.
  void try_capture(const Variant& variant, Result& result);
  /// Launches the variant a few times inside an NVTX range named "key variant", itself inside
  /// kLaunchesRange (nvtx.h), for a profiler to see.
  void profile(const Variant& variant);
  /// Has a profiler look at a verified variant's launches. A launch that it cannot look at makes
  /// the result `unsupported`.
  void profile(const Variant& variant, Profiler& profiler, const Conditions& conditions,
               Result& result);
  /// Whether a variant changed what the next one would be measured with: the case is built
  /// anew then.
  bool spoilt() const { return spoilt_; }

 private:
  class Measurement;  // measure.cc: the stages of a measurement

  /// A variant, and what it left in every problem; behind them, on the unseen activations.
  struct Reference {
    const Variant* variant;
    std::vector<KeptOutputs> sets;
  };

  void build();
  Result verify_all(const Variant& variant);
  /// What the operator asks in a set, for comparing programs; after its outputs were checked.
  /// Nothing where the device chose a part of the case (block = tuned): that is an answer.
  void describe_question(size_t set, SeedError& of) const;
  /// The variant with problems that have what it needs: workspace and packed weights. prepare()
  /// sees other activations than the launches, so that it cannot know their outputs.
  Subject subject(const Variant& variant, const std::vector<std::unique_ptr<Problem>>& sets);
  /// Fills what launches on these problems write: outputs, workspace, and the variant's pool.
  void poison(const Variant& variant, const std::vector<Problem*>& sets,
              uint8_t byte = Tensor::kPoisonByte);
  void launch_behind(uint8_t poison, const Variant& variant, Problem& problem);
  /// launch_behind(), and what the launch cost as the process's first of the variant.
  void launch_first(const Variant& variant, Problem& problem, Result& result);
  /// One problem's part of verify().
  void verify(const Variant& variant, Problem& problem, Result& result);
  Subject yardstick();  // no variant on a GPU
  /// The problem of a set; behind the last one comes the first with the unseen activations.
  Problem& problem_of(size_t set) const { return *sets_[set % sets_.size()]; }
  std::vector<int64_t> drawn_rows_of(size_t set) const;
  /// What the outputs that check() samples are compared whole with; none where it samples nothing
  /// or no other variant runs the case.
  const Reference* reference_for(const Variant& variant);
  /// Before a variant runs, so that their memory is not taken for its own.
  void make_row_truths();
  bool make_reference(const Variant& candidate);  // whether it left all else as it was
  /// What is wrong with the whole of a problem's outputs; empty when nothing is. A reference that
  /// is itself wrong is none from then on.
  std::string whole_fault(size_t set);
  void note_compared(const std::vector<Accuracy>& checked, Result& result) const;
  /// Compares the outputs that timed launches left in a problem.
  void check_again(size_t set, const Variant& variant, Result& result);
  /// Compares a launch on activations that the variant never saw with the truth of these. Then come
  /// others, with launches on the same ones once more: a kept output, or a kept decision, is quick
  /// when it has been seen.
  void try_unseen(const Variant& variant, Timer& timer, const Conditions& conditions,
                  Result& result);
  /// Has `look` find a fault while they are in the first problem, where its operator can put them
  /// there, which the result says.
  void with_unseen(Result& result, const std::function<std::string()>& look);
  std::string unseen_fault(const Variant& variant);  // in what a launch on them left
  /// The first launches on some activations, and later ones on the same.
  struct Pairs {
    std::vector<Sample> first, repeated;
    bool too_few() const;  // that nothing disturbed
    bool first_are_slower(double factor) const;
  };
  void meet_others(const Variant& variant);
  void add_pair(const Variant& variant, Session& session, Pairs& all);
  std::string kept_fault(const Variant& variant, Session& session);
  /// Draws what prepare() and the unseen activations need, whose memory is not the variant's.
  void draw_others(const Variant& variant);
  /// What a launch asked for and may not have; empty: nothing. guarded() runs what launches: who
  /// was refused something is wrong, and did not crash.
  std::string refused() const;
  void guarded(Result& result, const std::function<void()>& work);
  /// Behind what went wrong on a poisoned pool: what to do about it. Empty: none was poisoned.
  std::string pool_advice() const;
  /// Whether outputs are wrong and, in sets that were verified, what poison leaves.
  bool has_poison(const Result& result) const;
  void remember_inputs();
  /// Name of the first tensor whose guard band changed; empty: none, or there are none.
  std::string broken_guard(const Problem& problem) const;
  /// What the variant did beside its launches that it may not do; empty when nothing.
  std::string misdeed(const Variant& variant, const ProcessState& before, size_t memory_limit,
                      bool may_start_threads = false);
  /// Of the problems, with their workspaces.
  size_t tensor_bytes(bool with_yardstick = false) const;

  Device& device_;
  const Registry& registry_;
  const Case case_;        // resolved
  const bool as_written_;  // nothing had to be
  const Draw draw_;
  const Home home_;
  std::vector<std::unique_ptr<Problem>> sets_;
  std::vector<int64_t> seeds_;                     // of their inputs
  std::vector<std::vector<const Tensor*>> asked_;  // the tensors that they were made with
  std::vector<std::unique_ptr<Problem>> yardstick_sets_;
  std::vector<uint64_t> hashes_;              // outputs of the variant verified last, one per set
  std::map<const Tensor*, uint64_t> inputs_;  // and what is in them
  std::map<std::string, Reference> references_;
  std::set<std::string> refuted_;         // variants that are not right, or not alone right
  const Reference* reference_ = nullptr;  // of the variant verified last
  std::set<std::string> compiled_;        // variants of which a launch was the first
  std::function<void()> launched_;        // of the variant that is verified, until then
  double whole_row_ = 0;                  // the largest row's distance from it
  std::set<std::pair<std::string, const Problem*>> prepared_;  // variants' names, and for what
  std::mt19937_64 random_{std::random_device{}()};             // no launch can know what comes
  const uint64_t unseen_ = random_() | 1;  // the change whose truth the first problem finds
  size_t drawn_ = 0;                       // problems that have drawn other activations
  size_t poisoned_ = 0, kept_ = 0;         // bytes of the pool when it was poisoned last
  uint8_t poison_ = Tensor::kPoisonByte;   // with this
  bool spoilt_ = false;
};

/// Whether the first launches on new activations took longer than repeated ones beyond doubt: every
/// one of them, and by the factor between the medians. Pure; exposed for tests.
bool first_ones_are_slower(const std::vector<double>& first, const std::vector<double>& repeated,
                           double factor);

/// What is wrong with a pool that was otherwise before timed launches; empty where it was not.
/// Pure.
std::string grown_pool(const std::vector<PoolSegment>& before,
                       const std::vector<PoolSegment>& after);

/// Makes of a result a wrong one, without latency. `accuracy` empty: that of the result stays.
void reject(const std::string& why, const std::vector<Accuracy>& accuracy, Result& result);

}  // namespace moegate
