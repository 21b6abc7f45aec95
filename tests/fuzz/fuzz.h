// SPDX-License-Identifier: Apache-2.0
// Fuzz targets: each gives any bytes to something that reads what this program did not write, and
// says what must hold of it then.
#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace moegate::fuzz {

/// What must hold did not.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Finding(what);
}

/// Whether `read` comes to its end, rather than refuse with an Error of one of these exit codes.
/// Whatever else it throws is a finding.
template <class Read>
bool accepted(std::initializer_list<Exit> refusals, Read&& read) {
  try {
    read();
    return true;
  } catch (const Error& e) {
    if (std::ranges::count(refusals, e.code()) == 0) throw;
    require(!std::string_view(e.what()).empty(), "a refusal without a reason");
    return false;
  }
}

/// A file in this process's own folder, which goes with the process.
std::filesystem::path own_file(const std::string& name);
/// The same with this content.
std::filesystem::path write_own_file(const std::string& name, std::string_view content);

/// Throws Finding, or anything that the code under test should not throw.
using Target = void (*)(std::string_view bytes);

void baseline(std::string_view bytes);
void cubin(std::string_view bytes);
void flags(std::string_view bytes);
void ledger(std::string_view bytes);
void npy(std::string_view bytes);
void options(std::string_view bytes);
void reply(std::string_view bytes);
void request(std::string_view bytes);
void resources(std::string_view bytes);
void store(std::string_view bytes);
void suite(std::string_view bytes);
void text(std::string_view bytes);
void tiles(std::string_view bytes);
void waivers(std::string_view bytes);

struct NamedTarget {
  const char* name;  // of the folder in corpus/
  Target run;
};
inline constexpr NamedTarget kTargets[] = {
    {"baseline", baseline}, {"cubin", cubin},     {"flags", flags},
    {"ledger", ledger},     {"npy", npy},         {"options", options},
    {"reply", reply},       {"request", request}, {"resources", resources},
    {"store", store},       {"suite", suite},     {"text", text},
    {"tiles", tiles},       {"waivers", waivers},
};

}  // namespace moegate::fuzz
