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

/// Cells that differ in their routing alone, by what they share and the tokens.
using Layers = std::map<std::pair<std::string, int>, std::vector<const Cell*>>;
Layers routed_layers(const Cells& cells) {
  Layers layers;
  for (const auto& [name, cell] : cells) layers[{cell.layer, name.second}].push_back(&cell);
  std::erase_if(layers, [](const auto& layer) { return layer.second.size() < 2; });
  return layers;
}

std::set<RowName> measured_again(const Cells& cells, const RowTimes& screened) {
  std::set<RowName> all;
  for (const auto& [name, routed] : routed_layers(cells)) {
    for (const auto& rows : best_of_mean(routed, screened.times)) {
      for (const ChoiceOption* row : rows) all.insert(row->row);
    }
  }
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
    cliffs.push_back({timed[i - 1], fewer.id, fewer.tokens, more.tokens, {}, ""});
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

/// A cell's times as if it had been given what `picked` names, where all of that was timed.
std::optional<ChoiceTimes> times_of(const Cell& cell,
                                    const std::vector<const ChoiceOption*>& picked,
                                    const Microseconds& times) {
  std::string name;
  for (const ChoiceOption* option : picked) name += (name.empty() ? "" : " + ") + option->name;
  const bool timed = std::ranges::all_of(
      cell.parts, [&](const ChoicePart& part) { return times.contains(part.shipped.row); });
  if (!timed) return std::nullopt;
  ChoiceTimes chosen = choice_times(cell.parts, times);
  if (chosen.shipped.name == name) return chosen;
  const auto at = std::ranges::find(chosen.others, name, &Alternative::name);
  if (at == chosen.others.end()) return std::nullopt;
  std::swap(chosen.shipped, *at);
  return chosen;
}

/// What the first process finds the best on the mean, as the others measure it: of rounds that name
/// something, none measures it.
void find_means(const Cells& cells, const RowTimes& screened, const RowTimes& finals,
                ChoiceReport& report) {
  const auto place_of = [&](const Cell* cell) {
    const auto is_it = [&](const auto& one) { return &one.second == cell; };
    return static_cast<size_t>(std::distance(cells.begin(), std::ranges::find_if(cells, is_it)));
  };
  for (const auto& [name, routed] : routed_layers(cells)) {
    const Picked picked = best_of_mean(routed, screened.times);
    std::string line;
    for (size_t i = 0; i < picked.size(); ++i) {
      const auto times = times_of(*routed[i], picked[i], finals.times);
      if (!times) continue;
      CheckedCell& cell = report.cells[place_of(routed[i])];
      cell.mean = times->shipped.name;
      cell.of_mean = judge_regrets({&*times, 1}, 0)[0];
      if (line.empty()) line = fmt::format("{} {}: {}", cell.id.key, cell.id.variant, cell.mean);
      const Regret& r = *cell.of_mean;
      line += fmt::format(", {}: {}", routing_of(routed[i]->asked[0]->spec),
                          share_text(r.share, r.low, r.high));
    }
    if (!line.empty()) report.means.push_back(line);
  }
}

/// Lets known regrets pass. A cell is a row, its cliff included: half of a waiver would hide the
/// other half.
void waive(const CheckOptions& options, ChoiceReport& report) {
  if (!options.waive) return;
  GateResult rows;
  const auto fail = [&](size_t cell, const std::string& why, double share) {
    CaseVerdict& v = rows.cases[cell];
    if (!v.latency) v.latency = Judgement{Outcome::regressed};
    v.latency->effect = std::max(v.latency->effect, share);
    find(v, Rule::slower, v.why.empty() ? why : v.why);
  };
  for (const CheckedCell& cell : report.cells) {
    rows.cases.push_back({.id = cell.id, .against = kAgainstBest});
    if (cell.finding == RegretFinding::regret)
      fail(rows.cases.size() - 1, cell.why, cell.regret.share);
  }
  for (const CheckedCliff& one : report.cliffs) fail(one.cell, one.why, one.cliff.share);
  options.waive(rows, report.tally.device.klass);
  for (size_t i = 0; i < rows.cases.size(); ++i) {
    CheckedCell& cell = report.cells[i];
    cell.waiver = rows.cases[i].waiver;
    if (cell.finding == RegretFinding::regret) cell.why = rows.cases[i].why;
  }
  for (CheckedCliff& one : report.cliffs) {
    if (report.cells[one.cell].finding != RegretFinding::regret) one.why = rows.cases[one.cell].why;
  }
  std::ranges::move(rows.waiver_notes, std::back_inserter(report.notes));
  report.waiver_problems = std::move(rows.waiver_problems);
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

/// A sum over a layer is the verdict of its first operator's row.
void write(Store& store, const ChoiceReport& report) {
  const int64_t run = report.tally.run;
  const auto family = static_cast<int64_t>(report.cells.size());
  Database& db = store.database();
  Transaction transaction(db);
  db.run("DELETE FROM verdict WHERE run_id = ?1 AND against IN ('regret', 'cliff', 'mean')", run);
  Statement insert(
      db,
      "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base, "
      "head, effect, low, high, df, p, p_adjusted, blind, family, waiver, why, cause) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
      "?16, ?17, ?18, ?19)");
  const auto add = [&](const char* against, const CheckedCell& cell, const Regret& r,
                       const char* outcome, const std::string& why, const std::string& cause) {
    insert
        .bind(run, against, cell.id.suite, cell.id.key, cell.id.variant, outcome, r.best_us,
              r.shipped_us, r.share, r.low, r.high, r.df, r.p, r.p_adjusted,
              cell.finding == RegretFinding::blind, family,
              std::string(cell.is_waived() ? cell.waiver : ""), why, cause)
        .run();
  };
  for (const CheckedCell& cell : report.cells) {
    add(kAgainstBest, cell, cell.regret,
        cell.is_waived() ? "waived" : text_of(cell.finding).verdict, cell.why, cell.regret.best);
    if (cell.of_mean) add("mean", cell, *cell.of_mean, "pass", "", cell.mean);
  }
  for (const CheckedCliff& one : report.cliffs) {
    const Cliff& c = one.cliff;
    const std::string& waiver = report.cells[one.cell].waiver;
    insert
        .bind(run, "cliff", one.id.suite, one.id.key, one.id.variant,
              waiver.empty() ? "regressed" : "waived", static_cast<double>(one.more),
              static_cast<double>(one.fewer), c.share, c.low, c.high, c.df, c.p, c.p_adjusted,
              int64_t{0}, static_cast<int64_t>(report.cliffs.size()), waiver, one.why, "")
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

Picked best_of_mean(const std::vector<const Cell*>& cells, const Microseconds& screened) {
  struct Sum {
    double us = 0;
    std::vector<const ChoiceOption*> rows;
  };
  std::map<std::string, std::vector<std::map<std::string, Sum>>> groups;  // by operator, name
  for (const Cell* cell : cells) {
    for (const auto& [group, operators] : grouped(cell->parts, screened, 1)) {
      groups[group].resize(operators.size());
      for (size_t i = 0; i < operators.size(); ++i) {
        for (const ChoiceOption* option : operators[i]) {
          Sum& sum = groups[group][i][option->name];
          sum.us += screened.at(option->row)[0];
          sum.rows.push_back(option);
        }
      }
    }
  }
  Picked best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [group, operators] : groups) {
    double us = 0;
    Picked picked(cells.size());
    for (const auto& names : operators) {
      Sum fastest{std::numeric_limits<double>::infinity()};
      for (const auto& [name, sum] : names) {
        if (sum.rows.size() == cells.size() && sum.us < fastest.us) fastest = sum;
      }
      us += fastest.us;
      for (size_t i = 0; i < fastest.rows.size(); ++i) picked[i].push_back(fastest.rows[i]);
    }
    if (us < least) std::tie(least, best) = std::pair(us, std::move(picked));
  }
  return best;
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
  const RowTimes finals = read_rounds(store, report.tally.run, 1, rounds);
  conclude(cells, finals, options.limit, report);
  find_means(cells, read_rounds(store, report.tally.run, 0, 0), finals, report);
  waive(options, report);
  write(store, report);
  return report;
}

Exit check_exit(const ChoiceReport& report) {
  if (report.tally.interrupted) return Exit::interrupted;
  Exit exit = Exit::ok;
  for (const CheckedCell& cell : report.cells) {
    exit = gravest({exit, cell.is_waived() ? Exit::ok : text_of(cell.finding).exit});
  }
  for (const CheckedCliff& cliff : report.cliffs) {
    if (report.cells[cliff.cell].waiver.empty()) exit = gravest({exit, Exit::latency});
  }
  return gravest({exit, report.waiver_problems.empty() ? Exit::ok : Exit::waiver});
}

}  // namespace moegate
