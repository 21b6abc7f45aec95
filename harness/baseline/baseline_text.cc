// SPDX-License-Identifier: Apache-2.0
// The text of a baseline file, read and written; what a baseline becomes is in baseline.cc.
#include <fmt/format.h>

#include <sstream>

#include "harness/base/files.h"
#include "harness/baseline/baseline_row.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMagic = "#moegate-baseline 1";

BaselineHeader parse_header(const TextPlace& place, const std::string& line) {
  if (line.empty() || line[0] != '#') {
    place.fail("the second line is '#class C  suite S  protocol P  timer T  flush F  gpu G'");
  }
  std::istringstream in(line.substr(1));
  std::map<std::string, std::string> fields;
  for (std::string name, value; in >> name;) {
    if (!(in >> value)) place.fail("'{}' has no value", name);
    if (!fields.emplace(name, value).second) place.fail("'{}' is given twice", name);
  }
  const auto take = [&](const char* name) {
    auto node = fields.extract(name);
    if (node.empty()) place.fail("'{}' is missing", name);
    return node.mapped();
  };
  BaselineHeader h;
  h.klass = take("class");
  h.suite = take("suite");
  h.protocol = TextValue{place, "protocol", take("protocol")}.count();
  h.timer = take("timer");
  h.flush = take("flush");
  h.gpu = take("gpu");
  const std::string older = h.gpu == "-" ? "ratio" : "span";
  const std::string judged = fields.count("judged") > 0 ? take("judged") : older;
  if (judged != "span" && judged != "ratio")
    place.fail("judged is '{}', not span or ratio", judged);
  parse_name(judged, h.judged);
  if (fields.count("program") > 0) h.program = take("program");
  if (fields.count("commit") > 0) h.git_sha = take("commit");
  for (const std::string& name : {h.klass, h.suite, h.program, h.git_sha}) {
    if (!name.empty() && !is_file_name(name)) place.fail("'{}' is no name of a file", name);
  }
  if (!fields.empty()) place.fail("unknown field '{}'", fields.begin()->first);
  return h;
}

std::pair<std::string, std::string> parse_key(const TextPlace& place, const std::string& line) {
  const size_t at = line.find(' ');
  const bool one =
      at != std::string::npos && line.find_first_of(" \t", at + 1) == std::string::npos;
  if (line.empty() || !one || at == 0 || at + 1 == line.size()) {
    place.fail("'{}' is no row; write '<key> <variant>' and, indented by a tab, its values", line);
  }
  return {line.substr(0, at), line.substr(at + 1)};
}

/// Files are sorted: what comes after the last one is new.
bool has(const Baseline::Rows& rows, const Baseline::Rows::key_type& key) {
  return !rows.empty() && !NaturalLess()(rows.rbegin()->first, key) && rows.count(key) > 0;
}

}  // namespace

Baseline read_baseline(const fs::path& path) {
  const std::string text = read_file(path);
  TextPlace place{path};
  Baseline baseline;
  std::pair<std::string, std::string> key;
  bool pending = false;  // a key line whose values come next
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++place.line;
    if (line.ends_with('\r')) place.fail("ends in CR LF; baselines end in LF");
    if (line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>")) {
      place.fail("is a merge conflict; resolve it");
    }
    if (place.line == 1) {
      if (line != kMagic) place.fail("'{}' where '{}' belongs", line, kMagic);
    } else if (place.line == 2) {
      baseline.header = parse_header(place, std::string(line));
    } else if (pending) {
      if (!line.starts_with('\t'))
        place.fail("a tab and the values of '{}' belong here", key.first);
      ParsedRow parsed = parse_row(place, line, baseline.ratios());
      Baseline::Rows& rows = parsed.retired ? baseline.retired : baseline.rows;
      rows.emplace_hint(rows.end(), std::move(key), std::move(parsed.row));
      pending = false;
    } else {
      key = parse_key(place, std::string(line));
      if (has(baseline.rows, key) || has(baseline.retired, key))
        place.fail("'{} {}' is given twice", key.first, key.second);
      pending = true;
    }
  }
  if (pending) place.fail("the values of '{} {}' are missing", key.first, key.second);
  if (place.line < 2) usage_error("{}: is empty or lacks its header", path.string());
  return baseline;
}

std::string format_baseline(const Baseline& baseline) {
  const BaselineHeader& h = baseline.header;
  std::string text = fmt::format("{}\n#class {}  suite {}  protocol {}  timer {}  flush {}  gpu {}",
                                 kMagic, h.klass, h.suite, h.protocol, h.timer, h.flush, h.gpu);
  if (h.judged != Judged::none) text += fmt::format("  judged {}", name_of(h.judged));
  if (!h.program.empty()) text += "  program " + h.program;
  if (!h.git_sha.empty()) text += "  commit " + h.git_sha;
  text += "\n";
  const auto add = [&](const auto& named, bool retired) {
    const auto& [key, row] = named;
    text.append(key.first).append(" ").append(key.second).append("\n");
    format_row(row, baseline.ratios(), retired, text);
  };
  // Two sorted lists, as one; of a row that is in both, what it is now.
  auto left = baseline.retired.begin();
  const NaturalLess less;
  for (const auto& named : baseline.rows) {
    for (; left != baseline.retired.end() && less(left->first, named.first); ++left)
      add(*left, true);
    if (left != baseline.retired.end() && !less(named.first, left->first)) ++left;
    add(named, false);
  }
  for (; left != baseline.retired.end(); ++left) add(*left, true);
  return text;
}

std::string write_baseline(const fs::path& path, const Baseline& baseline) {
  std::error_code ignored;  // the write below says what is wrong
  fs::create_directories(path.parent_path(), ignored);
  std::string text = format_baseline(baseline);
  write_file_atomically(path, text);
  return text;
}

}  // namespace moegate
