// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace moegate {

/// Whose blessing goes into the ledger: who git says one is, else who the system says.
std::string author();

}  // namespace moegate
