// SPDX-License-Identifier: Apache-2.0
// What a program and a module of kernels have to agree on before any code of the module runs. Both
// are compiled with this header; cmake/moegate_kernels.cmake puts the text into every module.
#pragma once

#include <fmt/core.h>

// Generated: MOEGATE_SDK_HEADERS, a hash of all headers that a module may include.
#include "sdk_headers.h"

#define MOEGATE_SPELL(x) #x
#define MOEGATE_TEXT_OF(x) MOEGATE_SPELL(x)

/// Changes when a module that compiles as before would no longer be understood.
#define MOEGATE_SDK 1

#ifdef __clang__
#define MOEGATE_COMPILER "clang++ " MOEGATE_TEXT_OF(__clang_major__)
#else
#define MOEGATE_COMPILER "g++ " MOEGATE_TEXT_OF(__GNUC__)
#endif

/// Where the text begins in a file that holds it.
#define MOEGATE_STAMP_MARK "@(#)moegate module\n"

/// One line per fact, as "name: value".
#define MOEGATE_STAMP \
  MOEGATE_STAMP_MARK  \
  "SDK: " MOEGATE_TEXT_OF(MOEGATE_SDK) "\n"                                              \
  "compiler: " MOEGATE_COMPILER "\n"                                                     \
  "C++ ABI: libstdc++ " MOEGATE_TEXT_OF(_GLIBCXX_RELEASE) ", cxx11 " MOEGATE_TEXT_OF(    \
      _GLIBCXX_USE_CXX11_ABI) ", fmt " MOEGATE_TEXT_OF(FMT_VERSION) "\n"                 \
  "headers: " MOEGATE_SDK_HEADERS "\n"
