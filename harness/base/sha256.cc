// SPDX-License-Identifier: Apache-2.0
#include "harness/base/sha256.h"

#include <sys/types.h>

#include <array>
#include <cstdint>

#include <sha256.h>  // libmd; needs sys/types.h

namespace moegate {

std::string sha256(const std::string& text) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> hex{};
  SHA256Data(reinterpret_cast<const uint8_t*>(text.data()), text.size(), hex.data());
  return hex.data();
}

}  // namespace moegate
