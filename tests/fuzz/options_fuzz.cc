// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

void options(std::string_view bytes) {
  RunOptions read;
  if (!accepted({Exit::store}, [&] { read.from_json(std::string(bytes)); })) return;
  require(read.shard >= 0 && read.shard < read.shards, "a shard that is none");
  require(read.rounds >= 0 && read.case_timeout_s > 0, "a run that measures nothing");
  RunOptions again;
  again.from_json(read.to_json());
  require(again.to_json() == read.to_json(), "other options once they are written");
}

}  // namespace moegate::fuzz
