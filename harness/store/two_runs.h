// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <utility>

#include "harness/store/store.h"

namespace moegate {

/// What `read(store, run)` makes of two runs of a store, which are read at the same time: the first by a
/// connection of its own, so that `read` may change nothing else. Throws what `read` throws.
template <class Read>
auto of_two_runs(Store& store, int64_t first, int64_t second, const Read& read) {
  auto before = std::async(std::launch::async, [&path = store.database().path(), first, &read] {
    Store own = Store::open(path, Store::Mode::read);
    return read(own, first);
  });
  auto after = read(store, second);
  return std::pair(before.get(), std::move(after));
}

}  // namespace moegate
