// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/author.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace moegate {

std::string author() {
  const std::unique_ptr<FILE, int (*)(FILE*)> git(popen("git config user.name 2>/dev/null", "r"),
                                                  pclose);
  std::array<char, 256> line{};
  std::string name = git && fgets(line.data(), line.size(), git.get()) ? line.data() : "";
  while (!name.empty() && name.back() == '\n') name.pop_back();
  if (!name.empty()) return name;
  const char* user = std::getenv("USER");
  return user ? user : "unknown";
}

}  // namespace moegate
