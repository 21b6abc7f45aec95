// SPDX-License-Identifier: Apache-2.0
// Which exit code wins where several are due, and what a night comes to. Pure.
#pragma once

#include <initializer_list>
#include <optional>

#include "harness/base/error.h"

// Exit::coverage (13) is decided in five places:
// - Tally::exit(), a run: a row crashed, timed out or is bad_timer, or a GPU was lost
// - decide_exit(), a gate: a row is missing (rules.cc says which are), a shard is absent
// - tune_exit(): a task got no configuration; check_exit(), `tune --check`: a row was not measured
// - the ratchet of resources: kernels are missing, new or take less, which has to be blessed
// It is thrown wherever a selection matches nothing at all.
namespace moegate {

/// The code that is to be returned of those that are due, by one order: 130, 30, 1, 2, 21, 12, 11,
/// 10, 13, 24, 20, 22, 0. A latency and an accuracy regression together are Exit::both.
Exit gravest(std::initializer_list<Exit> due);

/// How the phases of a night ended. A phase that did not take place is Exit::ok.
struct NightExits {
  Exit verify = Exit::ok;    // the correctness suite
  Exit controls = Exit::ok;  // outputs spoilt on purpose, which it has to notice
  Exit run = Exit::ok;       // measuring the suites
  Exit canaries = Exit::ok;  // faults of a known size, which the gate has to catch
  std::optional<Exit> gate;  // absent: the night ended before it
};

/// Whether there is something to judge after a run that ended so: wrong outputs, crashes and
/// time-outs are in its rows, and the gate says what they are worth.
bool can_be_judged(Exit run);

/// The night's one exit code. The run's own counts only where the night ended with it.
Exit night_exit(const NightExits& exits);

}  // namespace moegate
