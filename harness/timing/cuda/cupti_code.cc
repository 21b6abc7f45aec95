// SPDX-License-Identifier: Apache-2.0
// CUPTI's resource callbacks behind CuptiCode. With lazy loading a module comes with the first
// launch of one of its kernels, which is a verification: no timed launch ever waits for the
// hashing.
#include "harness/timing/cuda/cupti_code.h"

#include <cupti.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "harness/kernel/kernel.h"
#include "harness/timing/cuda/cupti_lib.h"
#include "harness/timing/elf_file.h"
#include "harness/timing/timer.h"

namespace moegate {
namespace {

/// Never destroyed: modules may be loaded while the process ends.
struct State : CuptiLib {
  MOEGATE_CUPTI_FUNCTION(cuptiSubscribe)
  MOEGATE_CUPTI_FUNCTION(cuptiUnsubscribe)
  MOEGATE_CUPTI_FUNCTION(cuptiEnableCallback)
  CUpti_SubscriberHandle subscriber = nullptr;
  bool keep_cubins = false;
  std::atomic<bool> for_good{false};

  std::mutex mutex;  // callbacks come from any thread
  std::map<std::string, std::set<uint64_t>> codes;
  std::set<uint64_t> distinct;  // of all names
  std::deque<std::vector<uint8_t>> cubins;
  LoadedModules loaded;
};

/// Asked before state(), which opens CUPTI.
std::atomic<bool> watching{false};

State& state() {
  static State* instance = new State;
  return *instance;
}

void CUPTIAPI module_loaded(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  const auto* module = static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor);
  if (!module || !module->pCubin) return;
  const auto* bytes = reinterpret_cast<const uint8_t*>(module->pCubin);
  State& s = state();
  const auto codes = kernel_codes({bytes, module->cubinSize});
  const std::lock_guard lock(s.mutex);
  ++s.loaded.count;
  s.loaded.bytes += module->cubinSize;
  for (const auto& [name, code] : codes) {
    s.codes[name].insert(code);
    s.distinct.insert(code);
  }
  s.loaded.codes = s.distinct.size();
  if (s.keep_cubins) s.cubins.emplace_back(bytes, bytes + module->cubinSize);
}

}  // namespace

bool CuptiCode::watch(bool keep_cubins) noexcept {
  State& s = state();
  if (s.for_good && watching) return true;
  s.keep_cubins = keep_cubins;
  if (!s.why().empty() ||
      s.cuptiSubscribe(&s.subscriber, module_loaded, nullptr) != CUPTI_SUCCESS) {
    s.subscriber = nullptr;
    return false;
  }
  const CUptiResult enabled = s.cuptiEnableCallback(1, s.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                                    CUPTI_CBID_RESOURCE_MODULE_LOADED);
  watching = enabled == CUPTI_SUCCESS;
  if (!watching) stop();
  return watching;
}

bool CuptiCode::watch_for_good() noexcept {
  state().for_good = watching || watch();
  return watching;
}

void CuptiCode::stop() noexcept {
  State& s = state();
  if (s.for_good) return;
  if (s.subscriber) s.cuptiUnsubscribe(s.subscriber);
  s.subscriber = nullptr;
  watching = false;
}

std::optional<LoadedModules> loaded_modules() {
  if (!watching) return std::nullopt;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.loaded;
}

std::vector<std::span<const uint8_t>> CuptiCode::cubins() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return {s.cubins.begin(), s.cubins.end()};
}

std::optional<uint64_t> CuptiCode::of(const std::string& kernel) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.codes.find(kernel);
  if (found == s.codes.end()) return std::nullopt;
  const std::vector<uint64_t> hashes(found->second.begin(), found->second.end());
  return hash_bytes(hashes.data(), hashes.size() * sizeof(uint64_t));
}

}  // namespace moegate
