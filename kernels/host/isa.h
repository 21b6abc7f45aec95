// SPDX-License-Identifier: Apache-2.0
// Where host kernels may choose between instruction sets at run time. The vectors are in
// vector_<isa>.h, each included once per source, below that source's target pragma.
#pragma once

#if defined(__x86_64__) && !defined(__clang__)  // clang has no `#pragma GCC target`
#define MOEGATE_HOST_X86
#endif
