// SPDX-License-Identifier: Apache-2.0
// MOEGATE_HD marks a function that host code and kernels both call.
#pragma once

#ifdef __CUDACC__
#define MOEGATE_HD __host__ __device__
#else
#define MOEGATE_HD
#endif
