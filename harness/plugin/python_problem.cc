// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/python_problem.h"

#include <algorithm>
#include <array>

#include "harness/kernel/check.h"
#include "harness/values/json_fields.h"

namespace moegate {

template <>
inline constexpr std::array kNames<Role> = {"activation", "weight", "output", "workspace"};

namespace {

using nlohmann::json;

/// What Python calls by number. An address alone does not do: the next problem may have it.
struct Numbered {
  Problem* problem;
  Case spec;
};
std::map<int64_t, Numbered>& numbered() {
  static std::map<int64_t, Numbered> all;
  return all;
}

Role role_of(const std::string& name) {
  if (name == "activation") return Role::activation;
  if (name == "weight") return Role::weight;
  if (name == "output") return Role::output;
  usage_error("role '{}'; use activation or weight", name);
}

RandomFill fill_of(const json& stated, DType dtype, uint64_t seed, uint64_t stream) {
  const std::string kind = stated.at("kind");
  if (kind != "uniform" && kind != "int4_normal" && kind != "e4m3_normal") {
    usage_error("fill '{}'; use moegate.uniform(), int4_normal(), e4m3_normal() or a function",
                kind);
  }
  RandomFill fill{
      .kind = RandomFill::Kind::uniform, .seed = seed, .stream = stream, .dtype = dtype};
  if (kind == "int4_normal") fill.kind = RandomFill::Kind::int4_normal;
  if (kind == "e4m3_normal") fill.kind = RandomFill::Kind::e4m3_normal;
  if (kind == "uniform") {
    fill.low = stated.at("low");
    fill.high = stated.at("high");
  }
  return fill;
}

}  // namespace

DType dtype_of(const std::string& name) {
  for (const DType t :
       {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::i32, DType::u8, DType::i8}) {
    if (name == name_of(t)) return t;
  }
  usage_error("dtype '{}'; use fp32, fp16, bf16, fp8, int32, uint8 or int8", name);
}

int64_t give_number(Problem& problem, const Case& c) {
  static int64_t last = 0;
  constexpr int64_t kKept = 64;  // more than a case has problems
  numbered().emplace(++last, Numbered{&problem, c});
  if (numbered().erase(last - kKept) > 0) ask_python(0, "forget", last - kKept, nullptr, nullptr);
  return last;
}

int64_t number_of(const Problem& problem) {
  for (auto one = numbered().rbegin(); one != numbered().rend(); ++one) {
    if (one->second.problem == &problem) return one->first;  // the last that had this address
  }
  throw Error(Exit::internal, "a problem that Python does not know");
}

Problem& problem_of(int64_t number) {
  const auto known = numbered().find(number);
  if (known == numbered().end()) throw Error(Exit::internal, "a problem that is no more");
  return *known->second.problem;
}

json describe_tensor(Tensor& tensor) {
  return {{"name", tensor.name()},
          {"role", name_of(tensor.role())},
          {"dtype", name_of(tensor.dtype())},
          {"shape", tensor.shape()},
          {"data", reinterpret_cast<uintptr_t>(tensor.data())}};
}

json describe_problem(int64_t number) {
  Problem& problem = problem_of(number);
  json tensors = json::array();
  for (Tensor* tensor : problem.tensors()) tensors.push_back(describe_tensor(*tensor));
  const Device& device = problem.device();
  return {{"params", numbered().at(number).spec.params},
          {"backend", name_of(device.facts().backend)},
          {"stream", reinterpret_cast<uintptr_t>(device.stream())},
          {"tensors", std::move(tensors)}};
}

PythonProblem::PythonProblem(Device& device, const Case& c, int64_t op)
    : Problem(device), op_(op), case_(c) {
  const int64_t number = give_number(*this, c);
  const json stated = ask_python(op, "tensors", number, nullptr, c.params);
  const uint64_t seed = seed_of(c);
  uint64_t stream = 0;
  for (const json& tensor : stated.at("tensors")) add_tensor(tensor, seed, ++stream);
  cost_ = cost_of(stated.at("cost"));
  stated.at("corruptions").get_to(corruptions_);
  ask_python(op, "fill", number, nullptr, {{"params", c.params}, {"seed", seed}, {"all", true}});
  for (Filled& filled : filled_) {
    filled.first.resize(filled.tensor->bytes());
    device.download(filled.first.data(), filled.tensor->data(), filled.first.size());
  }
  find_truth();
}

bool PythonProblem::redraw(uint64_t change) {
  for (Expected& output : outputs_) output.truths.turn(change, output.truth);
  if (filled_.empty()) return false;
  if (change == 0) {  // a function may draw otherwise than by the generator that it is given
    for (const Filled& filled : filled_) {
      device().upload(filled.tensor->data(), filled.first.data(), filled.first.size());
    }
    return true;
  }
  const uint64_t seed = mix64(seed_of(case_) ^ change) >> 1;
  ask_python(op_, "fill", number_of(*this), nullptr,
             {{"params", case_.params}, {"seed", seed}, {"all", false}});
  return true;
}

bool PythonProblem::find_truth() {
  if (outputs_.empty() || !outputs_.front().truth.empty()) return true;
  ask_python(op_, "truth", number_of(*this), nullptr, case_.params);
  for (const Expected& output : outputs_) {
    if (output.truth.empty()) throw Error(Exit::internal, output.tensor->name() + " has no truth");
  }
  return true;
}

void PythonProblem::add_tensor(const json& stated, uint64_t seed, uint64_t stream) {
  const Role role = role_of(stated.at("role"));
  const DType dtype = dtype_of(stated.at("dtype"));
  const auto shape = stated.at("shape").get<std::vector<int64_t>>();
  if (shape.empty() || *std::ranges::min_element(shape) < 1) {
    usage_error("tensor {} has the shape ({}); every extent is 1 or more",
                stated.at("name").get<std::string>(), fmt::join(shape, ", "));
  }
  Tensor& tensor = make_tensor(stated.at("name"), role, dtype, shape);
  if (role == Role::output) {
    const Tolerance tolerance = stated.at("tolerance");
    const bool is_decoded = stated.at("decoded");
    if ((is_floating(dtype) || is_decoded) && stated.at("tolerance").is_null()) {
      usage_error("output {} has no tolerance; state Output(..., tolerance=Tolerance(...))",
                  tensor.name());
    }
    if (is_decoded && tolerance.between != Tolerance::kNotStated) {
      usage_error(
          "output {} has values=, so that its own rounding is not known; leave out between=",
          tensor.name());
    }
    outputs_.push_back({&tensor, tolerance, is_decoded});
  } else if (!stated.at("fill").is_null()) {
    tensor.fill_random(fill_of(stated.at("fill"), dtype, seed, stream));
  } else if (role == Role::activation) {
    filled_.push_back({&tensor, {}});
  }
}

Cost PythonProblem::cost_of(const json& stated) const {
  if (!stated.is_null()) return {stated.at(0), stated.at(1), stated.at(2)};
  Cost cost;
  for (const Tensor* tensor : tensors()) {
    const auto bytes = static_cast<double>(tensor->bytes());
    (tensor->role() == Role::output ? cost.write_bytes : cost.read_bytes) += bytes;
  }
  return cost;
}

PythonProblem::Expected& PythonProblem::output_of(const std::string& name, const char* what) {
  for (Expected& output : outputs_) {
    if (output.tensor->name() == name) return output;
  }
  usage_error("there is a {} of '{}', which is not an output", what, name);
}

void PythonProblem::expect(const std::string& output, std::vector<double> truth) {
  Expected& expected = output_of(output, "truth");
  const int64_t size = expected.tensor->size(), rows = size / expected.tensor->shape().back();
  const auto elements = static_cast<int64_t>(truth.size());
  if (expected.is_decoded && (elements == 0 || elements % rows != 0)) {
    usage_error("truth of {} has {} elements, which {} rows do not share evenly", output, elements,
                rows);
  }
  if (!expected.is_decoded && elements != size)
    usage_error("truth of {} has {} elements, the output {}", output, elements, size);
  expected.truth = std::move(truth);
}

void PythonProblem::take_values(const std::string& output, std::vector<float> values) {
  output_of(output, "value").values = std::move(values);
}

/// Its own rounding is not known, so that the limits are all.
Accuracy PythonProblem::compare_decoded(const Expected& output) const {
  const Tensor& tensor = *output.tensor;
  output.values.clear();
  ask_python(op_, "values", number_of(*this), nullptr,
             {{"params", case_.params}, {"output", tensor.name()}});
  if (output.values.size() != output.truth.size()) {
    usage_error("values= of {} returns {} elements, and its truth has {}", tensor.name(),
                output.values.size(), output.truth.size());
  }
  const int64_t rows = tensor.size() / tensor.shape().back();
  return compare_floats(tensor.name(), output.values, output.truth,
                        static_cast<int64_t>(output.truth.size()) / rows,
                        ceilings(output.tolerance), kFp32);
}

Checked PythonProblem::check() const {
  Checked checked;
  for (const Expected& output : outputs_) {
    const Tensor& tensor = *output.tensor;
    std::vector<std::byte> bytes(tensor.bytes());
    device().download(bytes.data(), tensor.data(), bytes.size());
    checked.hash = hash_bytes(bytes.data(), bytes.size(), checked.hash);
    if (output.is_decoded) {
      checked.accuracy.push_back(compare_decoded(output));
      continue;
    }
    const auto size = static_cast<size_t>(tensor.size());
    if (is_floating(tensor.dtype())) {
      std::vector<float> values(size);
      for (size_t i = 0; i < size; ++i) {
        values[i] = read_float(tensor.dtype(), bytes.data(), static_cast<int64_t>(i));
      }
      checked.accuracy.push_back(compare_floats(tensor.name(), values, output.truth,
                                                tensor.shape().back(), ceilings(output.tolerance),
                                                float_type(tensor.dtype())));
      continue;
    }
    std::vector<int32_t> values(size);
    for (size_t i = 0; i < size; ++i) {
      values[i] = tensor.dtype() == DType::i32 ? reinterpret_cast<const int32_t*>(bytes.data())[i]
                                               : std::to_integer<int32_t>(bytes[i]);
    }
    const std::vector<int32_t> truth(output.truth.begin(), output.truth.end());
    checked.accuracy.push_back(compare_exact(tensor.name(), values, truth));
  }
  return checked;
}

Corruption PythonProblem::corruption(const char* name) {
  if (std::ranges::count(corruptions_, name) == 0) {
    return Corruption::not_applicable("the operator states none");
  }
  return Corruption([this, name] { ask_python(op_, "corrupt", number_of(*this), nullptr, name); });
}

Corruptions PythonProblem::corruptions() {
  return {.experts_swapped = corruption("experts_swapped"),
          .token_dropped = corruption("token_dropped"),
          .scales_transposed = corruption("scales_transposed")};
}

}  // namespace moegate
