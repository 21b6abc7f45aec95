// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tile_file.h"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"
#include "harness/kernel/expert_rank.h"

namespace moegate {
namespace fs = std::filesystem;
namespace {

constexpr int kMostTokens = 1 << 24;
constexpr int kMostBlock = 256;

int integer(const std::string& where, const IniEntry& entry, int most) {
  const auto read = parse_number<int>(entry.values[0]);
  if (!read || *read < 1 || *read > most) {
    usage_error("{} {} = {} is not an integer in [1, {}]; change it", where, entry.key,
                entry.values[0], most);
  }
  return *read;
}

void take(const IniEntry& entry, TunedTile& tile) {
  if (entry.values.size() != 1) {
    usage_error("{} {} is a list; give one value", tile.where, entry.key);
  }
  const std::string& value = entry.values[0];
  if (entry.key == "kernel") {
    tile.config.kernel = value;
  } else if (entry.key == "block") {
    tile.config.block = integer(tile.where, entry, kMostBlock);
  } else if (entry.key == "us") {
    const auto us = parse_number<double>(value);
    if (!us || !(*us > 0) || !std::isfinite(*us))
      usage_error("{} us = {} is not a time; leave it out", tile.where, value);
    tile.us = *us;
  } else {
    tile.config.knobs[entry.key] = integer(tile.where, entry, std::numeric_limits<int>::max());
  }
}

TunedTile read_section(const std::string& path, const IniSection& section) {
  TunedTile tile;
  tile.where = fmt::format("{}:{}: [{}]", path, section.line, section.name);
  const size_t dot = section.name.rfind('.');
  const auto tokens =
      dot == std::string::npos ? std::nullopt : parse_number<int>(section.name.substr(dot + 1));
  if (!tokens || *tokens < 1 || *tokens > kMostTokens || dot == 0) {
    usage_error("{} is not [operator.tokens]; write it like [moe_gate_up.8]", tile.where);
  }
  tile.op = section.name.substr(0, dot);
  tile.tokens = *tokens;
  for (const IniEntry& entry : section.entries) take(entry, tile);
  if (tile.config.kernel.empty()) usage_error("{} lacks 'kernel'; name one", tile.where);
  return tile;
}

std::string knobs_text(const Knobs& knobs) {
  std::string text;
  for (const auto& [name, value] : knobs) text += fmt::format("/{}={}", name, value);
  return text;
}

std::string& chosen_folder() {
  static std::string folder;
  return folder;
}

/// By --tiles, else by MOEGATE_TILES; empty: by neither.
std::string named_folder() {
  return !chosen_folder().empty() ? chosen_folder() : environment("MOEGATE_TILES");
}

}  // namespace

std::string TileConfig::text() const {
  return kernel + (block > 0 ? fmt::format("/block={}", block) : "") + knobs_text(knobs);
}

std::string TileConfig::variant() const {
  return kTilePrefix + kernel + knobs_text(knobs);
}

bool is_tile_variant(const std::string& variant) {
  return variant.starts_with(kTilePrefix);
}

TileConfig config_of_variant(const std::string& variant, int block) {
  const auto fail = [&] {
    give_up(Exit::internal, "variant '{}' is no tile configuration", variant);
  };
  if (!is_tile_variant(variant)) fail();
  std::istringstream parts(variant.substr(std::string(kTilePrefix).size()));
  TileConfig config;
  config.block = block;
  std::getline(parts, config.kernel, '/');
  for (std::string part; std::getline(parts, part, '/');) {
    const size_t equals = part.find('=');
    const auto value =
        equals == std::string::npos ? std::nullopt : parse_number<int>(part.substr(equals + 1));
    if (!value) fail();
    config.knobs[part.substr(0, equals)] = *value;
  }
  return config;
}

std::string TileShape::name() const {
  return fmt::format("E={},topk={},H={},N={},dtype={}", experts, topk, hidden, inter, dtype);
}

std::string tile_dtype(const std::string& dtype, const std::string& scaling, bool biased) {
  return dtype + (scaling == "block" ? "" : "-" + scaling) + (biased ? "-bias" : "");
}

TileShape tile_shape(const Case& c) {
  const Case even = even_share(c);
  const auto get = [&](const char* name) {
    return static_cast<int>(even.get_int(name, 1, std::numeric_limits<int>::max()));
  };
  const auto given = [&](const char* name, const char* otherwise) {
    const auto at = c.params.find(name);
    return at == c.params.end() ? otherwise : at->second;
  };
  return {get("experts"), get("topk"), get("hidden"), get("inter"),
          tile_dtype(c.get("dtype"), given("scaling", "block"), given("bias", "0") == "1")};
}

std::vector<TunedTile> parse_tiles(const std::string& path, const std::string& text) {
  const IniFile file = parse_ini(path, text);
  if (!file.sections.front().entries.empty()) {
    const IniEntry& entry = file.sections.front().entries.front();
    usage_error("{}:{}: '{}' stands before the first [operator.tokens]; move it into one", path,
                entry.line, entry.key);
  }
  std::vector<TunedTile> tiles;
  for (size_t i = 1; i < file.sections.size(); ++i) {
    tiles.push_back(read_section(path, file.sections[i]));
  }
  return tiles;
}

std::string format_tiles(const std::vector<std::string>& about,
                         const std::vector<TunedTile>& tiles) {
  std::string text;
  for (const std::string& line : about) text += fmt::format("# {}\n", line);
  for (const TunedTile& tile : tiles) {
    text += fmt::format("\n[{}.{}]\nkernel = {}\n", tile.op, tile.tokens, tile.config.kernel);
    if (tile.config.block > 0) text += fmt::format("block = {}\n", tile.config.block);
    for (const auto& [name, value] : tile.config.knobs) {
      text += fmt::format("{} = {}\n", name, value);
    }
    if (tile.us >= 0.01) text += fmt::format("us = {:.2f}\n", tile.us);
  }
  return text;
}

const TunedTile* nearest_tile(const std::vector<TunedTile>& tiles, const std::string& op,
                              int tokens) {
  const TunedTile* nearest = nullptr;
  for (const TunedTile& tile : tiles) {
    if (tile.op != op) continue;
    const auto rank = [&](const TunedTile& t) {
      return std::pair(std::abs(t.tokens - tokens), t.tokens);
    };
    if (!nearest || rank(tile) < rank(*nearest)) nearest = &tile;
  }
  return nearest;
}

std::string routing_of(const Case& c) {
  const auto at = c.params.find("routing");
  return at == c.params.end() ? "" : at->second;
}

std::string routed_name(const std::string& shape, const std::string& routing) {
  return routing.empty() ? shape : shape + ",routing=" + boost::replace_all_copy(routing, "/", "_");
}

const TunedTile* tuned_entry(const TunedKey& files, const std::string& op, int tokens,
                             const std::function<void(const TunedTile&)>& check) {
  // By folder and name: chains ask in every launch.
  static std::map<std::string, std::map<std::string, std::vector<TunedTile>>> read;
  const fs::path folder = tile_folder();
  auto& in_folder = read[folder.native() + "/" + files.device_class];
  const auto nearest_in = [&](const std::string& shape) {
    auto at = in_folder.find(shape);
    if (at == in_folder.end()) {
      auto tiles = read_tiles(tile_path(folder, files.device_class, shape))
                       .value_or(std::vector<TunedTile>{});
      std::ranges::for_each(tiles, check);
      at = in_folder.emplace(shape, std::move(tiles)).first;
    }
    return nearest_tile(at->second, op, tokens);
  };
  const TunedTile* any = nearest_in(files.shape);
  if (files.routing.empty()) return any;
  const TunedTile* routed = nearest_in(routed_name(files.shape, files.routing));
  const auto away = [&](const TunedTile* tile) { return std::abs(tile->tokens - tokens); };
  return routed && (!any || away(routed) <= away(any)) ? routed : any;
}

void use_tile_folder(const std::string& folder) {
  if (!folder.empty()) chosen_folder() = folder;
  if (!named_folder().empty()) tile_folder();
}

fs::path tile_folder() {
  const std::string named = named_folder();
  if (named.empty()) return home() / "suites" / "tiles";
  std::error_code ignored;  // a folder that may not be looked into is none
  if (!fs::is_directory(named, ignored)) {
    usage_error("'{}', where tile configurations are to be, is no folder; correct {}", named,
                chosen_folder().empty() ? "MOEGATE_TILES" : "--tiles");
  }
  return named;
}

fs::path tile_path(const fs::path& folder, const std::string& device_class,
                   const std::string& shape) {
  return folder / device_class / (shape + ".ini");
}

std::optional<std::vector<TunedTile>> read_tiles(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return parse_tiles(path.string(), read_file(path));
}

}  // namespace moegate
