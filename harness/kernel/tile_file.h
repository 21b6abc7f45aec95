// SPDX-License-Identifier: Apache-2.0
// What is fastest for an operator's shape at each token count, as data: which kernel, and of the
// grouped GEMMs with which block and knobs. One INI file per device class and shape, see
// suites/tiles/README.md. Knows neither kernels nor devices: which configurations exist is the
// operator's business.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/values/case.h"

namespace moegate {

/// What a kernel lets a caller choose, by name: {{"splits", 4}}.
using Knobs = std::map<std::string, int>;

struct TileConfig {
  std::string kernel;
  /// BM; part of the operands' layout, so a parameter of the case and no knob. 0: not tuned.
  int block = 0;
  Knobs knobs;

  bool operator==(const TileConfig&) const = default;
  std::string text() const;     // "swap_ab/block=16/splits=4", "stream_k"
  std::string variant() const;  // "tile/swap_ab/splits=4": what launches it
};

/// Begins the name of a variant that is one configuration of a kernel: a candidate of `moegate
/// tune`. Such a variant runs only where --variant names it.
constexpr const char* kTilePrefix = "tile/";
bool is_tile_variant(const std::string& variant);
/// The configuration that a variant is, in a case with this block. Throws Error(internal) for
/// another variant.
TileConfig config_of_variant(const std::string& variant, int block);

/// What a file holds configurations for: all that shapes the grouped GEMMs, except the tokens.
struct TileShape {
  int experts, topk, hidden, inter;  // inter: of one rank
  std::string dtype;                 // as tile_dtype() says it

  std::string name() const;  // "E=256,topk=8,H=7168,N=256,dtype=fp8"
};
/// "bf16", "fp8-channel", "bf16-bias": of fp8 scaled otherwise than in blocks other kernels are
/// fastest, and few add a bias.
std::string tile_dtype(const std::string& dtype, const std::string& scaling, bool biased);
/// Of a rank: that of its even_share(). Throws Error(usage) for a case that lacks one of these
/// parameters.
TileShape tile_shape(const Case& c);

/// One section of a file.
struct TunedTile {
  std::string op;
  int tokens = 0;
  TileConfig config;
  double us = 0;      // as tuning measured it, for people; 0: not given
  std::string where;  // "path:line: [section]", for messages

  bool operator==(const TunedTile&) const = default;
};

/// Throws Error(usage) naming file, line and section for whatever parse_ini() refuses, for a
/// section that is not [operator.tokens], a missing kernel, a list, and a value that is no number.
std::vector<TunedTile> parse_tiles(const std::string& path, const std::string& text);
/// Text that parse_tiles() reads, each line of `about` as a comment before it.
std::string format_tiles(const std::vector<std::string>& about,
                         const std::vector<TunedTile>& tiles);

/// The operator's entry with the nearest token count; on a tie, the smaller token count. Null when
/// the operator has no entry.
const TunedTile* nearest_tile(const std::vector<TunedTile>& tiles, const std::string& op,
                              int tokens);

/// The routing of a case; empty: its operator has none.
std::string routing_of(const Case& c);
/// Names the file of a shape for one routing, which `moegate tune` writes where that pays:
/// "E=…,dtype=fp8,routing=zipf:1.2". A '/' of the routing becomes '_'. Of none: the shape's own.
std::string routed_name(const std::string& shape, const std::string& routing);

/// Which files say what is tuned.
struct TunedKey {
  std::string device_class, shape, routing;
};
/// Of the entries in the file of a shape and in that of its routing the nearest one, the routing's
/// where both are as near; null where there is none. `check` throws Error(usage) for an entry that
/// does not fit the program. A file is read once: a process measures one state of it.
const TunedTile* tuned_entry(const TunedKey& files, const std::string& op, int tokens,
                             const std::function<void(const TunedTile&)>& check);

/// The folder of the files: the one given to use_tile_folder(), else MOEGATE_TILES, else
/// suites/tiles. Throws Error(usage) when the named one is no folder.
std::filesystem::path tile_folder();
/// Sets the folder for the rest of this process; an empty name leaves it. Throws as tile_folder()
/// does, before anything is measured.
void use_tile_folder(const std::string& folder);
/// The file of a shape, by its name, in a folder.
std::filesystem::path tile_path(const std::filesystem::path& folder,
                                const std::string& device_class, const std::string& shape);
/// The file's entries; nothing when there is no such file. Throws as parse_tiles() does.
std::optional<std::vector<TunedTile>> read_tiles(const std::filesystem::path& path);

}  // namespace moegate
