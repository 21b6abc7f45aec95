// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/devices.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/hash.h"

namespace moegate {
namespace {

constexpr std::string_view kGpu = "cuda:";

/// "cuda:1" of "cuda:1", "1" and "01".
std::string numbered_gpu(std::string_view name, const std::string& spec) {
  const std::string_view digits = name.starts_with(kGpu) ? name.substr(kGpu.size()) : name;
  constexpr size_t kMostDigits = 3;
  const bool number = !digits.empty() && digits.size() <= kMostDigits &&
                      digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number) {
    usage_error(
        "--device {}: a run on several devices needs numbered GPUs, and '{}' is none; write "
        "cuda:0,1, or name one device",
        spec, name);
  }
  return fmt::format("{}{}", kGpu, std::stoi(std::string(digits)));
}

}  // namespace

std::vector<std::string> devices_of(const std::string& spec) {
  if (spec.find(',') == std::string::npos) return {spec};
  std::vector<std::string> devices;
  for (size_t from = 0; from <= spec.size();) {
    const size_t comma = std::min(spec.find(',', from), spec.size());
    const std::string gpu = numbered_gpu(std::string_view(spec).substr(from, comma - from), spec);
    if (std::ranges::count(devices, gpu) > 0) {
      usage_error("--device {}: names {} twice; name each GPU once", spec, gpu);
    }
    devices.push_back(gpu);
    from = comma + 1;
  }
  return devices;
}

std::string device_list(const std::vector<std::string>& devices) {
  std::string list;
  for (const std::string& device : devices) {
    list += list.empty() ? device : "," + device.substr(kGpu.size());
  }
  return list;
}

int gpu_number(const std::string& device) {
  return std::stoi(device.substr(kGpu.size()));
}

size_t Dealer::home_of(const std::string& key) const {
  return hash_bytes(key.data(), key.size()) % lanes();
}

void Dealer::begin(std::vector<PlannedCase> cases) {
  for (auto& queue : queues_) queue.clear();
  for (PlannedCase& planned : cases) {
    std::string key = planned.spec.key();
    const auto owner = owners_.find(key);
    const size_t lane = owner == owners_.end() ? home_of(key) : owner->second;
    queues_[lane].push_back({std::move(planned), std::move(key)});
  }
}

std::optional<PlannedCase> Dealer::next(size_t lane) {
  std::deque<Waiting>& own = queues_[lane];
  if (own.empty()) return steal();
  PlannedCase planned = std::move(own.front().planned);
  own.pop_front();
  return planned;
}

/// The last free case of the lane that has most of them.
std::optional<PlannedCase> Dealer::steal() {
  const auto is_free = [this](const Waiting& waiting) { return this->is_free(waiting); };
  const auto most = std::ranges::max_element(
      queues_, {}, [&](const auto& queue) { return std::ranges::count_if(queue, is_free); });
  const auto last = std::find_if(most->rbegin(), most->rend(), is_free);
  if (last == most->rend()) return std::nullopt;
  PlannedCase planned = std::move(last->planned);
  most->erase(std::next(last).base());
  return planned;
}

void Dealer::put_back(PlannedCase planned, size_t lane) {
  std::string key = planned.spec.key();
  queues_[lane].push_front({std::move(planned), std::move(key)});
}

size_t Dealer::left() const {
  return static_cast<size_t>(std::ranges::count(lost_, false));
}

bool Dealer::any() const {
  for (size_t lane = 0; lane < lanes(); ++lane) {
    for (const Waiting& waiting : queues_[lane]) {
      if (!is_lost(lane) || (is_free(waiting) && left() > 0)) return true;
    }
  }
  return false;
}

bool Dealer::leaves_some() const {
  return std::ranges::any_of(queues_, [](const auto& queue) { return !queue.empty(); });
}

size_t Dealer::lane_of(const std::string& key) const {
  const auto owner = owners_.find(key);
  return owner == owners_.end() ? 0 : owner->second;
}

}  // namespace moegate
