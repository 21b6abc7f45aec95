// SPDX-License-Identifier: Apache-2.0
// The text of a baseline file, read and written; what a baseline becomes is in baseline.cc.
#include "harness/baseline/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "harness/base/formats.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// "name=text", or two words of the header.
struct TextValue {
  const TextPlace& place;
  std::string_view name, text;

  double amount() const {
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0) || !std::isfinite(*number)) {
      place.fail("{}={} is not a number of 0 or more", name, text);
    }
    return *number;
  }
  int count() const {
    const double value = amount();
    if (value != std::floor(value) || value > 1e6) place.fail("{}={} is not a count", name, text);
    return static_cast<int>(value);
  }
  /// As many as there are places, with commas between them.
  void amounts(std::initializer_list<double*> places) const {
    std::string_view rest = text;
    for (double* to : places) {
      const std::string_view one = rest.substr(0, rest.find(','));
      *to = TextValue{place, name, one}.amount();
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    if (!rest.empty()) place.fail("{}={} has more than {} numbers", name, text, places.size());
  }
  /// "0.12%" as a share.
  double percent() const {
    if (!text.ends_with('%')) place.fail("{}={} is not in percent", name, text);
    return TextValue{place, name, text.substr(0, text.size() - 1)}.amount() / 100;
  }
};

struct ParsedRow {
  BaselineRow row;
  bool retired = false;
};

/// One of the values that a row's line may have.
struct RowField {
  std::string_view name;
  void (*read)(const TextValue& value, ParsedRow& into);
};
/// Those that every row has come first, then those of its rounding: all of these, or none.
constexpr size_t kRequired = 6, kRounding = 4, kAnchor = kRequired + kRounding;
constexpr RowField kRowFields[] = {
    {"by", [](auto& v, auto& into) { into.row.by = v.text; }},
    {"det", [](auto& v, auto& into) { into.row.deterministic = v.count() != 0; }},
    {"error", [](auto& v, auto& into) { into.row.error = v.amount(); }},
    {"level", [](auto& v, auto& into) { into.row.level = v.amount(); }},
    {"n", [](auto& v, auto& into) { into.row.n = v.count(); }},
    {"sd", [](auto& v, auto& into) { into.row.sd = v.percent(); }},
    {"excess", [](auto& v, auto& into) { into.row.rounding.excess = v.amount(); }},
    {"mis",
     [](auto& v, auto& into) {
       BeyondRounding& r = into.row.rounding;
       v.amounts({&r.misrounded, &r.row_misrounded, &r.column_misrounded});
     }},
    {"rows",
     [](auto& v, auto& into) {
       v.amounts({&into.row.rounding.row_scale, &into.row.rounding.row_scale_most});
     }},
    {"cols",
     [](auto& v, auto& into) {
       v.amounts({&into.row.rounding.column_scale, &into.row.rounding.column_scale_most});
     }},
    {"anchor", [](auto& v, auto& into) { into.row.anchor = v.amount(); }},
    {"code", [](auto& v, auto& into) { into.row.code = v.text; }},
    {"enqueue", [](auto& v, auto& into) { into.row.enqueue = v.amount(); }},
    {"inv",
     [](auto& v, auto& into) {
       into.row.invariance = v.count() != 0 ? Invariance::kept : Invariance::broken;
     }},
    {"out", [](auto& v, auto& into) { into.row.out = v.text; }},
    {"retired", [](auto& v, auto& into) { into.retired = v.count() != 0; }},
    {"tail", [](auto& v, auto& into) { into.row.tail = v.amount(); }},
    {"time", [](auto& v, auto& into) { into.row.time = v.amount(); }},
    {"yardstick", [](auto& v, auto& into) { into.row.yardstick = v.text; }},
};

/// The next word of a line, which loses it; empty at the end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\v\f\r\n";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

/// Fails at the place for anything that it does not know. `ratios`: of what the file's levels are.
ParsedRow parse_row(const TextPlace& place, std::string_view line, bool ratios) {
  const std::string_view level = ratios ? "ratio" : "span_us";
  ParsedRow parsed;
  std::bitset<std::size(kRowFields)> seen;
  for (std::string_view word; !(word = take_word(line)).empty();) {
    const size_t at = word.find('=');
    if (at == std::string_view::npos) place.fail("'{}' is not name=value", word);
    const TextValue value{place, word.substr(0, at), word.substr(at + 1)};
    const std::string_view name = value.name == level ? "level" : value.name;
    const RowField* field = std::ranges::find(kRowFields, name, &RowField::name);
    const auto i = static_cast<size_t>(field - kRowFields);
    if (field == std::end(kRowFields) || value.name == "level" || seen[i]) {
      place.fail(
          "'{}' is unknown here or given twice; a row has {}, sd, n, error, det, by and may have "
          "anchor, inv, excess, mis, rows, cols, code, out, yardstick, time, tail, enqueue, "
          "retired",
          value.name, level);
    }
    seen.set(i);
    field->read(value, parsed);
  }
  BaselineRow& row = parsed.row;
  if (!seen[kAnchor]) row.anchor = row.level;
  for (size_t i = 0; i < kRequired; ++i) {
    if (!seen[i]) place.fail("'{}' is missing", kRowFields[i].name);
  }
  for (size_t i = 0; i < kRounding; ++i) row.rounding.graded += seen[kRequired + i];
  if (row.rounding.graded != 0 && row.rounding.graded != kRounding) {
    place.fail("write all of excess, mis, rows and cols, or none");
  }
  if (!(row.level > 0)) place.fail("the level must be more than 0");
  if (!(row.anchor > 0)) place.fail("the anchor must be more than 0");
  if (row.n < 1) place.fail("n must be at least 1");
  return parsed;
}

void format_row(const BaselineRow& row, bool ratios, bool retired, std::string& text) {
  const auto add = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  const std::string level = fmt::format("{:.4g}", row.level);
  const std::string anchor = row.anchor == row.level ? level : fmt::format("{:.4g}", row.anchor);
  add("\t{}={} sd={:.2g}% n={} error={:.2g} det={}", ratios ? "ratio" : "span_us", level,
      100 * row.sd, row.n, row.error, row.deterministic ? 1 : 0);
  if (row.invariance != Invariance::unknown) {
    add(" inv={}", row.invariance == Invariance::kept ? 1 : 0);
  }
  if (const BeyondRounding& r = row.rounding; r.graded > 0) {
    add(" excess={:.3g} mis={:.3g},{:.3g},{:.3g} rows={:.3g},{:.3g} cols={:.3g},{:.3g}", r.excess,
        r.misrounded, r.row_misrounded, r.column_misrounded, r.row_scale, r.row_scale_most,
        r.column_scale, r.column_scale_most);
  }
  if (row.time > 0) add(" time={:.4g}", row.time);
  add(" by={}", row.by);
  if (row.anchor > 0 && anchor != level) add(" anchor={}", anchor);
  if (!row.code.empty()) add(" code={}", row.code);
  if (!row.out.empty()) add(" out={}", row.out);
  if (!row.yardstick.empty()) add(" yardstick={}", row.yardstick);
  if (row.tail > 0) add(" tail={:.3g}", row.tail);
  if (row.enqueue > 0) add(" enqueue={:.3g}", row.enqueue);
  add("{}\n", retired ? " retired=1" : "");
}

constexpr const char *kMagic = "#moegate-baseline 1", *kItem = "#environment ";

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
    if (!name.empty() && !is_file_name(name)) place.fail("'{}' cannot be the name of a file", name);
  }
  if (!fields.empty()) place.fail("unknown field '{}'", fields.begin()->first);
  return h;
}

/// As JSON: a variable may hold any text.
std::string format_item(const EnvironmentItem& item) {
  return kItem + nlohmann::json{item.kind, item.name, item.value, item.digest}.dump(
                     -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

EnvironmentItem parse_item(const TextPlace& place, std::string_view text) {
  const auto item = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const nlohmann::json& part) { return part.is_string(); };
  if (!item.is_array() || item.size() != 4 || !std::ranges::all_of(item, is_text)) {
    place.fail("'{}' is not [\"kind\",\"name\",\"value\",\"digest\"]", text);
  }
  return {item[0], item[1], item[2], item[3]};
}

std::pair<std::string, std::string> parse_key(const TextPlace& place, const std::string& line) {
  const size_t at = line.find(' ');
  const bool one =
      at != std::string::npos && line.find_first_of(" \t", at + 1) == std::string::npos;
  if (line.empty() || !one || at == 0 || at + 1 == line.size()) {
    place.fail("'{}' is not a row; write '<key> <variant>' and, indented by a tab, its values",
               line);
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
  TextPlace place{path.string()};
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
      if (line != kMagic) place.fail("'{}' stands where '{}' belongs", line, kMagic);
    } else if (place.line == 2) {
      baseline.header = parse_header(place, std::string(line));
    } else if (line.starts_with(kItem) && key.first.empty() && baseline.rows.empty()) {
      baseline.header.environment.push_back(
          parse_item(place, line.substr(std::string_view(kItem).size())));
    } else if (pending) {
      if (!line.starts_with('\t'))
        place.fail("a tab and the values of '{}' belong here", key.first);
      ParsedRow parsed = parse_row(place, line, baseline.ratios());
      Baseline::Rows& rows = parsed.retired ? baseline.retired : baseline.rows;
      rows.emplace_hint(rows.end(), std::exchange(key, {}), std::move(parsed.row));
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
  for (const EnvironmentItem& item : h.environment) text += format_item(item) + "\n";
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

void write_baseline(const fs::path& path, const Baseline& baseline) {
  std::error_code ignored;  // the write below says what is wrong
  fs::create_directories(path.parent_path(), ignored);
  write_file_atomically(path, format_baseline(baseline));
}

}  // namespace moegate
