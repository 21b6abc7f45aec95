// SPDX-License-Identifier: Apache-2.0
// moe_align on the CPU as a function that other operators' host variants call, too.
#pragma once

#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {

/// The variant `counting_sort`; `next` [E] is scratch memory.
void run_counting_sort(const MoeAlignArgs& args, int32_t* next);

}  // namespace moegate::moe_align
