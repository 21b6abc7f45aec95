// SPDX-License-Identifier: Apache-2.0
// The processor's intrinsics. Included before MOEGATE_TARGET_BEGIN.
#pragma once

#ifndef __clang__
// GCC 12 warns of its own intrinsics of AVX-512 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
