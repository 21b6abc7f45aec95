// SPDX-License-Identifier: Apache-2.0
// What programs and host variants are made of, as hashes: equal ones run the same machine code. The
// build writes a table of every kernels library's objects (cmake/object_code.cmake), which
// registers itself before main().
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "harness/kernel.h"

namespace moegate {

/// One compiled C++ file of a kernels library.
struct ObjectCode {
  const char* file;  // as __builtin_FILE() spells it: relative to the source tree
  const char* hash;  // of its sections, without debug information
};

/// Adds a table; true, so that a namespace-scope constant can do it.
bool register_objects(std::initializer_list<ObjectCode> objects);

/// Hash, 16 hex digits, of every object at or below the folders of `files`: a helper in another
/// file of the folder counts. File names do not enter. Empty when one of the files has no object.
std::string code_of_files(std::span<const ObjectCode> objects, std::span<const std::string> files);

/// code_of_files() for what a host variant's ratio hangs on: the variant, its operator and its
/// yardstick. Empty: unknown. Functions of the harness and of shared libraries are not covered.
std::string host_code(const Variant& variant);

}  // namespace moegate
