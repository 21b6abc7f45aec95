// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/choice_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/campaign/runner.h"
#include "harness/campaign/tuning.h"
#include "harness/judge/exit.h"
#include "harness/store/sqlite.h"

namespace moegate {
namespace {

/// Groups for which every operator has a row with times; by group, the operators' rows.
using Grouped = std::map<std::string, std::vector<std::vector<const ChoiceOption*>>>;
Grouped grouped(const std::vector<ChoicePart>& parts, const Microseconds& times, size_t rounds) {
  Grouped groups;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto add = [&](const ChoiceOption& option) {
      const auto at = times.find(option.row);
      if (at == times.end() || at->second.size() != rounds) return;
      groups[option.group].resize(parts.size());
      groups[option.group][i].push_back(&option);
    };
    add(parts[i].shipped);
    for (const ChoiceOption& other : parts[i].others) add(other);
  }
  std::erase_if(groups, [](const auto& group) {
    return std::ranges::any_of(group.second, [](const auto& rows) { return rows.empty(); });
  });
  return groups;
}

/// The choice that comes next to what was chosen: one operator's other row of the same group, or
/// another group. Without it nothing could be said of a choice that nothing else comes near.
std::set<RowName> runner_up(const std::vector<ChoicePart>& parts, const Grouped& groups,
                            const std::function<double(const ChoiceOption*)>& us) {
  std::set<RowName> next;
  double least = std::numeric_limits<double>::infinity();
  const auto offer = [&](double costs, std::set<RowName> rows) {
    if (costs < least) std::tie(least, next) = std::pair(costs, std::move(rows));
  };
  for (const auto& [name, operators] : groups) {
    double sum = 0;
    std::set<RowName> fastest;
    for (size_t i = 0; i < parts.size(); ++i) {
      const ChoiceOption& shipped = parts[i].shipped;
      for (const ChoiceOption* option : operators[i]) {
        const bool other = name == shipped.group && option->row != shipped.row;
        if (other) offer(us(option) - us(&shipped), {option->row});
      }
      const ChoiceOption* best = *std::ranges::min_element(operators[i], {}, us);
      sum += us(best) - us(&shipped);
      fastest.insert(best->row);
    }
    if (name != parts[0].shipped.group) offer(sum, std::move(fastest));
  }
  return next;
}

}  // namespace

std::set<RowName> finalists(const std::vector<ChoicePart>& parts, const Microseconds& screened) {
  std::set<RowName> left;
  for (const ChoicePart& part : parts) left.insert(part.shipped.row);
  const Grouped groups = grouped(parts, screened, 1);
  const auto us = [&](const ChoiceOption* option) {
    const auto at = screened.find(option->row);
    return at == screened.end() ? std::numeric_limits<double>::infinity() : at->second[0];
  };
  std::map<std::string, double> sums;
  for (const auto& [name, operators] : groups) {
    for (const auto& rows : operators) sums[name] += us(*std::ranges::min_element(rows, {}, us));
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, sum] : sums) least = std::min(least, sum);
  for (const auto& [name, operators] : groups) {
    if (sums[name] > (1 + kContends) * least) continue;
    for (const auto& rows : operators) {
      const double fastest = us(*std::ranges::min_element(rows, {}, us));
      for (const ChoiceOption* option : rows) {
        if (us(option) <= (1 + kContends) * fastest) left.insert(option->row);
      }
    }
  }
  if (left.size() == parts.size()) left.merge(runner_up(parts, groups, us));
  return left;
}

ChoiceTimes choice_times(const std::vector<ChoicePart>& parts, const Microseconds& times) {
  const size_t rounds = times.at(parts.at(0).shipped.row).size();
  const auto sum_into = [&](Alternative& sum, const ChoiceOption& option) {
    sum.name += (sum.name.empty() ? "" : " + ") + option.name;
    sum.us.resize(rounds);
    for (size_t i = 0; i < rounds; ++i) sum.us[i] += times.at(option.row)[i];
  };
  ChoiceTimes result;
  for (const ChoicePart& part : parts) sum_into(result.shipped, part.shipped);
  for (const auto& [name, operators] : grouped(parts, times, rounds)) {
    std::vector<Alternative> sums(1);
    for (const auto& rows : operators) {
      std::vector<Alternative> longer;
      for (const Alternative& sum : sums) {
        for (const ChoiceOption* option : rows) sum_into(longer.emplace_back(sum), *option);
      }
      sums = std::move(longer);
    }
    for (Alternative& sum : sums) {
      if (sum.name != result.shipped.name) result.others.push_back(std::move(sum));
    }
  }
  return result;
}

namespace {

/// The run of a check.
class Checking {
 public:
  Checking(Cells cells, double limit, const RunOptions& run)
      : cells_(std::move(cells)),
        limit_(limit),
        rounds_(run.rounds),
        store_(Store::open(run.db, Store::Mode::write)) {}

  Tally measure(Prepared prepared, int64_t resume);
  void conclude(ChoiceReport& report);

 private:
  Microseconds times(int first, int last);
  std::set<RowName> again();
  CheckedCell untimed(const std::string& series, int tokens, const Cell& cell);
  void find_cliffs(const std::vector<std::pair<size_t, std::vector<double>>>& timed,
                   ChoiceReport& report) const;
  void write(const ChoiceReport& report);

  const Cells cells_;
  const double limit_;
  const int rounds_;
  Store store_;
  int64_t run_ = 0;
  std::map<RowName, Result> bad_;  // the first result of a row that is none
};

Microseconds Checking::times(int first, int last) {
  Microseconds times;
  for (const Level& level : store_.levels(run_)) {
    const RowName row(level.key, level.variant);
    if (!level.result.measured()) bad_.emplace(row, level.result);
    if (level.round < first || level.round > last || !level.result.measured()) continue;
    times[row].push_back(level.result.span_ns / 1e3);
  }
  for (const auto& [row, result] : bad_) times.erase(row);
  return times;
}

std::set<RowName> Checking::again() {
  const Microseconds screened = times(0, 0);
  std::set<RowName> all;
  for (const auto& [name, cell] : cells_) all.merge(finalists(cell.parts, screened));
  std::erase_if(all, [&](const RowName& row) { return bad_.contains(row); });
  return all;
}

Tally Checking::measure(Prepared prepared, int64_t resume) {
  return measure_narrowed(store_, std::move(prepared), resume, rounds_ + 1,
                          [&](int64_t run, const auto&) {
                            run_ = run;
                            return again();
                          });
}

/// A cell; its finding is `best` where all that was chosen has times.
CheckedCell Checking::untimed(const std::string& series, int tokens, const Cell& cell) {
  const Chosen& first = *cell.asked[0];
  CheckedCell checked{.id = {first.spec.suite, first.spec.key(), first.variant},
                      .series = series,
                      .tokens = tokens};
  for (size_t i = 0; i < cell.asked.size(); ++i) {
    const Choice& choice = cell.asked[i]->choice;
    if (!choice.path.empty()) checked.path += (i > 0 ? "; " : "") + choice.path;
    if (checked.stale.empty()) checked.stale = choice.stale;
    const auto bad = bad_.find(cell.parts[i].shipped.row);
    if (bad == bad_.end() || checked.finding == RegretFinding::wrong) continue;
    const Status status = bad->second.status;
    if (bad->second.never_quiet()) {  // that says nothing about the choice
      if (checked.finding == RegretFinding::best) {
        checked.finding = RegretFinding::blind;
        checked.why = "no launch had the machine to itself; check again when it is quiet";
      }
      continue;
    }
    checked.finding = status == Status::wrong         ? RegretFinding::wrong
                      : status == Status::unsupported ? RegretFinding::unsupported
                                                      : RegretFinding::fails;
    checked.why = bad->second.why;
  }
  return checked;
}

std::string share_text(double share, double low, double high) {
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * share, 100 * low, 100 * high);
}

std::string why_of(const CheckedCell& cell) {
  const Regret& r = cell.regret;
  if (cell.finding == RegretFinding::blind)
    return "there is no other configuration to compare with";
  std::string why = share_text(r.share, r.low, r.high);
  if (cell.tokens > 0) why += fmt::format(" at {} tokens", cell.tokens);
  why += ": " + cell.path;
  return cell.finding == RegretFinding::best ? why : fmt::format("{}; {} is faster", why, r.best);
}

void Checking::conclude(ChoiceReport& report) {
  const Microseconds finals = times(1, rounds_);
  std::vector<ChoiceTimes> questions;
  std::vector<std::pair<size_t, std::vector<double>>> timed;  // of a cell: what was chosen
  for (const auto& [name, cell] : cells_) {
    report.cells.push_back(untimed(name.first, name.second, cell));
    if (report.cells.back().finding != RegretFinding::best) continue;
    questions.push_back(choice_times(cell.parts, finals));
    timed.emplace_back(report.cells.size() - 1, questions.back().shipped.us);
  }
  const std::vector<Regret> regrets = judge_regrets(questions, limit_);
  for (size_t i = 0; i < timed.size(); ++i) {
    CheckedCell& cell = report.cells[timed[i].first];
    cell.regret = regrets[i];
    cell.finding = regrets[i].finding;
    cell.why = why_of(cell);
  }
  find_cliffs(timed, report);
  write(report);
}

/// Cells are in the order of their series and tokens.
void Checking::find_cliffs(const std::vector<std::pair<size_t, std::vector<double>>>& timed,
                           ChoiceReport& report) const {
  std::vector<Step> steps;
  std::vector<CheckedCliff> cliffs;
  for (size_t i = 1; i < timed.size(); ++i) {
    const CheckedCell &fewer = report.cells[timed[i - 1].first],
                      &more = report.cells[timed[i].first];
    if (fewer.series != more.series) continue;
    steps.push_back({timed[i - 1].second, timed[i].second});
    cliffs.push_back({fewer.id, fewer.tokens, more.tokens, {}, ""});
  }
  const std::vector<Cliff> found = judge_cliffs(steps, limit_);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].over) continue;
    CheckedCliff& cliff = report.cliffs.emplace_back(std::move(cliffs[i]));
    cliff.cliff = found[i];
    cliff.why = fmt::format("{} tokens take {} longer than {}: padding would win", cliff.fewer,
                            share_text(found[i].share, found[i].low, found[i].high), cliff.more);
  }
}

struct FindingText {
  const char *name, *verdict;
  Exit exit;
};

FindingText text_of(RegretFinding finding) {
  constexpr std::array<FindingText, 7> kTexts = {{
      {"best", "pass", Exit::ok},
      {"within", "pass", Exit::ok},
      {"regret", "regressed", Exit::latency},
      {"blind", "inconclusive", Exit::inconclusive},
      {"wrong", "wrong", Exit::accuracy},
      {"fails", "missing", Exit::coverage},
      {"unsupported", "inconclusive", Exit::ok},
  }};
  return kTexts.at(static_cast<size_t>(finding));
}

void Checking::write(const ChoiceReport& report) {
  Database& db = store_.database();
  Transaction transaction(db);
  db.run("DELETE FROM verdict WHERE run_id = ?1 AND against IN ('regret', 'cliff')", run_);
  Statement insert(
      db,
      "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base, "
      "head, effect, low, high, df, p, p_adjusted, blind, family, waiver, why, cause) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
      "?16, '', ?17, ?18)");
  for (const CheckedCell& cell : report.cells) {
    const Regret& r = cell.regret;
    insert
        .bind(run_, "regret", cell.id.suite, cell.id.key, cell.id.variant,
              text_of(cell.finding).verdict, r.best_us, r.shipped_us, r.share, r.low, r.high, r.df,
              r.p, r.p_adjusted, static_cast<int64_t>(cell.finding == RegretFinding::blind),
              static_cast<int64_t>(report.cells.size()), cell.why, r.best)
        .run();
  }
  for (const CheckedCliff& one : report.cliffs) {
    const Cliff& c = one.cliff;
    insert
        .bind(run_, "cliff", one.id.suite, one.id.key, one.id.variant, "regressed",
              static_cast<double>(one.more), static_cast<double>(one.fewer), c.share, c.low, c.high,
              c.df, c.p, c.p_adjusted, int64_t{0}, static_cast<int64_t>(report.cliffs.size()),
              one.why, "")
        .run();
  }
  transaction.commit();
}

}  // namespace

const char* name_of(RegretFinding finding) {
  return text_of(finding).name;
}

PreparedCheck prepare_check(const CheckOptions& options, const Registry& registry,
                            WorkerSource& source) {
  const bool elsewhere = !options.run.worker.modules.empty();
  const RunOptions run =
      options.resume > 0 ? options.run : checking_run(options.run, registry, elsewhere);
  Prepared prepared = prepare(run, source);
  Questions asked = ask_choosers(prepared.plan.cases, registry, prepared.plan.hello.device);
  return {std::move(prepared), std::move(asked)};
}

ChoiceReport check_choices(PreparedCheck prepared, const CheckOptions& options) {
  ChoiceReport report;
  const Questions asked = std::move(prepared.asked);
  report.notes = asked.notes;
  Cells cells = cells_of(asked.choices, prepared.run.plan);
  const std::filesystem::path db = prepared.run.options.db;
  if (db.has_parent_path()) std::filesystem::create_directories(db.parent_path());
  Checking checking(std::move(cells), options.limit, prepared.run.options);
  report.tally = checking.measure(std::move(prepared.run), options.resume);
  if (!report.tally.interrupted) checking.conclude(report);
  return report;
}

Exit check_exit(const ChoiceReport& report) {
  if (report.tally.interrupted) return Exit::interrupted;
  Exit exit = Exit::ok;
  for (const CheckedCell& cell : report.cells) {
    exit = gravest({exit, text_of(cell.finding).exit});
  }
  return gravest({exit, report.cliffs.empty() ? Exit::ok : Exit::latency});
}

}  // namespace moegate
