// SPDX-License-Identifier: Apache-2.0
// What kernels from elsewhere are made of: every file that this process loaded or read and that is
// no part of the system, of the interpreter or of the tool, by its content. Where two processes
// agree on all of them, they run the same code of the host.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace moegate {

struct LoadedFile {
  std::string path;  // absolute, links resolved
  std::string as;    // as it was opened, where that is another path
  std::string name;  // in an identity: below the checkout of the kernels, else the path
  std::string
      hash;  // of its content; of what the loader maps without debug information. Empty: gone
};

/// The folder of a file of kernels that others are named by: its git checkout, else its own folder.
std::string root_of(const std::string& file);
/// Files below it are named by their path there, those below several such folders by the longest.
void name_files_below(const std::string& root);
/// What lies below it is never counted: the standard library, the tool's tiles.
void leave_out_files_below(const std::string& folder);
/// Further files, by whoever knows of them; asked whenever the list is. It may return each once.
void ask_for_loaded(std::function<std::vector<std::string>()> modules);

/// Paths of what the loader has mapped; the program's own is empty.
std::vector<std::string> mapped_libraries();

/// Libraries that the process maps, files that it opened while watch_opens() was on, and what
/// ask_for_loaded() added, up to now; by path.
std::vector<LoadedFile> loaded_files();

/// Names and hashes of all of them as one hash, 16 hex digits; empty where one is gone.
std::string hash_of(const std::vector<LoadedFile>& files);

// Which files this process opened for reading. The program defines open(), openat() and fopen()
// itself, so that calls of every library of the process pass through here, an interpreter's among
// them. Not seen are calls of the kernel without the C library, and child processes.

/// From now on opened files are noted, or not; at first they are not.
void watch_opens(bool on);
/// While it lives, they are not.
class UnwatchedOpens {
 public:
  UnwatchedOpens();
  ~UnwatchedOpens();
  UnwatchedOpens(UnwatchedOpens&&) = delete;

 private:
  const bool before_;
};

/// Every file that was opened for reading while that was watched, once, by an absolute path in
/// which links stand as they were used. Not one that this process had made or emptied before it
/// read it: its content is nobody else's.
std::vector<std::string> opened_files();

}  // namespace moegate
