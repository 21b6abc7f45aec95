// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/suite.h"
#include "harness/campaign/trace_import.h"
#include "harness/kernel/registry.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

/// Documents, one in a line; behind an empty line the file of tensors that every workload means.
void trace(std::string_view bytes) {
  const size_t end = std::min(bytes.find("\n\n"), bytes.size());
  const std::string tensors(bytes.substr(std::min(end + 2, bytes.size())));
  TraceImport all;
  ImportedSuite imported;
  const bool taken = accepted({Exit::usage}, [&] {
    for (std::string_view rest = bytes.substr(0, end); !rest.empty();) {
      const size_t line = std::min(rest.find('\n'), rest.size());
      all.add("input.json", std::string(rest.substr(0, line)));
      rest.remove_prefix(std::min(line + 1, rest.size()));
    }
    imported = all.suite("about", own_file("x").parent_path().string(),
                         [&](const std::string& path, const std::string& key) {
                           return std::optional(read_safetensors(path, tensors, key));
                         });
  });
  if (!taken || imported.cases == 0) return;
  for (const auto& [name, content] : imported.recordings) write_own_file(name, content);
  const std::string path = write_own_file("traces.suite", imported.text).string();
  static const auto operators = describe_operators(own_registry(), Backend::host);
  std::vector<Case> cases;  // of own traces any operator and parameter, which a suite may refuse
  if (!accepted({Exit::usage}, [&] { cases = load_suite(path, {}, operators); })) return;
  require(cases.size() == imported.cases, "another number of cases than the suite has");
}

}  // namespace moegate::fuzz
