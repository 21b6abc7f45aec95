// SPDX-License-Identifier: Apache-2.0
// dlopen and dlsym behind Dynlib. Names are fixed lists from the callers.
#include "harness/base/dynlib.h"

#include <cxxabi.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>

#include "harness/base/environment.h"

namespace moegate {
namespace {

/// NVIDIA's Python packages in an environment's folder: of CUDA 12 a folder for each library, of 13
/// one for all.
void add_packages(const std::string& prefix, std::vector<std::string>& all) {
  const std::string pattern =
      prefix + "/lib/python3*/{site,dist}-packages/nvidia/{cu13,cuda_cupti,cublas}/lib/";
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0)
    all.insert(all.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
}

/// Where the loader does not look.
std::vector<std::string> folders() {
  namespace fs = std::filesystem;
  std::vector<std::string> all;
  for (const std::string& root : {environment("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
    all.push_back(root + "/lib64/");
    all.push_back(root + "/extras/CUPTI/lib64/");
  }
  // A wheel's program is lib/python3.x/site-packages/moegate/_home/bin/moegate.
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path python = environment("MOEGATE_PYTHON");
  for (const std::string& prefix :
       {python.parent_path().parent_path().string(), environment("VIRTUAL_ENV"),
        environment("CONDA_PREFIX"), environment("HOME") + "/.local",
        (program / "../../../../../../..").lexically_normal().string(),
        std::string("/usr/local")}) {
    if (!prefix.empty()) add_packages(prefix, all);
  }
  return all;
}

}  // namespace

Dynlib::Dynlib(const std::vector<std::string>& sonames) {
  const auto opens = [this](const std::string& path) {
    handle_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (handle_) {
      path_ = path;
      why_.clear();
    } else if (why_.empty()) {  // the plain name's message is the one that helps
      const char* message = dlerror();
      why_ = message ? message : "cannot open " + path;
    }
    return handle_ != nullptr;
  };
  std::vector<std::string> elsewhere;  // looked for when it is needed
  for (const std::string& soname : sonames) {
    if (opens(soname)) return;
    if (elsewhere.empty()) elsewhere = folders();
    for (const std::string& folder : elsewhere) {
      if (opens(folder + soname)) return;
    }
  }
}

Dynlib::Function Dynlib::find(const char* symbol) {
  void* found = handle_ ? dlsym(handle_.get(), symbol) : nullptr;
  if (handle_ && !found) why_ += (why_.empty() ? "" : "; ") + path_ + " has no " + symbol;
  return {found};
}

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "f" would be a type, "float"
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

}  // namespace moegate
