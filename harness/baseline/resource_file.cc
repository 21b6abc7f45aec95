// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/resource_file.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <tuple>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/values/occupancy.h"

namespace moegate {
namespace {

constexpr const char* kResourceMagic = "#moegate-resources 1";
constexpr const char* kResourceColumns =
    "#file\tkernel\tregisters\tlocal_bytes\tstatic_shared\tthreads\tdynamic_shared\tblocks_per_sm";
constexpr const char* kUnknownText = "-";
constexpr size_t kResourceFields = 8;

struct ResourceLine {
  const std::filesystem::path& path;
  int number = 0;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("{}:{}: {}", path.string(), number,
                fmt::format(format, std::forward<Args>(args)...));
  }
};

int read_count(const ResourceLine& line, const std::string& text) {
  const auto count = parse_number<int>(text);
  if (!count || *count < 0) line.fail("'{}' is not a number of 0 or more", text);
  return *count;
}

template <class T>
std::optional<T> read_known(const ResourceLine& line, const std::string& text) {
  if (text == kUnknownText) return std::nullopt;
  return read_count(line, text);
}

template <class T>
std::string known_text(const std::optional<T>& value) {
  return value ? std::to_string(*value) : kUnknownText;
}

ResourceRow read_row(const ResourceLine& line, const std::string& text) {
  std::vector<std::string> f;
  std::istringstream in(text);
  for (std::string field; std::getline(in, field, '\t');) f.push_back(field);
  if (f.size() != kResourceFields || f[0].empty() || f[1].empty()) {
    line.fail("has {} fields between tabs, not the {} of '{}'", f.size(), kResourceFields,
              kResourceColumns);
  }
  ResourceRow row;
  row.kernel.file = f[0];
  row.kernel.kernel = f[1];
  row.kernel.registers = read_count(line, f[2]);
  row.kernel.local_bytes = read_count(line, f[3]);
  row.kernel.static_shared = read_count(line, f[4]);
  row.shape = {read_known<int>(line, f[5]), read_known<int64_t>(line, f[6])};
  row.blocks_per_sm = read_known<int>(line, f[7]);
  return row;
}

/// "#class nvidia-h200  compiler 13.0.88"
void read_header(const ResourceLine& line, const std::string& text, ResourceFile& file) {
  std::istringstream in(text);
  std::string klass, compiler, more;
  in >> klass >> file.klass >> compiler >> file.compiler;
  if (!in || klass != "#class" || compiler != "compiler" || in >> more) {
    line.fail("'{}' is not '#class C  compiler V'", text);
  }
  if (file.compiler == kUnknownText) file.compiler.clear();
}

}  // namespace

std::optional<int> blocks_in(const KernelResources& kernel, const LaunchShape& shape, int arch) {
  const auto sm = sm_limits(arch);
  if (!sm || !shape.threads) return std::nullopt;
  return blocks_per_sm({.threads = *shape.threads,
                        .registers = kernel.registers,
                        .shared = kernel.static_shared + shape.dynamic_shared.value_or(0),
                        .barriers = kernel.barriers},
                       *sm);
}

ResourceFile read_resources(const std::filesystem::path& path) {
  std::istringstream in(read_file(path));
  ResourceFile file;
  ResourceLine line{path};
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for (std::string text; std::getline(in, text);) {
    ++line.number;
    if (text.find('\r') != std::string::npos) line.fail("has a carriage return; lines end in LF");
    if (line.number == 1 && text != kResourceMagic)
      line.fail("'{}' where '{}' belongs", text, kResourceMagic);
    if (line.number == 2) read_header(line, text, file);
    if (line.number == 3 && text != kResourceColumns)
      line.fail("'{}' where '{}' belongs", text, kResourceColumns);
    if (line.number <= 3) continue;
    const ResourceRow row = read_row(line, text);
    if (!seen.insert({row.kernel.file, row.kernel.kernel, known_text(row.shape.threads),
                      known_text(row.shape.dynamic_shared)})
             .second) {
      line.fail("'{}' is given twice in this shape", row.kernel.kernel);
    }
    file.rows.push_back(row);
  }
  if (line.number < 3) usage_error("{}: is empty or lacks its header", path.string());
  return file;
}

std::string format_resources(const ResourceFile& file) {
  std::string text =
      fmt::format("{}\n#class {}  compiler {}\n{}\n", kResourceMagic, file.klass,
                  file.compiler.empty() ? kUnknownText : file.compiler, kResourceColumns);
  for (const ResourceRow& row : file.rows) {
    const KernelResources& k = row.kernel;
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", k.file, k.kernel, k.registers,
                        k.local_bytes, k.static_shared, known_text(row.shape.threads),
                        known_text(row.shape.dynamic_shared), known_text(row.blocks_per_sm));
  }
  return text;
}

}  // namespace moegate
