// SPDX-License-Identifier: Apache-2.0
// This file opens shared libraries at run time (CUPTI, NVML, cuBLASLt), so that the program starts,
// and says what is missing, on machines without them. It knows how to find a library and to read a
// symbol's name, not what is in it.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

namespace moegate {

class Dynlib {
 public:
  Dynlib() = default;
  /// The first soname that opens: as the loader finds it, then in the CUDA toolkit's folders
  /// ($CUDA_HOME, /usr/local/cuda), then in NVIDIA's Python packages: beside $MOEGATE_PYTHON, in
  /// $VIRTUAL_ENV, in $CONDA_PREFIX, in ~/.local, beside an installed wheel, in /usr/local. Leaves
  /// the object empty, with why() set, when none opens.
  explicit Dynlib(const std::vector<std::string>& sonames);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }

  /// A function that has the type of the pointer which it is assigned to.
  struct Function {
    void* at;
    template <class F>
    operator F*() const {  // NOLINT: implicit is what it is for
      return reinterpret_cast<F*>(at);
    }
  };
  /// Null for one that an open library lacks, which is appended to why().
  Function find(const char* symbol);

 private:
  std::unique_ptr<void, int (*)(void*)> handle_{nullptr, dlclose};
  std::string path_;
  std::string why_;
};

/// The C++ name of a symbol; the symbol itself where it is none.
std::string demangle(const std::string& symbol);

}  // namespace moegate
