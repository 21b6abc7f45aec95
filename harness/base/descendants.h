// SPDX-License-Identifier: Apache-2.0
// Processes that a child started and left behind.
#pragma once

#include <sys/types.h>

#include <set>

namespace moegate {

/// From now on, orphans among this process's descendants become its children instead of init's.
/// Lasts as long as the process.
void adopt_orphans();

/// The processes whose parent is this one, ended and not yet waited for included; empty where /proc
/// is not there.
std::set<pid_t> children();

/// Kills and waits for every child that is not in `spared`, and what those leave behind in turn.
void end_children_but(const std::set<pid_t>& spared);

}  // namespace moegate
