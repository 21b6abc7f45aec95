// SPDX-License-Identifier: Apache-2.0
// Problems as Python sees them, by number; and the Problem of an operator that is written
// in Python.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"

namespace moegate {

/// Asks Python: PythonDispatch with its answer, null where there is none. Throws Error(internal)
/// with the last line of its traceback; the whole of it goes to stderr.
nlohmann::json ask_python(int64_t number, const char* what, int64_t problem, void* stream,
                          const nlohmann::json& argument);

/// Gives a problem that was just made its number, and returns it.
int64_t give_number(Problem& problem, const Case& c);
/// The number it has. Throws Error(internal) where it has none.
int64_t number_of(const Problem& problem);
Problem& problem_of(int64_t number);

/// What a launch in Python gets: parameters, tensors, stream.
nlohmann::json describe_problem(int64_t number);
nlohmann::json describe_tensor(Tensor& tensor);
DType dtype_of(const std::string& name);

class PythonProblem : public Problem {
 public:
  /// `op`: the operator's number. Its tensors are drawn, or filled by Python, which hands in
  /// the truth.
  PythonProblem(Device& device, const Case& c, int64_t op);

  void expect(const std::string& output, std::vector<double> truth);
  /// What Python made of an output that it decodes; check() asks for it.
  void take_values(const std::string& output, std::vector<float> values);

  Checked check() const override;
  bool find_truth() override;
  Corruptions corruptions() override;
  Cost cost() const override { return cost_; }

 private:
  struct Expected {
    Tensor* tensor;
    Tolerance tolerance;
    bool is_decoded;  // by Python, where its format has no DType
    std::vector<double> truth = {};
    ByChange<std::vector<double>> truths = {};
    mutable std::vector<float> values = {};  // of the last check()
  };
  /// An activation that a function of the operator fills, and what it held at first.
  struct Filled {
    Tensor* tensor;
    std::vector<std::byte> first;
  };
  bool redraw(uint64_t change) override;
  void add_tensor(const nlohmann::json& stated, uint64_t seed, uint64_t stream);
  Cost cost_of(const nlohmann::json& stated) const;
  Expected& output_of(const std::string& name, const char* what);
  Accuracy compare_decoded(const Expected& output) const;
  Corruption corruption(const char* name);

  const int64_t op_;
  const Case case_;
  std::vector<Filled> filled_;
  std::vector<Expected> outputs_;
  std::vector<std::string> corruptions_;
  Cost cost_;
};

}  // namespace moegate
