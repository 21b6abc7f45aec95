// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/lanes.h"

#include <boost/asio/packaged_task.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <future>
#include <utility>

#include "harness/base/environment.h"
#include "harness/base/hash.h"
#include "harness/campaign/run_options.h"

namespace moegate {
namespace {

void check_alike(WorkerSeat& first, WorkerSeat& second) {
  const Hello &one = first.worker().hello(), &other = second.worker().hello();
  if (other.device.klass != one.device.klass) {
    usage_error(
        "--device {}: this device has class {}, and {} has class {}, so their times cannot be "
        "compared; measure on each device alone",
        second.device(), other.device.klass, first.device(), one.device.klass);
  }
  if (other.timer != one.timer) {
    throw Error(Exit::environment,
                fmt::format("--device {}: its timer is {}, and the timer of {} is {}{}; give "
                            "--timer event, or measure on one device",
                            second.device(), other.timer, first.device(), one.timer,
                            other.timer_note.empty() ? "" : ": " + other.timer_note));
  }
}

}  // namespace

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

void Turn::lock() {
  mutex_.lock();
  holder_ = std::this_thread::get_id();
}

void Turn::unlock() {
  holder_ = std::thread::id();
  mutex_.unlock();
}

Lanes::Lanes(WorkerSource& source, const WorkerOptions& options, std::shared_ptr<Dealer> dealer)
    : dealer_(std::move(dealer)) {
  const std::vector<std::string> devices = devices_of(options.device);
  if (!dealer_) dealer_ = std::make_shared<Dealer>(devices.size());
  if (devices.size() > 1) turn_ = std::make_unique<Turn>();
  const std::vector<Cpus> shares = cpu_shares(usable_cores(), devices.size());
  for (size_t lane = 0; lane < devices.size(); ++lane) {
    WorkerOptions own = options;
    own.device = devices[lane];
    own.cpus = shares[lane];
    seats_.emplace_back(source, own, turn_.get());
    if (turn_) threads_.push_back(std::make_shared<boost::asio::thread_pool>(1));
  }
}

void Lanes::open() {
  each([this](size_t lane) { seats_[lane].worker(); });
  if (!several()) return;
  for (WorkerSeat& seat : seats_) {
    check_alike(seats_.front(), seat);
    uuids_[gpu_number(seat.device())] = seat.worker().hello().device.uuid;
  }
}

void Lanes::each(const std::function<void(size_t lane)>& work) {
  if (!several()) return work(0);
  std::vector<size_t> live;  // asked before one is at work, which may lose itself
  for (size_t lane = 0; lane < size(); ++lane) {
    if (!dealer_->is_lost(lane)) live.push_back(lane);
  }
  std::vector<std::future<void>> ends;
  for (const size_t lane : live) {
    ends.push_back(
        boost::asio::post(*threads_[lane], std::packaged_task<void()>([this, lane, &work] {
          const std::lock_guard mine(*turn_);
          try {
            work(lane);
          } catch (...) {
            *failed_ = true;
            throw;
          }
        })));
  }
  for (const std::future<void>& end : ends) end.wait();  // all of them, before one throws
  for (std::future<void>& end : ends) end.get();
}

}  // namespace moegate
