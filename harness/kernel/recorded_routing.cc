// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/recorded_routing.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"

namespace moegate {
namespace fs = std::filesystem;
namespace {

/// A suite's own recordings lie beside it and must be found from any folder. What is nowhere is
/// named as it was given.
fs::path found(const fs::path& path) {
  std::error_code ignored;
  if (path.is_absolute() || fs::exists(path, ignored)) return path;
  const fs::path beside_suites = home() / path;
  return fs::exists(beside_suites, ignored) ? beside_suites : path;
}

std::vector<std::string> recordings_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path().string());
  }
  if (error) usage_error("folder '{}' cannot be read: {}", folder.string(), error.message());
  if (files.empty()) {
    usage_error(
        "folder '{}' has no .npy file; `python3 -m moegate.routing import` writes recordings",
        folder.string());
  }
  std::ranges::sort(files, NaturalLess());
  return files;
}

/// First rows of the forward passes that a folder's recordings are of; empty where nothing says so.
std::vector<int64_t> passes_in(const fs::path& folder) {
  const fs::path path = folder / "routing.json";
  if (!is_file(path)) return {};
  const nlohmann::json facts = parse_json(path.string(), read_file(path));
  const nlohmann::json stated = facts.is_object() ? facts.value("passes", nlohmann::json()) : facts;
  if (stated.is_null()) return {};
  std::vector<int64_t> passes;
  const auto is_row = [](const nlohmann::json& row) { return row.is_number_unsigned(); };
  if (stated.is_array() && std::ranges::all_of(stated, is_row)) stated.get_to(passes);
  const bool ascends = std::ranges::adjacent_find(passes, std::greater_equal<>()) == passes.end();
  if (ascends && !passes.empty() && passes[0] == 0) return passes;
  usage_error("{}: 'passes' is no list of rows that begins with 0 and ascends; import it again",
              path.string());
}

/// The first rows of all that may be replayed: passes of `tokens` tokens, else so many rows in
/// turn. At least one, so that its reader says what a short recording lacks.
std::vector<int64_t> first_rows(int64_t rows, int64_t tokens, std::vector<int64_t> passes) {
  std::vector<int64_t> first;
  passes.push_back(rows);
  for (size_t i = 0; i + 1 < passes.size(); ++i) {
    if (passes[i + 1] - passes[i] == tokens) first.push_back(passes[i]);
  }
  if (!first.empty()) return first;
  first.push_back(0);
  for (int64_t row = tokens; row + tokens <= rows; row += tokens) first.push_back(row);
  return first;
}

std::vector<int> checked_row(const std::string& path, const IntTable& table, int64_t row,
                             const RoutingShape& shape) {
  std::vector<int> ids;
  for (int slot = 0; slot < shape.topk; ++slot) {
    const int64_t id = table.at(row, slot);
    if (id < 0 || id >= shape.experts) {
      usage_error(
          "'{}' row {}: id {} is not in [0, {}); replay it with the experts it was recorded with",
          path, row, id, shape.experts);
    }
    if (std::find(ids.begin(), ids.end(), static_cast<int>(id)) != ids.end()) {
      usage_error(
          "'{}' row {}: id {} appears twice; a token's experts must differ, record it again", path,
          row, id);
    }
    ids.push_back(static_cast<int>(id));
  }
  return ids;
}

std::vector<std::vector<int>> rows_of(const std::string& path, const IntTable& table, int64_t first,
                                      const RoutingShape& shape) {
  if (table.columns != shape.topk) {
    usage_error(
        "'{}' has shape [{}, {}], but the case has topk = {}; record it with that topk or change "
        "topk",
        path, table.rows, table.columns, shape.topk);
  }
  if (table.rows < first + shape.tokens) {
    usage_error("'{}' has {} rows, but the case has tokens = {}; record more or ask for at most {}",
                path, table.rows, shape.tokens, table.rows);
  }
  std::vector<std::vector<int>> rows;
  for (int t = 0; t < shape.tokens; ++t) rows.push_back(checked_row(path, table, first + t, shape));
  return rows;
}

/// `remedy`: what else to name.
IntTable read_by_expert(const std::string& file, int experts, const char* remedy) {
  IntTable table = read_npy(file);
  if (table.columns == 1 && table.rows == experts) return table;
  usage_error("'{}' has shape [{}, {}], but the case has experts = {}; name {}", file, table.rows,
              table.columns, experts, remedy);
}

}  // namespace

std::vector<std::vector<int>> recorded_ids(const std::string& path, const RoutingShape& shape,
                                           uint64_t seed) {
  const fs::path place = found(path);
  std::error_code ignored;  // then it is read as a file, whose reader says why not
  if (!fs::is_directory(place, ignored)) {
    return rows_of(place.string(), read_npy(place.string()), 0, shape);
  }
  const std::vector<std::string> files = recordings_in(place);
  constexpr auto kApart = static_cast<uint64_t>(kSetsApart);
  const uint64_t turn = seed % kApart + seed / kApart;
  const std::string& file = files[turn % files.size()];
  const IntTable table = read_npy(file);
  const auto first = first_rows(table.rows, shape.tokens, passes_in(place));
  return rows_of(file, table, first[turn / files.size() % first.size()], shape);
}

std::vector<double> recorded_loads(const std::string& path, const RoutingShape& shape) {
  const std::string file = found(path).string();
  const IntTable table = read_by_expert(file, shape.experts, "counts of so many");
  double sum = 0;
  for (const int64_t count : table.values) {
    if (count < 0) usage_error("'{}' has the count {}; counts begin with 0", file, count);
    sum += static_cast<double>(count);
  }
  const auto chosen = std::ranges::count_if(table.values, [](int64_t count) { return count > 0; });
  if (chosen < shape.topk) {
    usage_error("'{}' has {} experts with a count above 0, but the case has topk = {}; record more",
                file, chosen, shape.topk);
  }
  // Over their mean, which puts the weights where routing_scores() tells them apart best.
  std::vector<double> log_weights;
  for (const int64_t count : table.values) {
    log_weights.push_back(std::log(static_cast<double>(count) * shape.experts / sum));
  }
  return log_weights;
}

std::vector<int> recorded_ranks(const std::string& path, int experts, int ranks) {
  const std::string file = found(path).string();
  const IntTable table = read_by_expert(file, experts, "the rank of each of so many");
  std::vector<int> count(static_cast<size_t>(ranks)), all;
  for (const int64_t rank : table.values) {
    if (rank < 0 || rank >= ranks) {
      usage_error("'{}' [{}]: expert {} has rank {}, which is not in [0, {}); map it to {} ranks",
                  file, experts, all.size(), rank, ranks, ranks);
    }
    ++count[static_cast<size_t>(rank)];
    all.push_back(static_cast<int>(rank));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const int its = count[static_cast<size_t>(rank)];
    if (its == experts / ranks) continue;
    usage_error("'{}' [{}] gives rank {} {} experts; give every rank {} of {}", file, experts, rank,
                its, experts / ranks, experts);
  }
  return all;
}

}  // namespace moegate
