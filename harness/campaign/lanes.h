// SPDX-License-Identifier: Apache-2.0
// The devices of a run and the workers on them. Each device is a lane. With one device nothing here
// makes a thread. With several, each lane has a thread that talks to its worker; only while it
// waits for it do the others get their turn, so that what they share, the store above all, needs no
// other care: there is one writer at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/subprocess.h"
#include "harness/campaign/plan.h"
#include "harness/worker/worker.h"

namespace boost::asio {
class thread_pool;
}

namespace moegate {

// Deals the cases of a round out to the devices of a run, which are its lanes. A case stays with
// the lane that first measured it, so that all its variants, all its processes, and both sides of a
// comparison ran on one device. Pure: no threads, no clocks.

class Dealer {
 public:
  explicit Dealer(size_t lanes) : queues_(lanes), lost_(lanes) {}

  /// The cases of a round, in their order. What was left of the round before is forgotten.
  void begin(std::vector<PlannedCase> cases);
  /// The next case of a lane: its own; then those whose home it is, which their keys decide, so
  /// that most cases meet the same GPU night after night; then what other lanes have not come to.
  std::optional<PlannedCase> next(size_t lane);
  /// Something of the case was measured on this lane, where it stays from now on.
  void settle(const std::string& key, size_t lane) { owners_[key] = lane; }
  /// Nothing was: another lane may have it. The opposite of next().
  void put_back(PlannedCase planned, size_t lane);
  /// The lane's device is gone. What was measured there is not finished elsewhere.
  void lose(size_t lane) { lost_[lane] = true; }

  size_t lanes() const { return queues_.size(); }
  bool is_lost(size_t lane) const { return lost_[lane]; }
  size_t left() const { return static_cast<size_t>(std::ranges::count(lost_, false)); }
  /// Whether a lane that is not lost could be given a case of this round.
  bool any() const;
  /// Whether a case of this round is left, for whomever.
  bool leaves_some() const;
  /// The lane that a case stays with; 0 where it has none yet.
  size_t lane_of(const std::string& key) const;

 private:
  struct Waiting {
    PlannedCase planned;
    std::string key;
  };
  bool is_free(const Waiting& waiting) const { return !owners_.contains(waiting.key); }
  size_t home_of(const std::string& key) const;
  std::optional<PlannedCase> steal();

  std::vector<std::deque<Waiting>> queues_;  // by lane
  std::vector<bool> lost_;
  std::map<std::string, size_t> owners_;  // by key
};

/// Which of several threads goes on: the one that has locked it.
class Turn {
 public:
  void lock();
  void unlock();

  /// While it lives, it is the others' turn, if it was this thread's. Without a turn it is nothing.
  class Others {
   public:
    explicit Others(Turn* turn) : turn_(turn != nullptr && turn->is_mine() ? turn : nullptr) {
      if (turn_ != nullptr) turn_->unlock();
    }
    ~Others() {
      if (turn_ != nullptr) turn_->lock();
    }
    Others(const Others&) = delete;
    Others& operator=(const Others&) = delete;

   private:
    Turn* const turn_;
  };

 private:
  bool is_mine() const { return holder_ == std::this_thread::get_id(); }

  std::mutex mutex_;
  std::atomic<std::thread::id> holder_{};
};

/// A worker that is started when it is needed: at first, after it died, and after it was retired.
/// Others have their turn whenever it is waited for, its end included.
class WorkerSeat {
 public:
  /// `turn`: of several lanes; else null.
  WorkerSeat(WorkerSource& source, const WorkerOptions& options, Turn* turn)
      : source_(&source), options_(options), turn_(turn) {}
  /// Only the main thread calls the worker itself; a lane calls run().
  Worker& worker() {
    if (!worker_ || !worker_->alive()) {
      const Turn::Others others(turn_);
      worker_.reset();  // frees the device before the next one opens it
      worker_ = source_->start(options_);
    }
    return *worker_;
  }
  Result run(const Request& request, const RowTime& time, CaseData& data) {
    Worker& ready = worker();
    const Turn::Others others(turn_);
    return ready.run(request, time, data);
  }
  /// The next use gets a fresh process.
  void retire() {
    const Turn::Others others(turn_);
    worker_.reset();
  }
  /// What the worker tells of itself; an empty answer where there is no worker to ask.
  template <class Answer>
  Answer ask(Answer (Worker::*question)()) {
    const Turn::Others others(turn_);
    return worker_ ? (*worker_.*question)() : Answer();
  }
  const std::string& device() const { return options_.device; }

 private:
  WorkerSource* source_;
  WorkerOptions options_;
  Turn* turn_;
  std::unique_ptr<Worker> worker_;
};

class Lanes {
 public:
  /// Both sides of a comparison share a dealer. Throws Error(usage) as devices_of() does.
  Lanes(WorkerSource& source, const WorkerOptions& options, std::shared_ptr<Dealer> dealer = {});

  /// Starts a worker on every device. Throws what one of them died of, and Error(usage,
  /// environment) for devices that do not compare: another class, or another timer.
  void open();

  size_t size() const { return seats_.size(); }
  bool several() const { return size() > 1; }
  WorkerSeat& seat(size_t lane) { return seats_[lane]; }
  /// The next use of any device gets a fresh process.
  void retire() {
    for (WorkerSeat& seat : seats_) seat.retire();
  }
  Dealer& dealer() const { return *dealer_; }
  const std::shared_ptr<Dealer>& shared_dealer() const { return dealer_; }
  /// By number; empty for one device, which needs none.
  const std::map<int, std::string>& uuids() const { return uuids_; }

  /// Has every lane that is not lost do its work, all at once. An Error of one ends it when the
  /// others have seen that going_on() is false.
  void each(const std::function<void(size_t lane)>& work);
  /// False once a lane has failed or the user interrupted.
  bool going_on() const { return !*failed_ && !InterruptGuard::interrupted(); }

 private:
  std::shared_ptr<Dealer> dealer_;
  std::map<int, std::string> uuids_;
  std::unique_ptr<std::atomic<bool>> failed_ = std::make_unique<std::atomic<bool>>(false);
  // Of several lanes; the workers in the seats end before them. Seats point to the turn, which
  // stays where it is when lanes are moved. Each pool is one thread: a worker dies with the thread
  // that started it (PR_SET_PDEATHSIG), so a lane's has to last as long as the lane.
  std::unique_ptr<Turn> turn_;
  std::vector<std::shared_ptr<boost::asio::thread_pool>> threads_;
  std::vector<WorkerSeat> seats_;
};

}  // namespace moegate
