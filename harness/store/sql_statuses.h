// SPDX-License-Identifier: Apache-2.0
// Inside the store: the aggregate of reports that names what a row's processes ended with.
#pragma once

#include "harness/store/sqlite.h"

namespace moegate {

/// statuses(status): each status once, the worst first, "wrong,noisy,ok"; NULL of no row. The order
/// does not depend on that of the rows. Throws Error(store).
void add_statuses_function(Database& db);

}  // namespace moegate
