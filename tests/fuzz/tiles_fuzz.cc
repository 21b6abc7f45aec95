// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tile_file.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void tiles(std::string_view bytes) {
  std::vector<TunedTile> read;
  if (!accepted({Exit::usage}, [&] { read = parse_tiles("input", std::string(bytes)); })) return;
  const std::string text = format_tiles({"about"}, read);
  std::vector<TunedTile> again = parse_tiles("again", text);
  require(format_tiles({"about"}, again) == text, "another file once it is read");
  require(again.size() == read.size(), "another number of sections");
  for (size_t i = 0; i < read.size(); ++i) {
    again[i].us = read[i].us;  // written with two digits, for people
    again[i].where = read[i].where;
    require(again[i] == read[i], "another section than " + read[i].where);
  }
}

}  // namespace moegate::fuzz
