// SPDX-License-Identifier: Apache-2.0
// The hash of a host variant's machine code, and of a program's: equal ones run the same. The build
// writes a table of every kernels library's objects (cmake/object_code.cmake), which registers
// itself before main().
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "harness/kernel/kernel.h"

/// Where a program's file lists its .cu files: a line each, the SHA-256 of what nvcc made of it for
/// GPUs (its container in section .nv_fatbin), a blank and the name.
#define MOEGATE_GPU_CODE_MARK "@(#)moegate GPU code\n"

namespace moegate {

/// One compiled file of a kernels library.
struct ObjectCode {
  const char* file;  // as __builtin_FILE() spells it: relative to the source tree
  const char* hash;  // of its sections, without debug information and (.cu) without GPU programs
  /// What it was compiled for, as its line "// chip: sm_90a (wgmma)" says, or "any".
  const char* chip = "any";
};

/// Adds a table; true, so that a namespace-scope constant can do it.
bool register_objects(std::initializer_list<ObjectCode> objects);

/// All that were added.
std::span<const ObjectCode> known_objects();

/// Whether a GPU of a compute capability (89 for 8.9) runs code for a chip: "sm_90a" stands for
/// 9.0 alone, "sm_90" for that and later ones, "any" for all.
bool runs_on(std::string_view chip, int capability);
/// Why a variant cannot run a case on a device: the chip that its file is for, else what its author
/// says (KernelSpec::unsupported). Empty: it can.
std::string why_unsupported(const Variant& variant, const Case& c, const DeviceFacts& device,
                            std::span<const ObjectCode> objects = known_objects());

/// What is added from now on is of kernels from elsewhere, whose files the build of this program
/// knows nothing of. `code` hashes all that they are made of, up to the moment at which it is
/// asked; empty where it cannot tell.
void others_follow(std::function<std::string()> code);

/// Hash, 16 hex digits, of every object at or below the folders of `files`, of which the build took
/// SHA-256 without debug data (cmake/object_code.cmake): a helper in another file of the folder
/// counts. File names do not enter. Empty when one of the files has no object.
std::string code_of_files(std::span<const ObjectCode> objects, std::span<const std::string> files);

/// code_of_files() over the .cc objects that decide a host variant's ratio: those of the variant,
/// its operator, that one's parts and its yardstick; of a variant that launches others (tuned.h)
/// all of the operator on that backend. Empty: unknown. Where one of them is from elsewhere, what
/// tells its code (others_follow()) counts, too: all that it loaded and read (plugin/README.md). Of
/// this program's kernels it does not cover functions of the harness and of shared libraries.
std::string host_code(const Variant& variant,
                      std::span<const ObjectCode> objects = known_objects());

/// code_of_files() for the host code that gives a CUDA variant's kernels their arguments, launch
/// attributes and input data: that of the variant and its operator. It stands for them where they
/// cannot be read from a captured launch, or where the host's time between launches counts. Two
/// kinds of files count:
/// - the host half of every .cu of their folders, because variants launch each other's kernels
/// - every .cc that defines no host variant, and those of the operator and the variant themselves.
///   Changing a host variant must not force the GPU variants to be re-measured, so host code that
///   CUDA variants need stands in files of its own.
/// Strings count, so a kernel's name counts. Empty: unknown. What is from elsewhere counts as it
/// does in host_code().
std::string launch_code(const Variant& variant,
                        std::span<const ObjectCode> objects = known_objects());

/// One hash, 16 hex digits, of the code that ran and of what launched it; empty when one of the two
/// is empty.
std::string joined_code(const std::string& ran, const std::string& launched);

}  // namespace moegate
