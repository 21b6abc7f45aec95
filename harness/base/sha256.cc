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

std::vector<std::string> sha256_before(const std::string& text, const std::vector<size_t>& places) {
  SHA256_CTX all;
  SHA256Init(&all);
  std::vector<std::string> hashes;
  size_t done = 0;
  for (const size_t place : places) {
    SHA256Update(&all, reinterpret_cast<const uint8_t*>(text.data()) + done, place - done);
    done = place;
    SHA256_CTX here = all;
    std::array<char, SHA256_DIGEST_STRING_LENGTH> hex{};
    SHA256End(&here, hex.data());
    hashes.emplace_back(hex.data());
  }
  return hashes;
}

}  // namespace moegate
