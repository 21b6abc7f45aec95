// SPDX-License-Identifier: Apache-2.0
// Which files this process opened for reading. The program defines open(), openat() and fopen() itself, so
// that calls of every library of the process pass through here, an interpreter's among them. Not seen are
// calls of the kernel without the C library, and child processes.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// From now on opened files are noted, or not; at first they are not.
void watch_opens(bool on);

/// Every file that was opened for reading while that was watched, once, by an absolute path in which
/// links stand as they were used. Not one that this process had made or emptied before it read it:
/// its content is nobody else's.
std::vector<std::string> opened_files();

}  // namespace moegate
