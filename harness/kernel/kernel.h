// SPDX-License-Identifier: Apache-2.0
// The one header that a kernel knows: Problem (inputs, outputs, truth and cost of a case),
// Op<P> (an operator) and Kernel<P> (one variant of it). Defining an Op or a Kernel at namespace
// scope registers it; a duplicate name or an unknown operator stops the program at start-up.
//
//   static const Kernel<TopkSort> kernel({.name = "chain3",
//                                         .backend = Backend::cuda,
//                                         .launch = launch,
//                                         .workspace = workspace});
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/base/hash.h"
#include "harness/kernel/device.h"
#include "harness/kernel/tensor.h"
#include "harness/values/case.h"
#include "harness/values/device_facts.h"
#include "harness/values/status.h"
#include "harness/values/tolerance.h"

namespace moegate {

struct Accuracy;
struct Checked;
struct Variant;

/// One way of being wrong that check() must reject. Has no default, so that an operator states each
/// of them.
struct Corruption {
  /// Spoils the correct outputs that the problem holds, through upload and download; leaves them as
  /// they are where a case has nothing to spoil.
  explicit Corruption(std::function<void()> does) : apply(std::move(does)) {}
  /// For an operator that has no such thing; `reason` says why.
  static Corruption not_applicable(std::string reason) {
    Corruption none{{}};
    none.why_not = std::move(reason);
    return none;
  }

  std::function<void()> apply;  // empty: not applicable
  std::string why_not;
};

/// The ways that only the operator knows how to be wrong in. What can be done to any output (zeros,
/// a constant, a factor, another seed's output) is the harness's, in controls.h.
struct Corruptions {
  Corruption experts_swapped;    // the rows of two experts
  Corruption token_dropped;      // one token's contribution is missing
  Corruption scales_transposed;  // quantisation scale factors read in the other order
};

/// An output that is too large for check() to look at more than a sample of it, as rows: what tells
/// two variants' outputs apart, and in which row.
struct SampledOutput {
  const Tensor* tensor;
  int64_t rows, width;  // elements per row
  /// Where the variant at work left every row, in rows of the tensor; empty: in their order.
  std::vector<int32_t> places;
  /// The operator's for the variant at work. The limits of an element and of a row count.
  Tolerance tolerance;
};

/// The rows of an output that belong to one token, in an order that its batch does not change.
struct TokenRows {
  const Tensor* tensor;
  int64_t width;  // elements per row
  std::vector<int64_t> rows;
};

/// Inputs, outputs, truth and cost of one case, with one seed, on one device.
class Problem {
 public:
  explicit Problem(Device& device) : device_(device) {}
  virtual ~Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  /// Compares every output with the truth.
  virtual Checked check() const = 0;
  /// The outputs that check() looks at in a sample only. The harness compares all their rows with
  /// those of another variant. Empty: check() compares every output whole.
  virtual std::vector<SampledOutput> sampled_outputs() const { return {}; }
  /// Compares these rows of them, ascending, with the truth, from edge to edge: an Accuracy for
  /// each of them, under the limits of an element and of a row. Keeps the truth of the rows
  /// asked last.
  virtual std::vector<Accuracy> check_rows(const std::vector<int64_t>& rows);
  /// The operator's negative controls; `moegate verify --controls` proves that check() rejects
  /// them.
  virtual Corruptions corruptions() = 0;
  virtual Cost cost() const = 0;
  virtual std::vector<Fact> facts() const { return {}; }
  /// Before a launch of a variant that asks for no arguments, as in Python: outputs lie as the
  /// operator defines them (""), or rows as an order says that the operator has a name for. Throws
  /// Error(usage) for another name.
  virtual void lay_out(const std::string& rows);
  /// Whether the variant at work writes this output: not one that lies in another order.
  virtual bool writes(const Tensor& /*output*/) const { return true; }

  /// Fills every output and the workspace with NaN, or another byte, so that what a variant leaves
  /// unwritten shows.
  void poison(uint8_t byte = Tensor::kPoisonByte);
  /// Puts other values of the same distribution into the activations, the same for the same
  /// `change`; 0 puts back the first ones. Returns whether it could: activations that neither
  /// Tensor::fill_random() nor redraw() makes stay as they are. What check() says is about those
  /// whose truth was found.
  bool replace_activations(uint64_t change);
  /// Has check() and check_rows() compare with the truth of the activations at hand, until they are
  /// replaced. Returns whether the operator can; those of the first ones are found when it is made.
  virtual bool find_truth() { return false; }
  /// Makes the batch of `tokens` that of tokens first, first + 1, ... of an endless row of tokens,
  /// whose first ones a case's are: a token's values depend on its number alone, not on its batch.
  /// Outputs of such a batch have no truth. For operators that define rows_of().
  void move_to(int64_t first, int64_t tokens);
  /// The outputs of the token at `place` in the batch, as the variant at work lays them out.
  /// Empty: the operator does not say, or its outputs are the batch's and not a token's.
  virtual std::vector<TokenRows> rows_of(int64_t /*place*/) const { return {}; }
  /// Name of the first tensor whose guard band changed; empty when all are intact.
  std::string broken_guard() const;
  /// Gives variants `bytes` of scratch memory; kept when it is large enough already.
  void reserve_workspace(size_t bytes);
  template <class T = void>
  T* workspace() {
    return workspace_ ? workspace_->data<T>() : nullptr;
  }
  /// Weights laid out for a kernel, `bytes` long: made and filled by `pack` when a variant's
  /// prepare() first asks for `layout`, then shared by all that name it. Throws Error(internal) in
  /// a launch, whose memory this would be from then on.
  Tensor& packed(const std::string& layout, size_t bytes, const std::function<void(Tensor&)>& pack);
  /// One that exists; throws Error(internal) where nobody made it.
  Tensor& packed(const std::string& layout);
  /// Whether weights may be packed now: in prepare(), not in launches.
  void allow_packing(bool allowed) { may_pack_ = allowed; }
  /// What a launch wanted to pack and may not, as a sentence that blames it; empty: nothing.
  const std::string& refused() const { return refused_; }
  /// Every tensor, packed weights and workspace included.
  std::vector<Tensor*> tensors() const;
  Device& device() const { return device_; }
  /// check(), with the operator's ceilings widened for the variant at work.
  Checked check_with(const Leeway& leeway);
  /// Hash of the ceilings that the last check_with() compared by, before it widened them.
  uint64_t limits() const { return limits_; }
  /// sampled_outputs(), likewise.
  std::vector<SampledOutput> sampled_outputs_with(const Leeway& leeway);

  /// What the harness made this of; a test may leave it empty.
  Case spec;
  /// What variant `tuned` launches (tuned.h), put here by its prepare().
  const Variant* tuned = nullptr;

 protected:
  /// Allocates a tensor that lives as long as the problem.
  Tensor& make_tensor(std::string name, Role role, DType dtype, std::vector<int64_t> shape);
  /// Called when fill_random()'s activations have the values of `change`: draws those that it does
  /// not make (redraw.h) and derives anew what was made of any. Returns whether it drew some.
  virtual bool redraw(uint64_t /*change*/) { return false; }
  /// As of move_to(), for redraw().
  int64_t first_token() const { return first_token_; }
  /// An operator's ceilings for the variant at work; check() compares by these.
  Tolerance ceilings(const Tolerance& of_operator) const {
    limits_ = hash_bytes(&of_operator, sizeof of_operator, limits_);
    return of_operator.widened(leeway_);
  }

 private:
  Tensor* find_tensor(const std::string& name) const;

  Device& device_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::unique_ptr<Tensor> workspace_;
  Leeway leeway_;
  mutable uint64_t limits_ = 0;
  int64_t first_token_ = 0;
  bool may_pack_ = true;
  std::string refused_;
};

/// What a variant is given beside its problem.
struct Launch {
  void* stream;  // cudaStream_t; null on the host
  const DeviceFacts& device;
};

/// A piece of the memory pool that a variant's launches allocate in, where they do (Python's
/// `allocates`); the pool stays from launch to launch.
struct PoolSegment {
  std::byte* data;
  size_t bytes;
  size_t kept;  // bytes that launches left allocated
};

/// How an operator comes to variants `tuned`, one for each backend, which launch the variant that
/// `moegate tune` found fastest: harness/kernel/tuned.h.
struct Tuning {
  /// Parameters that say, beside the tokens, which variant is fastest. They name the file.
  std::vector<std::string> shape;
  /// Further ones, that name it where they are not at their defaults.
  std::vector<std::string> unusual = {};
  /// What runs where no file says: the first of these variants that takes the case. Null: the
  /// operator has no such variant.
  std::vector<std::string> (*usual)(const Case&, const DeviceFacts&) = nullptr;
  /// Variants that are never chosen: they pay with accuracy, or leave work out.
  std::vector<std::string> without = {};
};

/// An operator as the harness sees it.
struct OpEntry {
  std::string name;
  std::string help;
  std::vector<Param> params;
  std::string yardstick;  // host variant that the others are timed against, interleaved
  Befores before;
  std::vector<std::string> parts;
  std::function<void(const Case&)> validate;  // throws Error(usage) for parameters that do not fit
  std::function<std::unique_ptr<Problem>(Device&, const Case&)> make;
  std::string file;  // that defines it, relative to the source tree
  std::function<void(Case&, const DeviceFacts&)> resolve;
  Tuning tuning;
};

/// A variant as the harness sees it. Empty functions were not given.
struct Variant {
  std::string op;
  std::string name;
  Backend backend;
  std::string help;
  std::function<void(Problem&, const Launch&)> launch;
  std::function<void(Problem&, const Launch&)> prepare;
  std::function<size_t(const Case&, const DeviceFacts&)> workspace;
  std::function<std::string(const Case&, const DeviceFacts&)> unsupported;
  std::function<std::string(const Case&, const DeviceFacts&)> path;
  std::function<std::vector<PoolSegment>()> pool;  // as it is now
  Leeway leeway;
  ExpectedResult expected;
  std::string file;  // that defines it, relative to the source tree
};

/// What an operator's author states. P is the operator's Problem: constructible from
/// (Device&, const Case&), with a static constexpr const char* kOp and a static
/// void validate(const Case&) that throws Error(usage) for parameters that do not fit together.
struct OpSpec {
  std::string help;
  std::vector<Param> params;
  std::string yardstick;
  /// What its variants are compared with in the report `speedup`.
  Befores before = {};
  /// Operators whose kernels its variants launch: their code counts as its own.
  std::vector<std::string> parts = {};
  /// Puts values in place of words that mean one for each device (block = tuned). What validate()
  /// gets is not resolved; what a Problem and its variants get is. Throws Error(usage).
  void (*resolve)(Case&, const DeviceFacts&) = nullptr;
  Tuning tuning = {};
};

/// What a variant's author states.
template <class P>
struct KernelSpec {
  std::string name;  // its idea: split_k, fused_one_block; never v2, new, opt
  Backend backend;
  std::string help;  // one line for `moegate list kernels`
  /// Launches asynchronously on launch.stream (host: runs). Must not allocate or synchronise.
  void (*launch)(P&, const Launch&);
  /// Lays the weights out as the kernel reads them, through Problem::packed(). Untimed: an engine
  /// does it once, when it loads a model. Called before the first launch on a problem and perhaps
  /// again.
  void (*prepare)(P&, const Launch&) = nullptr;
  /// Scratch bytes it needs.
  size_t (*workspace)(const Case&, const DeviceFacts&) = nullptr;
  /// Why it cannot run this case; empty when it can.
  std::string (*unsupported)(const Case&, const DeviceFacts&) = nullptr;
  /// Which internal path it takes for this case, where it has several ("fallback: chain2").
  std::string (*path)(const Case&, const DeviceFacts&) = nullptr;
  /// Factor on the operator's ceilings, for an idea that costs accuracy (a narrower accumulator);
  /// the variant's header says what was measured. At most kMostTolerance.
  double tolerance = 1;
  /// What it rounds in between, where the operator's own variants do not: the error that this adds
  /// to an element, relative and rms. allowed_beyond() says what follows.
  double between = 0;
  /// Of a saboteur (tests/saboteurs): what the harness must make of it.
  ExpectedResult expected = {};
};

/// The largest factor on an operator's ceilings that a variant may state; --controls proves that
/// outputs spoilt on purpose are seen with every factor in use.
constexpr double kMostTolerance = 20;

void register_op(OpEntry entry);
void register_variant(Variant variant);

template <class P>
class Op {
 public:
  explicit Op(OpSpec spec, const char* file = __builtin_FILE()) {
    register_op({P::kOp, std::move(spec.help), std::move(spec.params), std::move(spec.yardstick),
                 std::move(spec.before), std::move(spec.parts), P::validate, make, file,
                 spec.resolve, std::move(spec.tuning)});
  }

 private:
  static std::unique_ptr<Problem> make(Device& device, const Case& c) {
    auto problem = std::make_unique<P>(device, c);
    problem->spec = c;
    return problem;
  }
};

template <class P>
class Kernel {
 public:
  explicit Kernel(KernelSpec<P> spec, const char* file = __builtin_FILE()) {
    register_variant({P::kOp,
                      std::move(spec.name),
                      spec.backend,
                      std::move(spec.help),
                      erased(spec.launch),
                      erased(spec.prepare),
                      spec.workspace,
                      spec.unsupported,
                      spec.path,
                      {},
                      {spec.tolerance, spec.between},
                      std::move(spec.expected),
                      file});
  }

 private:
  static std::function<void(Problem&, const Launch&)> erased(void (*call)(P&, const Launch&)) {
    if (!call) return {};
    return [call](Problem& problem, const Launch& where) { call(static_cast<P&>(problem), where); };
  }
};

/// All operators and variants, sorted by name. Throws Error(internal) when the registrations do not
/// fit together (duplicate name, variant of an unknown operator, missing yardstick or before).
const std::vector<OpEntry>& all_ops();
const std::vector<Variant>& all_variants();
/// Throws Error(internal) when there is none: names come from this program's own lists.
const Variant& find_variant(const std::string& op, Backend backend, const std::string& name);
/// Throws Error(usage) listing the known operators.
const OpEntry& find_op(const std::string& name);
/// The case as it is on a device: OpSpec::resolve done. For what runs it; its identity is that of
/// the case as written.
Case resolved(Case c, const DeviceFacts& device);

/// A variant with the problems it is launched on in turn, so that nothing keyed on a pointer
/// survives.
struct Subject {
  const Variant* variant;
  std::vector<Problem*> sets;
};

}  // namespace moegate
