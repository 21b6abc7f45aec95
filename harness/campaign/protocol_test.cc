// SPDX-License-Identifier: Apache-2.0
// The numbers of the protocols, here and where they are described: one is not raised without
// the other.
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/campaign/plan.h"
#include "harness/worker/protocol.h"

namespace moegate::test {
namespace {

void expect_says(const std::string& file, const std::string& line) {
  const std::string text = read_file(MOEGATE_SOURCE_DIR "/harness/" + file);
  EXPECT_NE(text.find(line + "\n"), std::string::npos) << file << " does not say: " << line;
}

TEST(Protocols, AreTheOnesThatAreDescribed) {
  expect_says("README.md", "\n## Protocol " + std::to_string(kProtocol));
  expect_says("worker/PROTOCOL.md", "# The worker protocol, version " + std::to_string(kWire));
}

}  // namespace
}  // namespace moegate::test
