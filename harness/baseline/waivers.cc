// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/waivers.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"
#include "harness/judge/regret.h"

namespace moegate {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr int kLongestTime = 90;  // days, of latency and regret
constexpr int kLongestOther = 14;
constexpr double kLargestRegression = 0.25;

/// The fields of one section, and the file, so that a message names all three.
struct Section {
  std::string file, id;  // "ci/waivers.ini", "W-0031"
  std::map<std::string, std::string> fields = {};

  std::string where() const { return fmt::format("{}: [{}]", file, id); }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{} {}", where(), fmt::format(format, std::forward<Args>(args)...));
  }

  std::string take(const std::string& name) {
    auto node = fields.extract(name);
    if (node.empty() || node.mapped().empty()) fail("lacks '{}'", name);
    return node.mapped();
  }
};

void open_section(std::vector<Section>& sections, const TextPlace& place, const std::string& line) {
  if (line.size() == 2 || line.ends_with(".]")) {
    place.fail("{} is not the name of a section; write it like [W-0031]", line);
  }
  const std::string id = line.substr(1, line.size() - 2);
  if (std::ranges::count(sections, id, &Section::id) > 0) place.fail("'{}' is given twice", line);
  sections.push_back({place.path, id});
}

/// In the order of the file. Values are texts with commas, so this is no IniFile.
std::vector<Section> read_sections(const std::string& text, const std::string& name) {
  std::vector<Section> sections;
  const auto close_section = [&] {
    if (!sections.empty() && sections.back().fields.empty())
      sections.back().fail("has no fields; write them, or remove it");
  };
  TextPlace place{name};
  std::istringstream in(text);
  for (std::string raw; std::getline(in, raw);) {
    ++place.line;
    const std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#') continue;
    if (line.find('#') != std::string::npos) {
      place.fail("'#' starts a comment and cuts '{}'; write org/repo/412 for an issue", line);
    }
    if (line.front() == '[' && line.back() == ']') {
      close_section();
      open_section(sections, place, line);
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos) {
      place.fail("'{}' cannot be read; write [section] or name = value", line);
    }
    const std::string field = trimmed(line.substr(0, equals));
    if (sections.empty()) usage_error("{}: '{}' stands before the first [section]", name, field);
    if (!sections.back().fields.emplace(field, trimmed(line.substr(equals + 1))).second) {
      place.fail("'{}' is given twice", line);
    }
  }
  close_section();
  return sections;
}

sys_days parse_day(const Section& s, const std::string& name, const std::string& text) {
  constexpr int kFirstYear = 2000, kLastYear = 2199;  // what nanoseconds hold, and more than enough
  std::tm read{};
  if (::strptime(text.c_str(), "%Y-%m-%d", &read) != nullptr) {
    const int year = read.tm_year + 1900;
    const sys_days day = std::chrono::year(year) / (read.tm_mon + 1) / read.tm_mday;
    const bool near = year >= kFirstYear && year <= kLastYear;
    if (near && fmt::format("{:%F}", day) == text) return day;  // 2026-2-31 is another day
  }
  s.fail("{} '{}' is not a day from {} to {}; write it like 2026-11-20", name, text, kFirstYear,
         kLastYear);
}

Waiver::Metric parse_metric(const Section& s, const std::string& text) {
  if (text == "latency") return Waiver::Metric::latency;
  if (text == "accuracy") return Waiver::Metric::accuracy;
  if (text == "coverage") return Waiver::Metric::coverage;
  if (text == "regret") return Waiver::Metric::regret;
  s.fail("metric '{}' is unknown; use latency, accuracy, coverage or regret", text);
}

bool is_time(Waiver::Metric metric) {
  return metric == Waiver::Metric::latency || metric == Waiver::Metric::regret;
}

double parse_bound(const Section& s, const std::string& text) {
  const auto share = parse_percent(text);
  if (!share) s.fail("max_regression '{}' is not a share; write it in percent, like 6%", text);
  if (*share > kLargestRegression) {
    s.fail("max_regression {} is more than {}; accept such a loss with `moegate bless`", text,
           limit(kLargestRegression));
  }
  return *share;
}

int parse_max_cases(const Section& s, const std::string& text) {
  const auto count = parse_number<int>(text);
  if (!count || *count < 1) s.fail("max_cases '{}' is not a count of 1 or more", text);
  return *count;
}

/// A pattern that narrows nothing would waive whatever fails next.
Pattern take_pattern(Section& s, const std::string& name) {
  const std::string text = s.take(name);
  Pattern pattern = compile_pattern(s.where() + " " + name, text);
  for (const char* any : {"", "7f3a9c", "7f3a9c/b=1,c=2"}) {
    if (pattern.matches(any)) s.fail("{} '{}' matches everything; name what it means", name, text);
  }
  return pattern;
}

void check_life(const Section& s, const Waiver& w, sys_days day) {
  const int longest = is_time(w.metric) ? kLongestTime : kLongestOther;
  if (w.created > day) {
    s.fail("was created {:%F}, which is after today, {:%F}; write the day on which you create it",
           w.created, day);
  }
  if (w.expires <= w.created) {
    s.fail("expires {:%F}, which is not after its creation, {:%F}; give a later day", w.expires,
           w.created);
  }
  if (w.expires - w.created > days(longest)) {
    s.fail(
        "expires {:%F}, more than {} days after {:%F}; give an earlier day, and write a new waiver "
        "then",
        w.expires, longest, w.created);
  }
}

void refuse_unknown(const Section& s) {
  static const std::vector<std::string> kKnown = {"cases",          "max_cases", "variant", "class",
                                                  "metric",         "reason",    "issue",   "owner",
                                                  "max_regression", "created",   "expires"};
  for (const auto& [name, value] : s.fields) {
    if (std::ranges::count(kKnown, name) > 0) continue;
    s.fail("has an unknown field '{}'{}; known: {}", name, did_you_mean(name, kKnown),
           fmt::join(kKnown, ", "));
  }
}

Waiver to_waiver(Section s, sys_days day) {
  refuse_unknown(s);
  Waiver w;
  w.id = s.id;
  w.cases = take_pattern(s, "cases");
  w.max_cases = parse_max_cases(s, s.take("max_cases"));
  w.variant = take_pattern(s, "variant");
  w.klass = s.take("class");
  w.metric = parse_metric(s, s.take("metric"));
  if (is_time(w.metric)) w.max_regression = parse_bound(s, s.take("max_regression"));
  w.reason = s.take("reason");
  w.issue = s.take("issue");
  w.owner = s.take("owner");
  w.created = parse_day(s, "created", s.take("created"));
  w.expires = parse_day(s, "expires", s.take("expires"));
  if (!s.fields.empty()) s.fail("has a max_regression; only metrics latency and regret have one");
  check_life(s, w, day);
  return w;
}

// What waivers do to a verdict; the other half of waivers.h.

using Metric = Waiver::Metric;

constexpr double kWaivedShare = 0.02;  // of a suite's rows, and of a run's that one may match

int waivable(size_t rows) {
  return std::max(1, static_cast<int>(kWaivedShare * static_cast<double>(rows)));
}

/// What a waiver could waive of a case; of one whose output is wrong nothing.
std::vector<Metric> failures_of(const CaseVerdict& v) {
  std::vector<Metric> failures;
  if (v.outcome == Outcome::wrong && !v.drift) return {};
  if (v.outcome == Outcome::wrong) failures.push_back(Metric::accuracy);
  if (v.outcome == Outcome::missing) failures.push_back(Metric::coverage);
  if (is_slower(v))
    failures.push_back(v.against == kAgainstBest ? Metric::regret : Metric::latency);
  return failures;
}

bool matches(const Waiver& w, const CaseVerdict& v) {
  return w.cases.matches(v.id.key) && w.variant.matches(v.id.variant);
}

double loss(const CaseVerdict& v) {
  return std::max(v.latency ? v.latency->effect : 0, v.creep);
}

/// Waivers that hold for a run, and what they were used for.
struct Active {
  const Waiver* waiver;
  bool valid = true;  // false: waives nothing
  int matched = 0, failing = 0, waived = 0;
};

/// The waiver of one failure of a case. One that matches but is exceeded is told in the reason.
Active* find_waiver(std::vector<Active>& all, Metric metric, CaseVerdict& v) {
  for (Active& a : all) {
    if (!a.valid || a.waiver->metric != metric || !matches(*a.waiver, v)) continue;
    if (!is_time(metric) || loss(v) <= a.waiver->max_regression) return &a;
    v.why += fmt::format("; beyond the {:.3g} % of waiver {}", 100 * a.waiver->max_regression,
                         a.waiver->id);
  }
  return nullptr;
}

/// All of its failures are waived, or none is: half a waiver would hide the other half.
void waive(std::vector<Active>& all, CaseVerdict& v) {
  std::vector<Active*> used;
  for (const Metric metric : failures_of(v)) {
    Active* a = find_waiver(all, metric, v);
    if (a == nullptr) return;
    used.push_back(a);
  }
  if (used.empty()) return;
  find(v, Rule::waived, v.why);
  for (Active* a : used) {
    ++a->waived;
    const Waiver& w = *a->waiver;
    v.waiver += (v.waiver.empty() ? "" : ",") + w.id;
    v.why += fmt::format("; waived by {} until {:%F}: {}", w.id, w.expires, w.reason);
  }
}

void refuse_invalid(std::vector<Active>& all, GateResult& result, sys_days day, bool full) {
  const int most = full ? waivable(result.cases.size()) : std::numeric_limits<int>::max();
  for (Active& a : all) {
    const Waiver& w = *a.waiver;
    for (const CaseVerdict& v : result.cases) {
      if (!matches(w, v)) continue;
      ++a.matched;
      a.failing += std::ranges::count(failures_of(v), w.metric) > 0;
    }
    std::string problem;
    if (day > w.expires) {
      problem = fmt::format("of {} expired on {:%F}; {}", w.owner, w.expires,
                            a.failing > 0 ? fmt::format("fix what still fails, {} ({})",
                                                        count_of(a.failing, "row"), w.issue)
                                          : "delete it");
    } else if (a.matched > w.max_cases) {
      problem = fmt::format(
          "matches {}, its max_cases is {}, so it waives nothing; narrow cases or variant",
          count_of(a.matched, "row"), w.max_cases);
    } else if (a.matched > most) {
      problem = fmt::format(
          "matches {} of {}, more than {:g} %, so it waives nothing; narrow cases or variant",
          a.matched, count_of(result.cases.size(), "row"), 100 * kWaivedShare);
    }
    a.valid = problem.empty();
    if (!a.valid) result.waiver_problems.push_back(fmt::format("waiver {} {}", w.id, problem));
  }
}

void limit_share(GateResult& result) {
  std::map<std::string, std::pair<int, int>> suites;  // waived, all
  for (const CaseVerdict& v : result.cases) {
    auto& [waived, all] = suites[v.id.suite];
    waived += v.outcome == Outcome::waived;
    ++all;
  }
  for (const auto& [suite, counts] : suites) {
    const auto [waived, all] = counts;
    if (waived <= waivable(static_cast<size_t>(all))) continue;
    result.waiver_problems.push_back(
        fmt::format("{} of the {} rows of suite '{}' are waived, more than {:g} %: fix some",
                    waived, all, suite, 100 * kWaivedShare));
  }
}

}  // namespace

sys_days today() {
  return std::chrono::floor<days>(std::chrono::system_clock::now());
}

std::vector<Waiver> parse_waivers(const std::string& text, const std::string& name, sys_days day) {
  return mapped(read_sections(text, name),
                [&](Section& section) { return to_waiver(std::move(section), day); });
}

std::vector<Waiver> read_waivers(const std::filesystem::path& path) {
  return parse_waivers(read_file(path), path.string());
}

std::vector<Waiver> read_waivers(const std::filesystem::path& path, bool of_choices) {
  if (path.empty()) return {};
  std::vector<Waiver> waivers = read_waivers(path);
  std::erase_if(
      waivers, [&](const Waiver& w) { return (w.metric == Waiver::Metric::regret) != of_choices; });
  return waivers;
}

void apply_waivers(GateResult& result, const std::vector<Waiver>& waivers, const std::string& klass,
                   sys_days day, bool full) {
  std::vector<Active> all;
  for (const Waiver& w : waivers) {
    if (w.klass == klass) all.push_back({&w});
  }
  refuse_invalid(all, result, day, full);
  for (CaseVerdict& v : result.cases) waive(all, v);
  for (const Active& a : all) {
    const Waiver& w = *a.waiver;
    if (a.waived > 0) {
      result.waiver_notes.push_back(fmt::format("{} waived by {} until {:%F} ({}, {}): {}",
                                                count_of(a.waived, "row"), w.id, w.expires, w.owner,
                                                w.issue, w.reason));
    } else if (a.valid && full && a.failing == 0) {
      result.waiver_notes.push_back(
          fmt::format("waiver {} was not needed: none of the {} rows that it matches fails; delete "
                      "it once that lasts",
                      w.id, a.matched));
    }
  }
  limit_share(result);
  count_outcomes(result);
}

}  // namespace moegate
