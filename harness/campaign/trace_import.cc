// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/json_text.h"
#include "harness/base/text.h"
#include "harness/campaign/trace_document.h"
#include "harness/values/trace_case.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// Limits of suite.cc.
constexpr size_t kLongestSuiteText = size_t{1} << 20, kMostSuiteCases = 100000;

/// Every file of a data set, sorted.
std::vector<fs::path> trace_files_of(const std::string& from) {
  if (is_file(from)) return {from};
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator at(from, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension().string();
    const bool named = extension == ".jsonl" || extension == ".json";
    if (named && is_file(at->path())) files.push_back(at->path());
  }
  if (error) usage_error("'{}' cannot be read: {}; give a folder of traces", from, error.message());
  std::ranges::sort(files);
  return files;
}

std::string plural_of(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string as_list(const FieldCounts& counts, const char* format) {
  constexpr size_t kMostNames = 200;
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    if (names.size() == kMostNames) {
      names.push_back(fmt::format("and {} more", counts.size() - kMostNames));
      break;
    }
    names.push_back(fmt::format(fmt::runtime(format), one_line(valid_utf8(name)), count));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What becomes of each definition's workloads, on its way into a suite.
class ImportSession {
 public:
  ImportSession(const std::string& folder, const TensorSource& tensors)
      : recorder_(folder, tensors) {}

  /// Workloads of one definition, whose traces have `fields`. `json`: null where there is none.
  void take(const std::string& name, const std::vector<TraceWorkload>& workloads,
            const FieldCounts& fields, const nlohmann::json* json) {
    if (is_own_definition(name)) {
      import_own(name, workloads);
      return count_unused(of_traces_, fields, [](const std::string& field) {
        return field == "definition" || field.starts_with("workload.axes.") ||
               field.starts_with("workload.inputs.");
      });
    }
    std::string why = "no .json file beside the traces defines it";
    const auto layer = json ? read_layer(*json, why) : std::nullopt;
    if (!layer) {
      say_of(name, fmt::format("{} left out: {}", plural_of(workloads.size(), "workload"), why));
      return;
    }
    FieldCounts of_definition;
    count_leaves(*json, "", of_definition);
    count_unused(of_definitions_, of_definition,
                 [&](const std::string& field) { return layer->read.contains(field); });
    const auto read = import_layer(*layer, workloads);
    count_unused(of_traces_, fields,
                 [&](const std::string& field) { return read.contains(field); });
  }

  SuiteText& suite() { return suite_; }
  Recorder& recorder() { return recorder_; }
  /// Fields that were not used.
  const FieldCounts& of_definitions() const { return of_definitions_; }
  const FieldCounts& of_traces() const { return of_traces_; }

  /// A line for each thing that was said of a definition, with how often.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [note, count] : said_) {
      notes.push_back(count == 1 ? note : fmt::format("{} ({} times)", note, count));
    }
    return notes;
  }

 private:
  static void count_unused(FieldCounts& unused, const FieldCounts& fields,
                           const std::function<bool(const std::string&)>& is_read) {
    for (const auto& [name, count] : fields) {
      if (!is_read(name)) unused[name] += count;
    }
  }

  /// Of the names that trace_case() makes.
  void import_own(const std::string& definition, const std::vector<TraceWorkload>& workloads) {
    for (const TraceWorkload& workload : workloads) {
      const auto named = case_of_trace(definition, workload.axes);
      const SuiteCase c = named ? SuiteCase{named->op, named->params} : SuiteCase{};
      const std::string fault = named ? fault_of_case(c) : "its name and axes contradict";
      if (fault.empty()) {
        suite_.add(c.op, c);
      } else {
        say_of(definition, fmt::format("a workload is left out: {}", fault));
      }
    }
  }

  /// Returns the fields of the traces that were read.
  std::set<std::string> import_layer(const MoeLayer& layer,
                                     const std::vector<TraceWorkload>& workloads) {
    for (const std::string& lacking : layer.lacking) say_of(layer.name, lacking);
    if (layer.local < layer.experts && !layer.dtype.empty()) {
      say_of(layer.name, fmt::format("a rank with {} of {} experts: the tokens of its products are "
                                     "the rows that reach it",
                                     layer.local, layer.experts));
    }
    std::set<std::string> read = {"definition"};
    for (const TraceWorkload& workload : workloads) {
      const auto tokens = workload.axes.find(layer.tokens_axis);
      if (tokens == workload.axes.end()) {
        say_of(layer.name, "a workload is left out: it lacks axis " + layer.tokens_axis);
        continue;
      }
      read.insert("workload.axes." + layer.tokens_axis);
      import_one(layer, workload, tokens->second, read);
    }
    return read;
  }

  void say_of(const std::string& definition, const std::string& what) {
    ++said_[one_line(valid_utf8(fmt::format("{}: {}", definition, what)))];
  }

  void import_one(const MoeLayer& layer, const TraceWorkload& workload, int64_t tokens,
                  std::set<std::string>& read) {
    std::vector<std::string> faults;
    for (const auto& [name, input] : workload.inputs) {
      if (input.kind == TraceInput::Kind::random) read.insert("workload.inputs." + name + ".type");
    }
    const double scale = recorder_.scale_of(workload, read);
    const LayerRouting routing = recorder_.routing_of(layer, workload, tokens, read, faults);
    for (const SuiteCase& c : cases_of_layer(layer, tokens, scale, routing, faults)) {
      const std::string fault = fault_of_case(c);
      if (fault.empty()) suite_.add(layer.name, c);
      if (!fault.empty()) faults.push_back(fault);
    }
    for (const std::string& fault : faults) say_of(layer.name, fault);
  }

  SuiteText suite_;
  Recorder recorder_;
  std::map<std::string, size_t> said_;
  FieldCounts of_definitions_, of_traces_;
};

}  // namespace

void TraceImport::add(const std::string& path, const std::string& text) {
  if (!path.ends_with(".jsonl")) return add_document(path, parse_json(path, text));
  std::istringstream in(text);
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (trimmed(line).empty()) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    add_trace(where, parse_json(where, line));
  }
}

void TraceImport::add_document(const std::string& where, const nlohmann::json& document) {
  const auto has = [&](const char* name) {
    return document.is_object() && document.contains(name);
  };
  if (has("workload")) {
    add_trace(where, document);
  } else if (has("axes") && has("inputs") && has("outputs")) {
    add_definition(where, document);
  } else {
    ++(has("sources") ? solutions_ : other_documents_);
  }
}

void TraceImport::add_definition(const std::string& where, const nlohmann::json& definition) {
  const auto name = definition.find("name");
  if (name == definition.end() || !name->is_string()) {
    usage_error("{}: is a definition without a name", where);
  }
  const auto [at, is_new] = definitions_.try_emplace(*name, Definition{where, definition});
  if (is_new || at->second.json == definition) return;
  usage_error("{}: defines '{}', which {} defines otherwise; import one of them", where,
              one_line(valid_utf8(*name)), at->second.path);
}

void TraceImport::add_trace(const std::string& where, const nlohmann::json& trace) {
  TraceWorkload workload = read_trace(where, trace);
  Traces& traces = traces_[workload.definition];
  nlohmann::json content = trace["workload"];
  content.erase("uuid");
  const auto text = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (traces.seen.insert(text).second) traces.workloads.push_back(std::move(workload));
  count_leaves(trace, "", traces.fields);
  const auto evaluation = trace.find("evaluation");
  if (evaluation == trace.end() || !evaluation->is_object()) return;
  const auto status = evaluation->find("status");
  const bool named = status != evaluation->end() && status->is_string();
  ++traces.statuses[named ? status->get<std::string>() : "no status"];
}

ImportedSuite TraceImport::suite(const std::string& about, const std::string& folder,
                                 const TensorSource& tensors) const {
  ImportSession session(folder, tensors);
  FieldCounts statuses;
  for (const auto& [name, traces] : traces_) {
    for (const auto& [status, count] : traces.statuses) statuses[status] += count;
    const auto definition = definitions_.find(name);
    session.take(name, traces.workloads, traces.fields,
                 definition == definitions_.end() ? nullptr : &definition->second.json);
  }
  ImportedSuite imported;
  imported.cases = session.suite().cases();
  imported.notes = session.notes();
  const auto list = [&](const std::string& what, const FieldCounts& counts, const char* format) {
    if (!counts.empty()) imported.notes.push_back(what + as_list(counts, format));
  };
  list("results are not imported: ", statuses, "{1} {0}");
  if (solutions_ > 0) imported.notes.push_back(plural_of(solutions_, "solution") + " not imported");
  if (other_documents_ > 0) {
    imported.notes.push_back(plural_of(other_documents_, "other JSON file") + " not read");
  }
  list("of definitions not used: ", session.of_definitions(), "{} ({})");
  list("of traces not used: ", session.of_traces(), "{} ({})");
  if (imported.cases == 0) return imported;
  imported.text = session.suite().text(about);
  imported.recordings = session.recorder().recordings();
  if (imported.text.size() > kLongestSuiteText || imported.cases > kMostSuiteCases) {
    usage_error("{} cases in {} bytes are more than a suite holds, {} and {}; import fewer files",
                imported.cases, imported.text.size(), kMostSuiteCases, kLongestSuiteText);
  }
  return imported;
}

ImportedSuite import_trace_set(const std::string& from, const std::string& about,
                               const std::string& folder) {
  TraceImport all;
  for (const fs::path& file : trace_files_of(from)) all.add(file.string(), read_file(file));
  const std::string root = is_file(from) ? fs::path(from).parent_path().string() : from;
  return all.suite(about, folder, tensors_below(root.empty() ? "." : root));
}

}  // namespace moegate
