// SPDX-License-Identifier: Apache-2.0
#include "harness/store/result_walk.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/values/run.h"

namespace moegate {
namespace {

// The first columns of the statement; those of Result follow, of which the variant is the first.
constexpr int kResultId = 0, kCaseId = 1, kVerificationId = 2, kChecksum = 3, kVerifiedChecksum = 4,
              kEnqueue = 5, kVariant = 6;

/// SQL of the value of kEnqueueMetric; few stores have it, and a look for what is not there costs as much
/// as one for what is.
std::string enqueue_sql(Database& db) {
  Statement q(db, "SELECT metric_id FROM metric_name WHERE name = ?1");
  q.bind(kEnqueueMetric);
  std::vector<int64_t> ids;  // one for each unit
  while (q.step()) ids.push_back(q.integer(0));
  if (ids.empty()) return "NULL";
  return fmt::format(
      "(SELECT value FROM metric_value m WHERE m.result_id = r.result_id AND ordinal = -1 AND "
      "metric_id IN ({}) ORDER BY metric_id DESC LIMIT 1)",
      fmt::join(ids, ", "));
}

}  // namespace

ResultWalk::Process::Process(Database& db, const std::string& sql, LeftOut left_out, int64_t the_id,
                             int the_round, std::span<const CaseRange> ranges)
    : q(db, sql), reader(q, left_out), id(the_id), round(the_round), ahead(ranges) {}

bool ResultWalk::Process::step() {
  while (!in_range || !q.step()) {
    in_range = !ahead.empty();
    if (!in_range) return false;
    q.again();
    q.bind(id, ahead.front().first, ahead.front().second);
    ahead = ahead.subspan(1);
  }
  result_id = q.integer(kResultId);
  case_id = q.integer(kCaseId);
  variant = q.view(kVariant);
  return true;
}

ResultWalk::ResultWalk(Database& db, int64_t run, std::span<const CaseRange> ranges,
                       bool for_verdict) {
  const LeftOut left_out = for_verdict ? LeftOut(kUnjudged) : LeftOut();
  const std::string sql = fmt::format(
      "SELECT result_id, case_id, verification_id, checksum, verified_checksum, {} AS enqueue, {} "
      "FROM result r WHERE process_id = ?1 AND case_id BETWEEN ?2 AND ?3 "
      "ORDER BY case_id, r.variant",
      for_verdict ? enqueue_sql(db) : "NULL", columns_of<Result>("r", left_out));
  Statement processes(db, "SELECT process_id, round FROM process WHERE run_id = ?1");
  processes.bind(run);
  while (processes.step()) {
    put(std::make_unique<Process>(db, sql, left_out, processes.integer(0),
                                  static_cast<int>(processes.integer(1)), ranges));
  }
}

void ResultWalk::put(std::unique_ptr<Process> process) {
  if (!process->step()) return;
  heap_.push_back(std::move(process));
  std::ranges::push_heap(heap_, comes_later);
}

bool ResultWalk::next() {
  if (now_) put(std::move(now_));
  if (heap_.empty()) return false;
  std::ranges::pop_heap(heap_, comes_later);
  now_ = std::move(heap_.back());
  heap_.pop_back();
  return true;
}

int64_t ResultWalk::verification_id() const {
  return now_->q.integer(kVerificationId);
}

int64_t ResultWalk::checksum() const {
  return now_->q.integer(kChecksum);
}

int64_t ResultWalk::verified_checksum() const {
  return now_->q.integer(kVerifiedChecksum);
}

void ResultWalk::read(Result& result) const {
  now_->reader.read(result);
  result.metrics.clear();
  if (now_->q.is_null(kEnqueue)) return;
  result.metrics.push_back({.name = kEnqueueMetric, .unit = "ns", .value = now_->q.real(kEnqueue)});
}

}  // namespace moegate
