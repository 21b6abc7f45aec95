// SPDX-License-Identifier: Apache-2.0
#include "harness/values/conditions.h"

#include "harness/base/error.h"

namespace moegate {

Flush parse_flush(const std::string& name) {
  for (const Flush f : {Flush::read, Flush::write, Flush::none}) {
    if (name == name_of(f)) return f;
  }
  usage_error("--flush '{}'; use read, write or none", name);
}

Cache cache_of(const Case& c) {
  return static_cast<Cache>(c.get_choice("cache", {"cold", "warm", "cold-weights"}));
}

LaunchMode launch_of(const Case& c) {
  return static_cast<LaunchMode>(c.get_choice("launch", {"stream", "graph"}));
}

void adapt(Case& c, Backend backend) {
  if (backend == Backend::host) c.params["launch"] = "stream";
}

}  // namespace moegate
