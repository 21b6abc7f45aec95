// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moegate {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const Problem& problem, const Tensor& tensor) {
  Bytes bytes(tensor.bytes());
  problem.device().download(bytes.data(), tensor.data(), bytes.size());
  return bytes;
}

void put(Problem& problem, Tensor& tensor, const Bytes& bytes) {
  problem.device().upload(tensor.data(), bytes.data(), bytes.size());
}

std::vector<Tensor*> outputs_of(const Problem& problem) {
  auto tensors = problem.tensors();
  std::erase_if(tensors, [](const Tensor* t) { return t->role() != Role::output; });
  return tensors;
}

/// The mean everywhere, which of all constants a loose tolerance takes most easily. Elements that
/// are not finite do not count: what an output leaves undefined is poison.
void level(Bytes& bytes, DType dtype) {
  const auto n = static_cast<int64_t>(bytes.size() / size_of(dtype));
  if (!is_floating(dtype)) {
    for (size_t i = size_of(dtype); i < bytes.size(); ++i) bytes[i] = bytes[i - size_of(dtype)];
    return;
  }
  double sum = 0, finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float value = read_float(dtype, bytes.data(), i);
    if (!std::isfinite(value)) continue;
    sum += value;
    ++finite;
  }
  const auto mean = static_cast<float>(finite > 0 ? sum / finite : 0);
  for (int64_t i = 0; i < n; ++i) write_float(dtype, bytes.data(), i, mean);
}

void scale(Bytes& bytes, DType dtype, float factor) {
  const auto n = static_cast<int64_t>(bytes.size() / size_of(dtype));
  for (int64_t i = 0; i < n; ++i) {
    write_float(dtype, bytes.data(), i, factor * read_float(dtype, bytes.data(), i));
  }
}

/// Whether an accuracy is of this output: of "out", also in another order ("sorted out"), whole or
/// in a sample ("out (sample)").
bool is_of(const Accuracy& accuracy, const std::string& output) {
  const std::string name = accuracy.output.substr(0, accuracy.output.find(" ("));
  return output == name || output.ends_with(" " + name);
}

/// What an accepted output looked like to the metrics that let it pass.
std::string metrics(const std::vector<Accuracy>& accuracy) {
  std::string text;
  for (const Accuracy& a : accuracy) {
    if (!(a.max_abs > 0)) continue;
    text += fmt::format("{}{}: relative L2 error {:.2e}, worst row {:.2e}, scale {:.6f}",
                        text.empty() ? "" : "; ", a.output, a.rel_l2, a.worst_row, a.scale);
  }
  return text.empty() ? "no output looks different from the truth" : text;
}

class Trial {
 public:
  explicit Trial(Problem& problem) : problem_(problem), hash_(problem.check().hash) {
    for (Tensor* t : outputs_of(problem)) correct_.emplace_back(t, bytes_of(problem, *t));
  }

  /// Spoils, checks and repairs.
  void run(Control control, const std::function<void()>& spoil, bool always_wrong = false) {
    spoil();
    const Checked checked = problem_.check();
    // What a rank without rows leaves undefined cannot be wrong.
    always_wrong = always_wrong && std::ranges::none_of(checked.accuracy, [&](const Accuracy& a) {
                     return a.elements == 0 && is_of(a, control.output);
                   });
    for (const auto& [tensor, bytes] : correct_) put(problem_, *tensor, bytes);
    if (!std::ranges::all_of(checked.accuracy, &Accuracy::ok)) {
      control.outcome = ControlOutcome::rejected;
    } else if (checked.hash == hash_ && !always_wrong) {
      control.outcome = ControlOutcome::unchanged;
    } else {
      control.outcome = ControlOutcome::accepted;
      control.why = metrics(checked.accuracy);
    }
    controls.push_back(std::move(control));
  }

  /// Spoils one output's bytes.
  void run(const std::string& name, Tensor& tensor, const std::function<void(Bytes&)>& spoil,
           bool always_wrong = false) {
    Bytes bytes = bytes_of(problem_, tensor);
    spoil(bytes);
    run(
        {.name = name, .output = tensor.name()}, [&] { put(problem_, tensor, bytes); },
        always_wrong);
  }

  void run(const std::string& name, const Corruption& corruption) {
    if (corruption.apply) return run({.name = name}, corruption.apply);
    controls.push_back({name, "", ControlOutcome::not_applicable, corruption.why_not});
  }

  std::vector<Control> controls;

 private:
  Problem& problem_;
  uint64_t hash_;
  std::vector<std::pair<Tensor*, Bytes>> correct_;
};

}  // namespace

std::vector<Control> negative_controls(Problem& problem, const Problem& other) {
  Trial trial(problem);
  const auto tensors = outputs_of(problem), others = outputs_of(other);
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor& t = *tensors[i];
    if (!problem.writes(t)) continue;
    const auto fill = [](uint8_t byte) {
      return [byte](Bytes& bytes) { std::fill(bytes.begin(), bytes.end(), byte); };
    };
    trial.run("unwritten", t, fill(Tensor::kPoisonByte), /*always_wrong=*/true);
    trial.run("zeros", t, fill(0));
    trial.run("constant", t, [&](Bytes& bytes) { level(bytes, t.dtype()); });
    if (is_floating(t.dtype())) {
      trial.run("scaled by 1.05", t, [&](Bytes& bytes) { scale(bytes, t.dtype(), 1.05f); });
    }
    trial.run("stale", t, [&](Bytes& bytes) { bytes = bytes_of(other, *others[i]); });
  }
  const Corruptions own = problem.corruptions();
  trial.run("experts swapped", own.experts_swapped);
  trial.run("token dropped", own.token_dropped);
  trial.run("scales transposed", own.scales_transposed);
  return std::move(trial.controls);
}

std::string blind_spots(const std::vector<Control>& controls) {
  std::string text;
  for (const Control& c : controls) {
    if (c.outcome != ControlOutcome::accepted) continue;
    text += fmt::format("{}'{}'{} was accepted ({})", text.empty() ? "blind tolerance: " : "; ",
                        c.name, c.output.empty() ? "" : " of " + c.output, c.why);
  }
  return text;
}

}  // namespace moegate
