// SPDX-License-Identifier: Apache-2.0
// This file finds numbers that are not to be believed, or that no span shows (below the floor,
// noisier, slow to enqueue), and says what becomes of rows that there was no time for.
#pragma once

#include <map>
#include <string>

#include "harness/judge/gate.h"

namespace moegate {

/// Whether spans below the floor speak against the kernels. On a host the ceilings may have been
/// measured under load, and then they flag honest rows, too: they are believed where they flag at
/// most a tenth of the rows that the same ceilings judge. Those are the base's in paired rounds;
/// else the run's own, of which a quarter may be flagged. Of a GPU they are believed.
bool trust_ceilings(const Sides& head, const std::map<std::string, Expectation>& expected,
                    const Setting& setting);

/// What stored numbers hint at and only a replay decides, in one sentence; empty for nothing: a
/// plain mean that grew against its level by twice fail_at, an error by more than half a bit on
/// other seeds. Nothing where both sides launched the same machine code.
std::string only_a_replay_decides(const Side& base, const Side& head, const Limits& limits);

/// Rows that stay inconclusive because the baseline is of another device become
/// Outcome::environment where nothing was replayed and it is not known how the devices differ: this
/// machine cannot judge them.
void blame_device(GateResult& result, const std::map<std::string, Expectation>& expected,
                  const Replayed& replayed);

/// Fails the rows of paired rounds that the head's processes measured noisily more often than the
/// base's (Fisher's exact test, Holm over the rows): a kernel that disturbs itself would else be
/// left open because of the noise that it makes. A GPU's row that is decided all the same is not
/// failed: there noisy processes are evidence.
void fail_noisier(GateResult& result, const Sides& head,
                  const std::map<std::string, Expectation>& expected, const Setting& setting);

/// Fails rows whose ratio compares with no stored one, and which nobody replayed, where every quiet
/// process took longer than the base's slowest by more than twice what a row must see at least, and
/// its ratio to its own yardstick is off as far: no noise makes that. Absolute times of another day
/// compare this far only, and less where the rows of unchanged code are slower today, too.
void fail_far_slower(GateResult& result, const Sides& head,
                     const std::map<std::string, Expectation>& expected, const Setting& setting);

/// Fails rows whose launches the host takes twice as long to enqueue, and by 5 us more, than the
/// base's: every process of the head's longer than every one of the base's, two at least a side.
/// A span begins with the first kernel; what the host does before it is seen here only, so that
/// rows of the same code are looked at, too. What half of all rows take longer is the machine's,
/// not a row's;
/// a baseline of another device says nothing of this one's host.
void fail_slow_to_enqueue(GateResult& result, const Sides& head,
                          const std::map<std::string, Expectation>& expected);

// What a campaign had no time for. Pure.

/// Says what becomes of the rows in replayed.left_out, lists them in result.left_out, and says how
/// much more time would have decided them. The counts are not updated.
/// - Measured, but not replayed: open, neither shown slower nor shown equal; but slower where the
///   stored numbers say so by more than twice what a row must see at least.
/// - Not measured, though the base has it: missing, because a night that looked at less than it
///   should is no pass. Identical where is_known_by_program().
/// - Not measured, and nobody has it: nothing where a candidate has just begun or has grown,
///   because a later night will come to it; missing where the candidate is stalled.
/// - Left out by an interruption: open, measured or not, and not judged.
void leave_open(GateResult& result, const Sides& head,
                const std::map<std::string, Expectation>& expected, const Replayed& replayed,
                const Limits& limits);

/// Whether a row that was not measured launches what its base did. The program is the same, and a
/// row of the same variant was measured that launched what its own base did, under the same hash as
/// this row's base. A hash that differs from case to case, as on a GPU, therefore shows nothing.
bool is_known_by_program(const CaseId& id, const Sides& head, const Expectation& expected);

}  // namespace moegate
