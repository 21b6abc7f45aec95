// SPDX-License-Identifier: Apache-2.0
// dlopen and dlsym behind Dynlib. Names are fixed lists from the callers; nothing is searched for.
#include "harness/base/dynlib.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "harness/base/environment.h"

namespace moegate {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> roots;
  if (const std::string home = environment("CUDA_HOME"); !home.empty()) roots.push_back(home);
  roots.emplace_back("/usr/local/cuda");
  std::vector<std::string> all{""};  // the loader's own search comes first
  for (const std::string& root : roots) {
    all.push_back(root + "/lib64/");
    all.push_back(root + "/extras/CUPTI/lib64/");
  }
  return all;
}

}  // namespace

Dynlib::Dynlib(const std::vector<std::string>& sonames) {
  for (const std::string& folder : folders()) {
    for (const std::string& soname : sonames) {
      path_ = folder + soname;
      handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) {
        why_.clear();
        return;
      }
      if (why_.empty()) {  // the plain name's message is the one that helps
        const char* message = dlerror();
        why_ = message ? message : "cannot open " + soname;
      }
    }
  }
  path_.clear();
}

Dynlib::~Dynlib() {
  if (handle_) dlclose(handle_);
}

Dynlib::Dynlib(Dynlib&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      why_(std::move(other.why_)) {}

Dynlib& Dynlib::operator=(Dynlib&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  std::swap(why_, other.why_);
  return *this;
}

void* Dynlib::find(const char* symbol) {
  void* found = handle_ ? dlsym(handle_, symbol) : nullptr;
  if (!found) {
    if (!why_.empty()) why_ += "; ";
    why_ += (path_.empty() ? "library" : path_) + " has no " + symbol;
  }
  return found;
}

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "f" would be a type, "float"
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

}  // namespace moegate
