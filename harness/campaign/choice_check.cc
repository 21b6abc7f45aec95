// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/choice_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <tuple>

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

struct RowTimes {
  Microseconds times;             // of rows whose every result is a measurement
  std::map<RowName, Result> bad;  // of the others, the first result that is none
};

/// The times are those of the rounds [first, last].
RowTimes read_rounds(Store& store, int64_t run, int first, int last) {
  RowTimes read;
  for (const Level& level : store.levels(run)) {
    const RowName row(level.key, level.variant);
    if (!level.result.measured()) {
      read.bad.emplace(row, level.result);
    } else if (first <= level.round && level.round <= last) {
      read.times[row].push_back(level.result.span_ns / 1e3);
    }
  }
  for (const auto& [row, result] : read.bad) read.times.erase(row);
  return read;
}

std::set<RowName> measured_again(const Cells& cells, const RowTimes& screened) {
  std::set<RowName> all;
  for (const auto& [name, cell] : cells) all.merge(finalists(cell.parts, screened.times));
  std::erase_if(all, [&](const RowName& row) { return screened.bad.contains(row); });
  return all;
}

/// A cell; its finding is `best` where all that was chosen has times.
CheckedCell untimed(const std::string& series, int tokens, const Cell& cell,
                    const std::map<RowName, Result>& all_bad) {
  const Chosen& first = *cell.asked[0];
  CheckedCell checked{.id = {first.spec.suite, first.spec.key(), first.variant},
                      .series = series,
                      .tokens = tokens};
  for (size_t i = 0; i < cell.asked.size(); ++i) {
    const Choice& choice = cell.asked[i]->choice;
    if (!choice.path.empty()) checked.path += (i > 0 ? "; " : "") + choice.path;
    if (checked.stale.empty()) checked.stale = choice.stale;
    const auto bad = all_bad.find(cell.parts[i].shipped.row);
    if (bad == all_bad.end() || checked.finding == RegretFinding::wrong) continue;
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

/// `timed`: places of cells with times, by series and tokens; `chosen`: what was chosen there.
void find_cliffs(const std::vector<size_t>& timed, const std::vector<ChoiceTimes>& chosen,
                 double limit, ChoiceReport& report) {
  std::vector<Step> steps;
  std::vector<CheckedCliff> cliffs;
  for (size_t i = 1; i < timed.size(); ++i) {
    const CheckedCell &fewer = report.cells[timed[i - 1]], &more = report.cells[timed[i]];
    if (fewer.series != more.series) continue;
    steps.push_back({chosen[i - 1].shipped.us, chosen[i].shipped.us});
    cliffs.push_back({fewer.id, fewer.tokens, more.tokens, {}, ""});
  }
  const std::vector<Cliff> found = judge_cliffs(steps, limit);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].over) continue;
    CheckedCliff& cliff = report.cliffs.emplace_back(std::move(cliffs[i]));
    cliff.cliff = found[i];
    cliff.why = fmt::format("{} tokens take {} longer than {}: padding would win", cliff.fewer,
                            share_text(found[i].share, found[i].low, found[i].high), cliff.more);
  }
}

void conclude(const Cells& cells, const RowTimes& finals, double limit, ChoiceReport& report) {
  std::vector<ChoiceTimes> chosen;
  std::vector<size_t> timed;
  for (const auto& [name, cell] : cells) {
    report.cells.push_back(untimed(name.first, name.second, cell, finals.bad));
    if (report.cells.back().finding != RegretFinding::best) continue;
    chosen.push_back(choice_times(cell.parts, finals.times));
    timed.push_back(report.cells.size() - 1);
  }
  const std::vector<Regret> regrets = judge_regrets(chosen, limit);
  for (size_t i = 0; i < timed.size(); ++i) {
    CheckedCell& cell = report.cells[timed[i]];
    cell.regret = regrets[i];
    cell.finding = regrets[i].finding;
    cell.why = why_of(cell);
  }
  find_cliffs(timed, chosen, limit, report);
}

struct FindingText {
  const char *name, *verdict;
  Exit exit;
};

FindingText text_of(RegretFinding finding) {
  constexpr auto kTexts = std::to_array<FindingText>({
      {"best", "pass", Exit::ok},
      {"within", "pass", Exit::ok},
      {"regret", "regressed", Exit::latency},
      {"blind", "inconclusive", Exit::inconclusive},
      {"wrong", "wrong", Exit::accuracy},
      {"fails", "missing", Exit::coverage},
      {"unsupported", "inconclusive", Exit::ok},
  });
  static_assert(kTexts.size() == static_cast<size_t>(RegretFinding::unsupported) + 1);
  return kTexts.at(static_cast<size_t>(finding));
}

void write(Store& store, const ChoiceReport& report) {
  const int64_t run = report.tally.run;
  Database& db = store.database();
  Transaction transaction(db);
  db.run("DELETE FROM verdict WHERE run_id = ?1 AND against IN ('regret', 'cliff')", run);
  Statement insert(
      db,
      "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base, "
      "head, effect, low, high, df, p, p_adjusted, blind, family, waiver, why, cause) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
      "?16, '', ?17, ?18)");
  for (const CheckedCell& cell : report.cells) {
    const Regret& r = cell.regret;
    insert
        .bind(run, "regret", cell.id.suite, cell.id.key, cell.id.variant,
              text_of(cell.finding).verdict, r.best_us, r.shipped_us, r.share, r.low, r.high, r.df,
              r.p, r.p_adjusted, cell.finding == RegretFinding::blind,
              static_cast<int64_t>(report.cells.size()), cell.why, r.best)
        .run();
  }
  for (const CheckedCliff& one : report.cliffs) {
    const Cliff& c = one.cliff;
    insert
        .bind(run, "cliff", one.id.suite, one.id.key, one.id.variant, "regressed",
              static_cast<double>(one.more), static_cast<double>(one.fewer), c.share, c.low, c.high,
              c.df, c.p, c.p_adjusted, int64_t{0}, static_cast<int64_t>(report.cliffs.size()),
              one.why, "")
        .run();
  }
  transaction.commit();
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
  const Cells cells = cells_of(asked.choices, prepared.run.plan);
  const std::filesystem::path db = prepared.run.options.db;
  if (db.has_parent_path()) std::filesystem::create_directories(db.parent_path());
  Store store = Store::open(db, Store::Mode::write);
  const int rounds = prepared.run.options.rounds;
  report.tally = measure_narrowed(store, std::move(prepared.run), options.resume, rounds + 1,
                                  [&](int64_t run, const auto&) {
                                    return measured_again(cells, read_rounds(store, run, 0, 0));
                                  });
  if (report.tally.interrupted) return report;
  conclude(cells, read_rounds(store, report.tally.run, 1, rounds), options.limit, report);
  write(store, report);
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
