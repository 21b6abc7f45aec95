// SPDX-License-Identifier: Apache-2.0
// Host variants that keep more than they may: what they have seen, where nobody looks, or a clock
// that goes off in another's launch.
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "tests/saboteurs/sabotaged_sum.h"

namespace moegate::sabotaged_sum {
namespace {

void keep_from_the_third_time(SabotagedSum& problem, const Launch& where) {
  struct Kept {
    int seen = 0;
    Bytes output;
  };
  static std::map<uint64_t, Kept> all;
  Kept& kept = all[sparse_hash(input_of(problem))];
  Tensor& out = output_of(problem);
  if (++kept.seen > 3) {
    std::memcpy(out.data(), kept.output.data(), kept.output.size());
    return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // by much, for a busy machine
  honest(problem, where);
  kept.output = bytes_of(out);
}

/// What it verified with it knows; all else it need not compute.
void copy_for_the_unknown(SabotagedSum& problem, const Launch& where) {
  constexpr int kLearns = 64;  // launches
  static std::set<uint64_t> known;
  static int launches = 0;
  const Tensor& in = input_of(problem);
  if (++launches <= kLearns) known.insert(sparse_hash(in));
  if (known.contains(sparse_hash(in))) return honest(problem, where);
  std::memcpy(output_of(problem).data(), in.data(), output_of(problem).bytes());
}

/// Whether nobody wrote a token's first or last word since it was spoilt.
bool looks_spoilt(const uint16_t* row, int hidden) {
  const auto is_spoilt = [](uint16_t bits) { return (bits & 0x7f80) == 0x7f80 || bits == 0x5555; };
  return is_spoilt(row[0]) || is_spoilt(row[hidden - 1]);
}

void compute_spoilt_rows(SabotagedSum& problem, const Launch& where) {
  Tensor& out = output_of(problem);
  const Bytes before = bytes_of(out);
  honest(problem, where);
  const int hidden = problem.shape.hidden;
  const auto row_bytes = static_cast<size_t>(hidden) * sizeof(uint16_t);
  for (int t = 0; t < problem.shape.tokens; ++t) {
    const uint8_t* was = before.data() + static_cast<size_t>(t) * row_bytes;
    if (looks_spoilt(reinterpret_cast<const uint16_t*>(was), hidden)) continue;
    std::memcpy(out.data<uint8_t>() + static_cast<size_t>(t) * row_bytes, was, row_bytes);
  }
}

/// In memory that no library of the C runtime counts.
void map_a_copy(SabotagedSum& problem, const Launch& where) {
  static std::map<const Problem*, void*> copies;
  const Tensor& in = input_of(problem);
  void*& copy = copies[&problem];
  if (copy == nullptr) {
    copy = mmap(nullptr, in.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(copy, in.data(), in.bytes());
  }
  honest(problem, where);
}

void pack_in_a_launch(SabotagedSum& problem, const Launch& where) {
  static int launches = 0;
  if (++launches == 3) problem.packed("plan", 1 << 20, [](Tensor& to) { to.fill(1); });
  honest(problem, where);
}

void leave_an_alarm(SabotagedSum& problem, const Launch& where) {
  alarm(3600);
  honest(problem, where);
}

void leave_a_timer(SabotagedSum& problem, const Launch& where) {
  const itimerval later{{}, {3600, 0}};
  setitimer(ITIMER_PROF, &later, nullptr);
  honest(problem, where);
}

const Kernel<SabotagedSum> third({.name = "keeps_from_the_third_time",
                                  .backend = Backend::host,
                                  .help = "copies the output of inputs that it met three times",
                                  .launch = keep_from_the_third_time,
                                  .expected = {Status::wrong, ""}});
const Kernel<SabotagedSum> unknown({.name = "copies_for_the_unknown",
                                    .backend = Backend::host,
                                    .help = "computes for inputs that it was verified with only",
                                    .launch = copy_for_the_unknown,
                                    .expected = {Status::wrong, "that it never saw"}});
const Kernel<SabotagedSum> spoilt({.name = "computes_spoilt_rows",
                                   .backend = Backend::host,
                                   .help = "leaves rows whose first and last element look right",
                                   .launch = compute_spoilt_rows,
                                   .expected = {Status::wrong, "in timed launches"}});
const Kernel<SabotagedSum> maps({.name = "maps_its_operands",
                                 .backend = Backend::host,
                                 .help = "keeps a private copy of its input in mapped memory",
                                 .launch = map_a_copy,
                                 .unsupported = no_sanitizer,
                                 .expected = {Status::wrong, "of its own from launch to launch"}});
const Kernel<SabotagedSum> packs({.name = "packs_in_a_launch",
                                  .backend = Backend::host,
                                  .help = "has the harness keep a tensor for its third launch",
                                  .launch = pack_in_a_launch,
                                  .expected = {Status::wrong, "packs 'plan' in a launch"}});
const Kernel<SabotagedSum> alarms({.name = "leaves_an_alarm",
                                   .backend = Backend::host,
                                   .help = "leaves an alarm that ends whoever runs then",
                                   .launch = leave_an_alarm,
                                   .expected = {Status::wrong, "timer"}});
const Kernel<SabotagedSum> timers({.name = "leaves_a_timer",
                                   .backend = Backend::host,
                                   .help = "leaves a profiling timer that interrupts the others",
                                   .launch = leave_a_timer,
                                   .expected = {Status::wrong, "timer"}});

}  // namespace
}  // namespace moegate::sabotaged_sum
