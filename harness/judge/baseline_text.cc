// SPDX-License-Identifier: Apache-2.0
// The text of a baseline file, read and written; what a baseline becomes is in baseline.cc.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/baseline.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMagic = "#moegate-baseline 1";

/// Where a parse error is, so that its message names file and line.
struct Place {
  const fs::path& path;
  int line = 0;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{}:{}: {}", path.string(), line, fmt::format(format, std::forward<Args>(args)...));
  }
};

double parse_amount(const Place& place, const std::string& name, const std::string& text) {
  const auto number = parse_number<double>(text);
  if (!number || !(*number >= 0) || !std::isfinite(*number)) {
    place.fail("{}={} is not a number of 0 or more", name, text);
  }
  return *number;
}

int parse_count(const Place& place, const std::string& name, const std::string& text) {
  const double value = parse_amount(place, name, text);
  if (value != std::floor(value) || value > 1e6) place.fail("{}={} is not a count", name, text);
  return static_cast<int>(value);
}

BaselineHeader parse_header(const Place& place, const std::string& line) {
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
  h.protocol = parse_count(place, "protocol", take("protocol"));
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
  if (!fields.empty()) place.fail("unknown field '{}'", fields.begin()->first);
  return h;
}

BaselineRow parse_row(const Place& place, const std::string& line, bool ratios, bool& retired) {
  std::istringstream in(line);
  BaselineRow row;
  std::set<std::string> missing = {"level", "sd", "n", "error", "det", "by"};
  std::set<std::string> optional = {"anchor", "code",    "out",    "yardstick",
                                    "tail",   "enqueue", "retired"};
  for (std::string field; in >> field;) {
    const size_t at = field.find('=');
    if (at == std::string::npos) place.fail("'{}' is not name=value", field);
    const std::string name = field.substr(0, at);
    std::string value = field.substr(at + 1);
    const bool is_level = name == (ratios ? "ratio" : "span_us");
    const bool known = missing.erase(is_level ? "level" : name) + optional.erase(name) > 0;
    if (!known || name == "level") {
      place.fail(
          "'{}' is unknown here or given twice; a row has {}, sd, n, error, det, by and may have "
          "anchor, code, out, yardstick, tail, enqueue, retired",
          name, ratios ? "ratio" : "span_us");
    }
    if (is_level) row.level = parse_amount(place, name, value);
    if (name == "sd") {
      if (value.empty() || value.back() != '%') place.fail("sd={} is not in percent", value);
      value.pop_back();
      row.sd = parse_amount(place, name, value) / 100;
    }
    if (name == "n") row.n = parse_count(place, name, value);
    if (name == "error") row.error = parse_amount(place, name, value);
    if (name == "det") row.deterministic = parse_count(place, name, value) != 0;
    if (name == "by") row.by = value;
    if (name == "anchor") row.anchor = parse_amount(place, name, value);
    if (name == "code") row.code = value;
    if (name == "out") row.out = value;
    if (name == "yardstick") row.yardstick = value;
    if (name == "tail") row.tail = parse_amount(place, name, value);
    if (name == "enqueue") row.enqueue = parse_amount(place, name, value);
    if (name == "retired") retired = parse_count(place, name, value) != 0;
  }
  if (optional.count("anchor") > 0) row.anchor = row.level;
  if (!missing.empty()) place.fail("'{}' is missing", *missing.begin());
  if (!(row.level > 0)) place.fail("the level must be more than 0");
  if (!(row.anchor > 0)) place.fail("the anchor must be more than 0");
  if (row.n < 1) place.fail("n must be at least 1");
  return row;
}

std::pair<std::string, std::string> parse_key(const Place& place, const std::string& line) {
  const size_t at = line.find(' ');
  const bool one =
      at != std::string::npos && line.find_first_of(" \t", at + 1) == std::string::npos;
  if (line.empty() || !one || at == 0 || at + 1 == line.size()) {
    place.fail("'{}' is no row; write '<key> <variant>' and, indented by a tab, its values", line);
  }
  return {line.substr(0, at), line.substr(at + 1)};
}

std::string format_row(const BaselineRow& row, bool ratios, bool retired) {
  const std::string level = fmt::format("{:.4g}", row.level);
  const std::string anchor = fmt::format("{:.4g}", row.anchor);
  std::string text =
      fmt::format("\t{}={} sd={:.2g}% n={} error={:.2g} det={} by={}", ratios ? "ratio" : "span_us",
                  level, 100 * row.sd, row.n, row.error, row.deterministic ? 1 : 0, row.by);
  if (row.anchor > 0 && anchor != level) text += " anchor=" + anchor;
  if (!row.code.empty()) text += " code=" + row.code;
  if (!row.out.empty()) text += " out=" + row.out;
  if (!row.yardstick.empty()) text += " yardstick=" + row.yardstick;
  if (row.tail > 0) text += fmt::format(" tail={:.3g}", row.tail);
  if (row.enqueue > 0) text += fmt::format(" enqueue={:.3g}", row.enqueue);
  if (retired) text += " retired=1";
  return text + "\n";
}

}  // namespace

Baseline read_baseline(const fs::path& path) {
  std::istringstream in(read_file(path));
  Place place{path};
  Baseline baseline;
  std::pair<std::string, std::string> key;
  bool pending = false;  // a key line whose values come next
  for (std::string line; std::getline(in, line);) {
    ++place.line;
    if (!line.empty() && line.back() == '\r') place.fail("ends in CR LF; baselines end in LF");
    if (line.compare(0, 7, "<<<<<<<") == 0 || line.compare(0, 7, ">>>>>>>") == 0) {
      place.fail("is a merge conflict; resolve it");
    }
    if (place.line == 1) {
      if (line != kMagic) place.fail("'{}' where '{}' belongs", line, kMagic);
    } else if (place.line == 2) {
      baseline.header = parse_header(place, line);
    } else if (pending) {
      if (line.empty() || line[0] != '\t')
        place.fail("a tab and the values of '{}' belong here", key.first);
      bool retired = false;
      const BaselineRow row = parse_row(place, line, baseline.ratios(), retired);
      (retired ? baseline.retired : baseline.rows)[key] = row;
      pending = false;
    } else {
      key = parse_key(place, line);
      if (baseline.rows.count(key) + baseline.retired.count(key) > 0)
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
  std::map<std::pair<std::string, std::string>, std::string, NaturalLess> rows;
  for (const auto& [key, row] : baseline.rows)
    rows[key] = format_row(row, baseline.ratios(), false);
  for (const auto& [key, row] : baseline.retired) {
    rows.emplace(key, format_row(row, baseline.ratios(), true));
  }
  for (const auto& [key, row] : rows) text += key.first + " " + key.second + "\n" + row;
  return text;
}

void write_baseline(const fs::path& path, const Baseline& baseline) {
  std::error_code ignored;  // the write below says what is wrong
  fs::create_directories(path.parent_path(), ignored);
  write_file_atomically(path, format_baseline(baseline));
}

}  // namespace moegate
