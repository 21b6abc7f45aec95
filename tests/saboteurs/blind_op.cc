// SPDX-License-Identifier: Apache-2.0
// An operator whose tolerance a suite chooses, so that a control can slip through: y[i] = seed + i.
#include "harness/kernel/check.h"
#include "harness/kernel/kernel.h"

namespace moegate::test {
namespace {

constexpr int64_t kRows = 8, kWidth = 16;

class Blind final : public Problem {
 public:
  static constexpr const char* kOp = "blind";

  static void validate(const Case& c) { c.get_double("tolerance", 0, 1); }
  Blind(Device& device, const Case& c)
      : Problem(device),
        seed(c.get_int("seed", 0, 1 << 24)),
        y(make_tensor("y", Role::output, DType::f32, {kRows, kWidth})),
        tolerance_(c.get_double("tolerance", 0, 1)) {}

  Checked check() const override {
    const auto out = y.download<float>();
    std::vector<double> truth;
    for (size_t i = 0; i < out.size(); ++i) {
      truth.push_back(static_cast<double>(seed) + static_cast<double>(i));
    }
    const Tolerance limits{.rtol = tolerance_,
                           .atol = tolerance_,
                           .rel_l2 = tolerance_,
                           .row = tolerance_,
                           .scale = tolerance_};
    return {{compare_floats("y", out, truth, kWidth, limits, kFp32)},
            hash_bytes(out.data(), out.size() * sizeof(float))};
  }
  Corruptions corruptions() override {
    const auto none = Corruption::not_applicable("a ramp has no experts, tokens or scales");
    return {none, none, none};
  }
  Cost cost() const override { return {.write_bytes = 4.0 * kRows * kWidth}; }

  const int64_t seed;
  Tensor& y;

 private:
  double tolerance_;
};

const Op<Blind> op({.help = "a ramp, compared with the tolerance that the suite chooses",
                    .params = {{"tolerance", "", "every limit, 0 to 1"}},
                    .yardstick = "ramp"});

void launch(Blind& problem, const Launch&) {
  for (int64_t i = 0; i < problem.y.size(); ++i) {
    problem.y.data<float>()[i] = static_cast<float>(problem.seed + i);
  }
}

const Kernel<Blind> kernel(
    {.name = "ramp", .backend = Backend::host, .help = "counts upwards", .launch = launch});

}  // namespace
}  // namespace moegate::test
