// SPDX-License-Identifier: Apache-2.0
// The flags that run and verify share: which cases, which variants, which device.
#pragma once

#include <boost/program_options.hpp>

#include "harness/plan.h"

namespace moegate {

/// --suite --filter --kernel --axis --seed --device --case-timeout --shard
boost::program_options::options_description selection_flags();
/// Reads them. Throws Error(usage).
RunOptions read_selection(const boost::program_options::variables_map& values);

}  // namespace moegate
