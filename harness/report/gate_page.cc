// SPDX-License-Identifier: Apache-2.0
// A verdict for people: the page of gate_report.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "harness/report/explain.h"
#include "harness/report/gate_report.h"

namespace moegate {
namespace {

constexpr size_t kCellCharacters = 400;  // so that one child's last words do not fill the page

// Ranks of sections; the verdict's is 0.
constexpr int kContext = 1, kFailed = 2, kWaived = 3, kTheRest = 4, kNumbers = 5;

/// With its unit where that is not the column's.
Table::Cell level_cell(double level, const CaseVerdict& v, bool host) {
  if (!(level > 0)) return {"", true};
  return Table::number("{:.4g}{}", level, host && v.by_time ? " us" : "");
}

Tone tone_of(Outcome outcome) {
  using enum Outcome;
  if (outcome == improved) return Tone::good;
  if (outcome == regressed || outcome == wrong || outcome == missing) return Tone::bad;
  const bool doubtful = outcome == inconclusive || outcome == environment || outcome == waived;
  return doubtful ? Tone::doubtful : Tone::plain;
}

std::string short_line(const std::string& text) {
  return clipped(one_line(text), kCellCharacters);
}

Table cases_table(const std::vector<const CaseVerdict*>& rows, bool host) {
  const std::string unit = host ? " (ratio)" : " (us)";
  Table table{{"Outcome", "Case", "Variant", "Before" + unit, "Now" + unit, "Change", "95 % bounds",
               "Why"}};
  for (const CaseVerdict* v : rows) {
    const Table::Cell outcome{.text = name_of(v->outcome), .tone = tone_of(v->outcome)};
    const Judgement l = v->latency.value_or(Judgement{});
    const Table::Cell change{v->latency ? percent(l.effect) : "", true};
    table.add(outcome, short_line(v->id.key), short_line(v->id.variant),
              level_cell(v->base, *v, host), level_cell(v->head, *v, host), change,
              v->latency ? fmt::format("{} … {}", percent(l.low), percent(l.high)) : "",
              short_line((v->stage == 2 ? "replayed: " : "") + v->why));
  }
  return table;
}

void add_cases(Page& page, int rank, const std::string& title,
               const std::vector<const CaseVerdict*>& rows, bool host) {
  if (rows.empty()) return;
  page.add(rank, Heading{fmt::format("{} ({})", title, rows.size())},
           Rows{cases_table(rows, host)});
}

void add_improvements(Page& page, const GateReport& report, bool host) {
  auto rows = worst_first(report.result, {Outcome::improved});
  std::ranges::stable_sort(rows, {}, [](const CaseVerdict* v) { return v->latency->high; });
  add_cases(page, kTheRest, "Improvements", rows, host);
  if (rows.empty() || report.next.empty()) return;
  page.sections.back().blocks.push_back(Paragraph{
      {{plain(
            "A baseline changes only when somebody blesses a run. To bless this run as a whole: "),
        code(report.next)}}});
}

std::string not_judged_text(const GateResult& result) {
  for (const CaseVerdict* v : worst_first(result, {Outcome::fresh})) {
    if (v->against.empty()) continue;
    return fmt::format(
        "{} new rows were not judged: there is nothing to compare them with, for example {} {}.",
        result.not_judged, v->id.key, v->id.variant);
  }
  return "";
}

Paragraph counts(const GateReport& report) {
  size_t inconclusive = 0, disturbed = 0;
  std::string why;
  for (const CaseVerdict* v : worst_first(report.result, {Outcome::inconclusive})) {
    ++(v->latency ? inconclusive : disturbed);
    if (!v->latency) why = v->why;
  }
  Paragraph paragraph;
  const auto say = [&](const std::string& text) { paragraph.lines.push_back({plain(text)}); };
  if (report.result.judged > 0) {
    say(fmt::format("{} of {} inconclusive: neither shown slower nor shown equal.", inconclusive,
                    count_of(report.result.judged, "judged row")));
  }
  if (disturbed > 0)
    say(fmt::format("{} could not be judged, for example: {}.", count_of(disturbed, "row"), why));
  const std::string not_judged = not_judged_text(report.result);
  if (!not_judged.empty()) say(not_judged);
  if (report.result.blind > 0) {
    say(fmt::format("{} of {} judged rows are blind.", report.result.blind, report.result.judged));
  } else if (report.result.judged > 0) {
    say(fmt::format("A change of {} would show in every judged row.",
                    limit(report.limits.blind_at)));
  }
  say(
      fmt::format("A row fails if it is slower by {} or more, and by more than {} with confidence "
                  "(error rate {:g} for all rows together, Holm).",
                  limit(report.limits.fail_at), limit(report.limits.margin), report.limits.alpha));
  return paragraph;
}

constexpr auto kWords = std::to_array<Word>({
    {"span",
     "the time from the start of the first kernel of a sample to the end of its last kernel"},
    {"level", "the result of one process for a row"},
    {"yardstick", "the host variant beside which all other host variants of an operator are timed"},
    {"replayed", "measured again, base and head in turn"},
    {"candidate", "a baseline that the tool recorded and nobody blessed"},
    {"blind", "a change of {} could hide in the noise of the row"},
});

/// Finds words in what a page says. Code and paths are not words.
class WordFinder {
 public:
  explicit WordFinder(const char* word)
      : pattern_(
            compile_pattern("", fmt::format("(?i)(^|[\\s(]){}(s|'s)?([,.;:)]*(\\s|$))", word))) {}

  bool in(const Page& page) const {
    return std::ranges::any_of(page.sections, [&](const Section& section) {
      return found(section.folded) || std::ranges::any_of(section.blocks, [&](const Block& b) {
               return std::visit(*this, b);
             });
    });
  }
  bool operator()(const Heading& heading) const { return found(heading.text); }
  bool operator()(const Paragraph& paragraph) const { return any(paragraph.lines); }
  bool operator()(const List& list) const { return any(list.items); }
  bool operator()(const Rows& rows) const { return any(rows.table); }
  bool operator()(const Commands&) const { return false; }
  bool operator()(const Chart& chart) const { return found(chart.title) || any(chart.table); }
  bool operator()(const LevelChart& chart) const { return found(chart.title); }

 private:
  bool found(const std::string& text) const { return pattern_.found_in(text); }
  bool any(const std::vector<Line>& lines) const {
    return std::ranges::any_of(lines, [&](const Line& line) {
      return std::ranges::any_of(line, [&](const Span& s) { return !s.code && found(s.text); });
    });
  }
  bool any(const Table& table) const {
    return std::ranges::any_of(table.columns, [&](const auto& name) { return found(name); }) ||
           std::ranges::any_of(table.rows, [&](const auto& row) {
             return std::ranges::any_of(row, [&](const auto& cell) { return found(cell.text); });
           });
  }
  Pattern pattern_;
};

Paragraph provenance(const GateReport& report) {
  const RunInfo& run = report.run;
  const bool of_kernels = run.tags.contains(kCommitTag);
  Line line = {plain(fmt::format("{} of {}, {}, {} ({}), {}, commit {}", describe(run), report.db,
                                 run.started, run.device.name, uuids_of(run), run.device.driver,
                                 of_kernels            ? measured_commit(run)
                                 : run.git_sha.empty() ? "unknown"
                                                       : run.git_sha))};
  if (run.dirty && !of_kernels) line.insert(line.end(), {plain(" "), bold("DIRTY")});
  line.push_back(plain(fmt::format(", {}, protocol {}, timer {}, flush {}, {} rounds", run.build,
                                   run.protocol, run.timer, run.flush, run.rounds)));
  if (run.status != "complete") line.insert(line.end(), {plain(", "), bold(run.status)});
  if (!report.throttle.empty()) line.push_back(plain(", clocks throttled: " + report.throttle));
  return {{line}, /*small=*/true};
}

std::string left_out_text(const GateResult& result) {
  constexpr size_t kShown = 10;
  const auto& rows = result.left_out;
  const std::vector<std::string> shown(rows.begin(), rows.begin() + std::min(kShown, rows.size()));
  return fmt::format("{} {} rows: {}{}",
                     result.interrupted ? "The interruption left out" : "There was no time for",
                     rows.size(), fmt::join(shown, ", "), rows.size() > kShown ? ", …" : ".");
}

List changed(const GateResult& result) {
  List list;
  for (const std::string& what : result.changed) {
    list.items.push_back({bold("changed:"), plain(" " + what)});
  }
  return list;
}

/// What happened while measuring, waivers, and what each suite was judged against.
List context(const GateResult& result) {
  List list;
  for (const std::string& problem : result.waiver_problems) list.items.push_back({bold(problem)});
  for (const AbsentShard& absent : result.absent_shards) {
    list.items.push_back(
        {bold(fmt::format("Shard {} of {} is absent:", absent.shard, absent.shards)),
         plain(" it did not run, did not end or was not merged. To run it: "),
         code(absent.command)});
  }
  if (!result.left_out.empty()) list.items.push_back({plain(left_out_text(result))});
  for (const std::string& note : result.notes) list.items.push_back({plain(note)});
  for (const std::string& note : result.waiver_notes) list.items.push_back({plain(note)});
  for (const auto& [suite, e] : result.suites) {
    list.items.push_back(
        {code(suite), plain(": " + (e.against.empty() ? "no baseline" : "against " + e.against) +
                            (e.note.empty() ? "" : "; ") + e.note)});
  }
  return list;
}

}  // namespace

std::vector<const CaseVerdict*> worst_first(const GateResult& result,
                                            const std::vector<Outcome>& outcomes) {
  std::vector<const CaseVerdict*> rows;
  const auto place = [&](const CaseVerdict* v) { return std::ranges::find(outcomes, v->outcome); };
  for (const CaseVerdict& v : result.cases) {
    if (place(&v) != outcomes.end()) rows.push_back(&v);
  }
  std::ranges::stable_sort(rows, {}, [&](const CaseVerdict* v) {
    return std::pair(place(v), v->latency ? -v->latency->low : 0);
  });
  return rows;
}

std::span<const Word> words() {
  return kWords;
}

void add_words(Page& page, int rank, const std::string& blind_at) {
  Line line;
  for (const Word& word : words()) {
    if (!WordFinder(word.word).in(page)) continue;
    line.push_back(plain(fmt::format("{}{}: {}.", line.empty() ? "" : " ", word.word,
                                     fmt::format(fmt::runtime(word.means), blind_at))));
  }
  if (!line.empty()) page.add(rank, Paragraph{{line}});
}

Page gate_page(const GateReport& report) {
  const GateResult& result = report.result;
  const bool host = report.run.device.backend == Backend::host;
  const bool ab = !report.ab.empty();  // its tables name every improvement
  Page page{{}, "verdict.json"};
  // Where nobody asked for a device, it may be another one than the reader thinks.
  page.add(0, Paragraph{{{bold(sentence(result, report.exit)),
                          plain(fmt::format(", on {}{}", one_line(report.run.device.name),
                                            host ? ", the host" : ""))}}});
  if (const std::string environment = environment_sentence(result); !environment.empty())
    page.add(0, paragraph(environment));
  if (!result.changed.empty()) page.add(0, changed(result));
  page.add(kContext, context(result));
  add_cases(page, kFailed, "Failures", worst_first(result, kFailures), host);
  const std::vector<CausedRow> caused = caused_rows(result);
  add_causes(page, kFailed, caused);
  add_cases(page, kWaived, "Waived", worst_first(result, {Outcome::waived}), host);
  for (Section section : report.ab) {
    section.rank = section.rank == 0 ? kContext : kTheRest;
    page.sections.push_back(std::move(section));
  }
  if (!ab) add_improvements(page, report, host);
  add_cause_numbers(page, kNumbers, caused);
  page.add(kContext, counts(report));
  add_words(page, kContext, limit(report.limits.blind_at));
  if (ab) return page;
  page.add(kContext, provenance(report));
  page.add(kContext, Commands{{{"To repeat", report.run.command}, {"To bless", report.next}}});
  return page;
}

}  // namespace moegate
