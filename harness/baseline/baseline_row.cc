// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/baseline_row.h"

#include <bitset>
#include <iterator>

namespace moegate {
namespace {

/// One of the values that a row's line may have.
struct RowField {
  std::string_view name;
  void (*read)(const TextValue& value, ParsedRow& into);
};
/// Those that every row has come first, in the order of their names.
constexpr size_t kRequired = 6, kAnchor = 6;
constexpr int64_t kRoundingWords = 4;  // excess, mis, rows, cols
constexpr RowField kRowFields[] = {
    {"by", [](const TextValue& v, ParsedRow& into) { into.row.by = v.text; }},
    {"det", [](const TextValue& v, ParsedRow& into) { into.row.deterministic = v.count() != 0; }},
    {"error", [](const TextValue& v, ParsedRow& into) { into.row.error = v.amount(); }},
    {"level", [](const TextValue& v, ParsedRow& into) { into.row.level = v.amount(); }},
    {"n", [](const TextValue& v, ParsedRow& into) { into.row.n = v.count(); }},
    {"sd", [](const TextValue& v, ParsedRow& into) { into.row.sd = v.percent(); }},
    {"anchor", [](const TextValue& v, ParsedRow& into) { into.row.anchor = v.amount(); }},
    {"code", [](const TextValue& v, ParsedRow& into) { into.row.code = v.text; }},
    {"cols",
     [](const TextValue& v, ParsedRow& into) {
       BeyondRounding& r = into.rounding();
       v.amounts({&r.column_scale, &r.column_scale_most});
     }},
    {"enqueue", [](const TextValue& v, ParsedRow& into) { into.row.enqueue = v.amount(); }},
    {"excess", [](const TextValue& v, ParsedRow& into) { into.rounding().excess = v.amount(); }},
    {"mis",
     [](const TextValue& v, ParsedRow& into) {
       BeyondRounding& r = into.rounding();
       v.amounts({&r.misrounded, &r.row_misrounded, &r.column_misrounded});
     }},
    {"out", [](const TextValue& v, ParsedRow& into) { into.row.out = v.text; }},
    {"retired", [](const TextValue& v, ParsedRow& into) { into.retired = v.count() != 0; }},
    {"rows",
     [](const TextValue& v, ParsedRow& into) {
       BeyondRounding& r = into.rounding();
       v.amounts({&r.row_scale, &r.row_scale_most});
     }},
    {"tail", [](const TextValue& v, ParsedRow& into) { into.row.tail = v.amount(); }},
    {"time", [](const TextValue& v, ParsedRow& into) { into.row.time = v.amount(); }},
    {"yardstick", [](const TextValue& v, ParsedRow& into) { into.row.yardstick = v.text; }},
};

/// The next word of a line, which loses it; empty at the end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\v\f\r\n";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

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
          "anchor, excess, mis, rows, cols, code, out, yardstick, time, tail, enqueue, retired",
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
  if (const int64_t stated = row.rounding.graded; stated != 0 && stated != kRoundingWords) {
    place.fail("excess, mis, rows and cols come together");
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

}  // namespace moegate
