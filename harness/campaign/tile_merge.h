// SPDX-License-Identifier: Apache-2.0
// A file of tile configurations that is tuned again: what was tuned is replaced, the rest stays as
// it is written there. Texts in, texts out.
#pragma once

#include <string>
#include <vector>

#include "harness/kernel/tile_file.h"

namespace moegate {

/// A file in parts.
struct TileText {
  struct Entry {
    TunedTile tile;
    std::string text;  // its section with the comments directly above, after an empty line
  };
  std::vector<std::string> about;  // lines of the comment before the first section
  std::vector<Entry> entries;
};

/// The line of a file's comment that says which devices it is for.
std::string about_class(const std::string& klass);

/// Throws Error(usage), naming the file and the remedy, for what parse_tiles() refuses and for a
/// file whose comment names another device class; one that names none is taken.
TileText read_tile_text(const std::string& path, const std::string& text, const std::string& klass);

struct MergedTiles {
  std::string text;
  size_t replaced = 0, added = 0, kept = 0;  // entries
  /// Of the kept ones, those whose block is not that of what was tuned at their token count: a
  /// layer has one for all its operators.
  std::vector<TunedTile> apart;
};

/// Entries of an operator and token count that `old` has take that one's place, others follow their
/// operator's smaller token counts. Of `old`'s comment stays what tells of entries that were kept;
/// the lines of `about` that it lacks come after it.
MergedTiles merge_tiles(TileText old, const std::vector<std::string>& about,
                        const std::vector<TunedTile>& tuned);

}  // namespace moegate
