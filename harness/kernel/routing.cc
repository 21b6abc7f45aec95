// SPDX-License-Identifier: Apache-2.0
// Every score stays within about [-8, 8]: beyond that a sigmoid in float saturates, and experts
// that the assignment tells apart would tie.
#include "harness/kernel/routing.h"

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/kernel/recorded_routing.h"

namespace moegate {
namespace {

constexpr const char* kAccepted =
    "use uniform, balanced, zipf:S (S in [0, 10]), hot:N:F (N experts, fraction F of the tokens), "
    "replay:FILE.npy, replay:FOLDER/, load:FILE.npy or shared:ROUTING";

// Random streams of this file; an operator's own inputs count from 0, so these start far away.
constexpr uint64_t kNoiseStream = 0x726f75746500;  // "route"
constexpr uint64_t kRankStream = kNoiseStream + 1;
constexpr uint64_t kHotStream = kNoiseStream + 2;
constexpr uint64_t kSlotStream = kNoiseStream + 3;

[[noreturn]] void bad_spec(const std::string& spec, const std::string& what) {
  usage_error("routing '{}': {}; {}", spec, what, kAccepted);
}

/// "hot:8:0.5" -> {"hot", "8", "0.5"}; replay and load keep colons in their path, shared in its
/// routing.
std::vector<std::string> split_spec(const std::string& spec) {
  for (const std::string name : {"replay", "load", "shared"}) {
    if (spec.starts_with(name + ":")) return {name, spec.substr(name.size() + 1)};
  }
  std::vector<std::string> parts;
  return boost::split(parts, spec, boost::is_any_of(":"));
}

double number_in(const std::string& spec, const std::string& text, double low, double high) {
  const auto value = parse_number<double>(text);
  const bool inside = value && *value >= low && *value <= high;
  if (!inside) bad_spec(spec, fmt::format("'{}' is not a number in [{}, {}]", text, low, high));
  return *value;
}

/// One spec applied to one shape.
class Router {
 public:
  Router(const std::string& spec, const RoutingShape& shape, uint64_t seed)
      : spec_(spec), shape_(shape), seed_(seed), scores_(count(shape.tokens, shape.experts)) {}

  std::vector<double> make() {
    const std::vector<std::string> parts = split_spec(spec_);
    const std::string& name = parts[0];
    if (name == "uniform" && parts.size() == 1) {
      noise([](int) { return 0.0; });
    } else if (name == "balanced" && parts.size() == 1) {
      balanced();
    } else if (name == "zipf" && parts.size() == 2) {
      zipf(number_in(spec_, parts[1], 0, 10));
    } else if (name == "hot" && parts.size() == 3) {
      const double experts = number_in(spec_, parts[1], 1, shape_.experts);
      if (experts != std::floor(experts)) {
        bad_spec(spec_, fmt::format("'{}' is not a whole number of experts", parts[1]));
      }
      hot(static_cast<int>(experts), number_in(spec_, parts[2], 0, 1));
    } else if (name == "replay" && parts.size() == 2 && !parts[1].empty()) {
      replay(parts[1]);
    } else if (name == "load" && parts.size() == 2 && !parts[1].empty()) {
      load(parts[1]);
    } else if (name == "shared" && parts.size() == 2) {
      shared(parts[1]);
    } else {
      bad_spec(spec_, "it is no routing");
    }
    return std::move(scores_);
  }

 private:
  static size_t count(int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); }
  double& score(int token, int expert) {
    return scores_[count(token, shape_.experts) + static_cast<size_t>(expert)];
  }

  /// Number of a token in the row of all; what is drawn depends on it alone.
  int64_t number(int token) const { return shape_.first + token; }
  uint64_t drawn_at(int token, int width, int i) const {
    return static_cast<uint64_t>(number(token)) * static_cast<uint64_t>(width) +
           static_cast<uint64_t>(i);
  }

  /// Squashed to (-8, 8), which keeps the order and so the assignment.
  void noise(const std::function<double(int)>& log_weight) {
    for (int t = 0; t < shape_.tokens; ++t) {
      for (int e = 0; e < shape_.experts; ++e) {
        const uint64_t i = drawn_at(t, shape_.experts, e);
        const double x = log_weight(e) + random_gumbel(seed_, kNoiseStream, i);
        score(t, e) = 8 * std::tanh(x / 8);
      }
    }
  }

  /// The experts in an order chosen by the seed.
  std::vector<int> permutation(uint64_t stream) const {
    std::vector<int> order(static_cast<size_t>(shape_.experts));
    std::iota(order.begin(), order.end(), 0);
    const auto bits = [&](int e) { return random_bits(seed_, stream, static_cast<uint64_t>(e)); };
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return std::pair(bits(a), a) < std::pair(bits(b), b); });
    return order;
  }

  void zipf(double exponent) {
    const std::vector<int> order = permutation(kRankStream);
    std::vector<double> log_weights(order.size());
    for (size_t rank = 0; rank < order.size(); ++rank) {
      log_weights[static_cast<size_t>(order[rank])] =
          -exponent * std::log(static_cast<double>(rank + 1));
    }
    noise([&](int e) { return log_weights[static_cast<size_t>(e)]; });
  }

  /// Noise is halved to (-4, 4): 8 more then always wins. A hot token's row is lowered by 4, which
  /// changes neither its order nor its softmax, so that it stays within [-8, 8].
  void hot(int experts, double fraction) {
    noise([](int) { return 0.0; });
    std::vector<double> added(static_cast<size_t>(shape_.experts), -4);
    const std::vector<int> order = permutation(kHotStream);
    for (int i = 0; i < experts; ++i) added[static_cast<size_t>(order[static_cast<size_t>(i)])] = 4;
    for (int t = 0; t < shape_.tokens; ++t) {
      // Spread evenly over the tokens, floor(tokens * fraction) of them.
      const auto n = static_cast<double>(number(t));
      const bool is_hot = std::floor((n + 1) * fraction) > std::floor(n * fraction);
      for (int e = 0; e < shape_.experts; ++e) {
        score(t, e) = score(t, e) / 2 + (is_hot ? added[static_cast<size_t>(e)] : 0);
      }
    }
  }

  /// Scores whose top-k is exactly `ids`, in that order: slots descend from 3 to -1 with gaps of at
  /// least half a step (2/k: 8 ulps of bf16 at k = 16), the others lie in (-6, -3). The slots are
  /// not spread further because sigmoid flattens there.
  void assign(int token, const std::vector<int>& ids) {
    for (int e = 0; e < shape_.experts; ++e) {
      const uint64_t i = drawn_at(token, shape_.experts, e);
      score(token, e) = -3 - 3 * random_uniform(seed_, kNoiseStream, i);
    }
    const double step = 4.0 / shape_.topk;
    for (int slot = 0; slot < shape_.topk; ++slot) {
      const uint64_t i = drawn_at(token, shape_.topk, slot);
      const double jitter = (random_uniform(seed_, kSlotStream, i) - 0.5) / 2;
      score(token, ids[static_cast<size_t>(slot)]) = 3 - step * (slot + 0.25 + jitter);
    }
  }

  void balanced() {
    // floor, not ceil: (k-1) * floor(E/k) < E keeps a token's experts distinct for every E and k.
    const int stride = shape_.experts / shape_.topk;
    std::vector<int> ids(static_cast<size_t>(shape_.topk));
    for (int t = 0; t < shape_.tokens; ++t) {
      for (int i = 0; i < shape_.topk; ++i) {
        const auto start = static_cast<int>(number(t) % shape_.experts);
        ids[static_cast<size_t>(i)] = (start + i * stride) % shape_.experts;
      }
      assign(t, ids);
    }
  }

  void replay(const std::string& path) {
    if (shape_.first != 0) bad_spec(spec_, "a recorded token has its place in its batch alone");
    const auto ids = recorded_ids(path, shape_, seed_);
    for (int t = 0; t < shape_.tokens; ++t) assign(t, ids[static_cast<size_t>(t)]);
  }

  void load(const std::string& path) {
    const std::vector<double> log_weights = recorded_loads(path, shape_);
    noise([&](int e) { return log_weights[static_cast<size_t>(e)]; });
  }

  /// Scores of the others are halved to [-4, 4], which keeps their order and, in floating point,
  /// how well they are told apart; the shared expert is above them.
  void shared(const std::string& routing) {
    if (shape_.topk < 2) bad_spec(spec_, fmt::format("topk = {} leaves no slot", shape_.topk));
    const RoutingShape others = {shape_.tokens, shape_.experts - 1, shape_.topk - 1, shape_.first};
    const std::vector<double> scores = Router(routing, others, seed_).make();
    for (int t = 0; t < shape_.tokens; ++t) {
      for (int e = 0; e < others.experts; ++e) {
        score(t, e) = scores[count(t, others.experts) + static_cast<size_t>(e)] / 2;
      }
      score(t, others.experts) = 6;
    }
  }

  const std::string& spec_;
  const RoutingShape shape_;
  const uint64_t seed_;
  std::vector<double> scores_;
};

}  // namespace

std::vector<double> routing_scores(const std::string& spec, const RoutingShape& shape,
                                   uint64_t seed) {
  if (shape.tokens < 1 || shape.topk < 1 || shape.topk > shape.experts) {
    usage_error(
        "routing '{}': tokens = {}, experts = {}, topk = {} is no shape; use tokens >= 1 and "
        "1 <= topk <= experts",
        spec, shape.tokens, shape.experts, shape.topk);
  }
  return Router(spec, shape, seed).make();
}

std::vector<int32_t> routed_experts(const std::string& spec, const RoutingShape& shape,
                                    uint64_t seed) {
  const auto scores = routing_scores(spec, shape, seed);
  std::vector<int32_t> ids, order(static_cast<size_t>(shape.experts));
  for (int t = 0; t < shape.tokens; ++t) {
    const double* row = scores.data() + static_cast<std::ptrdiff_t>(t) * shape.experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + shape.topk, order.end(),
                      [&](int32_t a, int32_t b) { return row[a] > row[b]; });
    ids.insert(ids.end(), order.begin(), order.begin() + shape.topk);
  }
  return ids;
}

Skew skew_of(std::span<const int32_t> ids, int experts) {
  std::vector<int64_t> loads(static_cast<size_t>(experts));
  int64_t rows = 0;
  for (const int32_t id : ids) {
    if (id < 0 || id >= experts) continue;
    ++loads[static_cast<size_t>(id)];
    ++rows;
  }
  Skew skew;
  skew.active_experts = experts - static_cast<int>(std::ranges::count(loads, 0));
  if (rows == 0) return skew;
  const auto largest = static_cast<double>(*std::max_element(loads.begin(), loads.end()));
  skew.max_over_mean = largest * experts / static_cast<double>(rows);
  return skew;
}

}  // namespace moegate
