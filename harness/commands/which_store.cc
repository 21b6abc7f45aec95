// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/which_store.h"

#include <filesystem>

#include "harness/base/environment.h"
#include "harness/base/notes.h"

namespace moegate {
namespace {

constexpr const char* kNightsStore = "out/results.sqlite";

bool exists(const char* path) {
  std::error_code ignored;  // what cannot be looked at is not there
  return std::filesystem::exists(path, ignored);
}

}  // namespace

WhichStore new_store() {
  const std::string set = environment("MOEGATE_DB");
  if (!set.empty()) return {set, "MOEGATE_DB"};
  return {kDefaultStore, ""};
}

WhichStore nearest_store() {
  const WhichStore store = new_store();
  const bool night = store.why.empty() && !exists(kDefaultStore) && exists(kNightsStore);
  return night ? WhichStore{kNightsStore, "no results.sqlite here"} : store;
}

std::string announced(const WhichStore& store) {
  if (!store.why.empty()) say("store: {} ({})\n", store.path, store.why);
  return store.path;
}

}  // namespace moegate
