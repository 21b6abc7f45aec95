// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tile_merge.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

using Entry = TileText::Entry;

constexpr const char* kClass = "Device class: ";

std::vector<TunedTile> parsed(const std::string& path, const std::string& text) {
  try {
    return parse_tiles(path, text);
  } catch (const Error& error) {
    usage_error(
        "{}; tuning keeps the other entries of this file and cannot read it: correct it, remove "
        "it, or name another --out",
        error.what());
  }
}

std::vector<std::string> without_last_blanks(std::span<const std::string> lines) {
  while (!lines.empty() && trimmed(lines.back()).empty()) lines = lines.first(lines.size() - 1);
  return {lines.begin(), lines.end()};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Of the sections, and where the last one ends: lines counted from 0. A comment directly above a
/// section is its own; that above the first is the file's.
std::vector<size_t> starts_of(const IniFile& file, const std::vector<std::string>& lines) {
  std::vector<size_t> starts;
  for (size_t i = 1; i < file.sections.size(); ++i) {
    auto start = static_cast<size_t>(file.sections[i].line - 1);
    while (i > 1 && trimmed(lines[start - 1]).starts_with('#')) --start;
    starts.push_back(start);
  }
  starts.push_back(lines.size());
  return starts;
}

void refuse_other_class(const std::string& path, const TileText& tiles, const std::string& klass) {
  for (const std::string& line : tiles.about) {
    if (!line.starts_with("# " + std::string(kClass)) || line == "# " + about_class(klass))
      continue;
    usage_error(
        "{}: its comment says '{}', and the class of this device is {}; remove the file, or name "
        "another --out",
        path, line, klass);
  }
}

bool is_same(const TunedTile& a, const TunedTile& b) {
  return a.op == b.op && a.tokens == b.tokens;
}

/// Entries that stay, beside some of another block that were tuned at their token count.
std::vector<TunedTile> kept_apart(const std::vector<Entry>& entries,
                                  const std::vector<TunedTile>& tuned) {
  std::vector<TunedTile> apart;
  for (const Entry& e : entries) {
    const auto goes = [&](const TunedTile& t) { return is_same(t, e.tile); };
    const auto differs = [&](const TunedTile& t) {
      return t.tokens == e.tile.tokens && t.config.block != e.tile.config.block;
    };
    if (std::ranges::any_of(tuned, differs) && std::ranges::none_of(tuned, goes)) {
      apart.push_back(e.tile);
    }
  }
  return apart;
}

/// Where an entry that the file lacks belongs.
std::vector<Entry>::iterator place_of(std::vector<Entry>& entries, const TunedTile& tile) {
  const auto more = std::ranges::find_if(
      entries, [&](const Entry& e) { return e.tile.op == tile.op && e.tile.tokens > tile.tokens; });
  if (more != entries.end()) return more;
  const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                 [&](const Entry& e) { return e.tile.op == tile.op; });
  return last == entries.rend() ? entries.end() : last.base();
}

}  // namespace

std::string about_class(const std::string& klass) {
  return kClass + klass;
}

TileText read_tile_text(const std::string& path, const std::string& text,
                        const std::string& klass) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const std::vector<TunedTile> tiles = parsed(path, text);
  const std::vector<size_t> starts = starts_of(parse_ini(path, text), lines);
  const std::span all(lines);
  TileText read{without_last_blanks(all.first(starts[0])), {}};
  refuse_other_class(path, read, klass);
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto section = all.subspan(starts[i], starts[i + 1] - starts[i]);
    read.entries.push_back({tiles[i], "\n" + joined(without_last_blanks(section))});
  }
  return read;
}

MergedTiles merge_tiles(TileText old, const std::vector<std::string>& about,
                        const std::vector<TunedTile>& tuned) {
  MergedTiles merged;
  merged.apart = kept_apart(old.entries, tuned);
  merged.kept = old.entries.size();
  for (const TunedTile& tile : tuned) {
    const Entry entry{tile, format_tiles({}, {tile})};
    const auto same =
        std::ranges::find_if(old.entries, [&](const Entry& e) { return is_same(e.tile, tile); });
    if (same == old.entries.end()) {
      old.entries.insert(place_of(old.entries, tile), entry);
      ++merged.added;
      continue;
    }
    *same = entry;
    ++merged.replaced;
    --merged.kept;
  }
  if (merged.kept == 0) old.about.clear();
  for (const std::string& line : about) {
    const std::string comment = "# " + line;
    if (std::ranges::count(old.about, comment) == 0) old.about.push_back(comment);
  }
  merged.text = joined(old.about);
  for (const Entry& entry : old.entries) merged.text += entry.text;
  return merged;
}

}  // namespace moegate
