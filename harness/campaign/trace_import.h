// SPDX-License-Identifier: Apache-2.0
// Workloads of FlashInfer-Bench's trace schema as a suite. What a suite cannot say is in the notes, with how often it
// was there.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/trace_recording.h"

namespace moegate {

struct ImportedSuite {
  std::string text;  // of the .suite file; empty without cases
  size_t cases = 0;
  std::map<std::string, std::string> recordings;  // name of a file for replay: -> its bytes
  std::vector<std::string> notes;                 // a line each
};

class TraceImport {
 public:
  /// A file: `.jsonl` has a trace in each line, `.json` a definition, a solution or a trace. Keeps of traces what
  /// differs. Throws Error(usage) naming the path, of a .jsonl also the line, for damaged JSON, a line that is no trace
  /// and a second definition of one name.
  void add(const std::string& path, const std::string& text);

  /// The suite of all that was added. `about`: its first line. `folder`: what it says before the name of a recording.
  /// Throws Error(usage) for more than a suite holds.
  ImportedSuite suite(const std::string& about, const std::string& folder,
                      const TensorSource& tensors) const;

 private:
  struct Definition {
    std::string path;
    nlohmann::json json;
  };
  struct Traces {  // of one definition
    std::vector<TraceWorkload> workloads;
    std::set<std::string> seen;
    FieldCounts fields, statuses;
  };
  void add_document(const std::string& where, const nlohmann::json& document);
  void add_definition(const std::string& where, const nlohmann::json& definition);
  void add_trace(const std::string& where, const nlohmann::json& trace);

  std::map<std::string, Definition> definitions_;
  std::map<std::string, Traces> traces_;  // by definition
  size_t solutions_ = 0, other_documents_ = 0;
};

/// The same of a folder, or of one file: every .jsonl and .json in it, however deep. Throws Error(usage) for what
/// cannot be read, naming the path.
ImportedSuite import_trace_set(const std::string& from, const std::string& about,
                               const std::string& folder);

}  // namespace moegate
