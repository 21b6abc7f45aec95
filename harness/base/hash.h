// SPDX-License-Identifier: Apache-2.0
// A fast hash of bytes, for telling whether two things are the same. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moegate {

/// 64-bit hash of a byte range; pass the previous result as `seed` to continue.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace moegate
