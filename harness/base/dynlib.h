// SPDX-License-Identifier: Apache-2.0
// This file opens shared libraries at run time (CUPTI, NVML, cuBLASLt), so that the program starts,
// and says what is missing, on machines without them. It knows how to find a library and to read a
// symbol's name, not what is in it.
#pragma once

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
  ~Dynlib();
  Dynlib(Dynlib&& other) noexcept;
  Dynlib& operator=(Dynlib&& other) noexcept;

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }

  /// Sets `function` to the symbol, or to null; a missing one is appended to why(). True when
  /// found.
  template <class F>
  bool bind(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* find(const char* symbol);

  void* handle_ = nullptr;
  std::string path_;
  std::string why_;
};

/// The C++ name of a symbol; the symbol itself where it is none.
std::string demangle(const std::string& symbol);

}  // namespace moegate
