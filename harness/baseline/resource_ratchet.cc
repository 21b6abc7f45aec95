// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/resource_ratchet.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr const char* kResourceMagic = "#moegate-resources 1";
constexpr const char* kResourceColumns =
    "#file\tkernel\tregisters\tlocal_bytes\tstatic_shared\tthreads\tdynamic_shared\tblocks_per_sm";
constexpr const char* kUnknownText = "-";
constexpr size_t kResourceFields = 8;
constexpr const char* kModules = "modules";  // begins a line of them
constexpr size_t kModuleFields = 6;

int read_count(const TextPlace& place, const std::string& text) {
  const auto count = parse_number<int>(text);
  if (!count || *count < 0) place.fail("'{}' is not a number of 0 or more", text);
  return *count;
}

template <class T>
std::optional<T> read_known(const TextPlace& place, const std::string& text) {
  if (text == kUnknownText) return std::nullopt;
  return read_count(place, text);
}

template <class T>
std::string known_text(const std::optional<T>& value) {
  return value ? std::to_string(*value) : kUnknownText;
}

std::vector<std::string> between_tabs(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

ModuleRow read_modules(const TextPlace& place, const std::vector<std::string>& f) {
  if (f.size() != kModuleFields || std::ranges::count(f, "") > 0) {
    place.fail("is not 'modules', suite, variant, cases, modules, compiler between tabs");
  }
  ModuleRow row{f[1], f[2], read_count(place, f[3]), read_count(place, f[4]), f[5]};
  if (row.compiler == kUnknownText) row.compiler.clear();
  return row;
}

ResourceRow read_row(const TextPlace& place, const std::vector<std::string>& f) {
  if (f.size() != kResourceFields || f[0].empty() || f[1].empty()) {
    place.fail("has {} fields between tabs, not the {} of '{}'", f.size(), kResourceFields,
               kResourceColumns);
  }
  ResourceRow row;
  row.kernel.file = f[0];
  row.kernel.kernel = f[1];
  row.kernel.registers = read_count(place, f[2]);
  row.kernel.local_bytes = read_count(place, f[3]);
  row.kernel.static_shared = read_count(place, f[4]);
  row.shape = {read_known<int>(place, f[5]), read_known<int64_t>(place, f[6])};
  row.blocks_per_sm = read_known<int>(place, f[7]);
  return row;
}

/// "#class nvidia-h200  compiler 13.0.88"
void read_header(const TextPlace& place, const std::string& text, ResourceFile& file) {
  std::istringstream in(text);
  std::string klass, compiler, more;
  in >> klass >> file.klass >> compiler >> file.compiler;
  if (!in || klass != "#class" || compiler != "compiler" || in >> more) {
    place.fail("'{}' is not '#class C  compiler V'", text);
  }
  if (file.compiler == kUnknownText) file.compiler.clear();
}

using Kind = ResourceChange::Kind;
using KernelId = std::pair<std::string, std::string>;  // file, kernel

KernelId id_of(const KernelResources& k) {
  return {k.file, k.kernel};
}

std::map<KernelId, std::vector<ResourceRow>> by_kernel(const ResourceFile& file) {
  std::map<KernelId, std::vector<ResourceRow>> rows;
  for (const ResourceRow& row : file.rows) rows[id_of(row.kernel)].push_back(row);
  return rows;
}

int64_t shared_of(const ResourceRow& row) {
  return row.shape.dynamic_shared.value_or(0);
}

/// Of a kernel in a shape, on devices of a compute capability; nothing for unknown threads.
std::optional<int> blocks_in(const KernelResources& kernel, const LaunchShape& shape, int arch) {
  const auto sm = sm_limits(arch);
  if (!sm || !shape.threads) return std::nullopt;
  return blocks_per_sm({.threads = *shape.threads,
                        .registers = kernel.registers,
                        .shared = kernel.static_shared + shape.dynamic_shared.value_or(0),
                        .barriers = kernel.barriers},
                       *sm);
}

/// Drops shapes that say no more than another one.
void add_rows(const KernelResources& kernel, const std::vector<LaunchShape>& shapes, int arch,
              std::vector<ResourceRow>& rows) {
  std::map<std::pair<std::optional<int>, std::optional<int>>, ResourceRow> kept;
  for (const LaunchShape& shape : shapes) {
    const ResourceRow row{kernel, shape, blocks_in(kernel, shape, arch)};
    const auto [old, fresh] = kept.try_emplace({shape.threads, row.blocks_per_sm}, row);
    if (!fresh && shared_of(old->second) < shared_of(row)) old->second = row;
  }
  for (const auto& [key, row] : kept) rows.push_back(row);
}

/// A shape as the kernel of now could be launched in it: never with more threads than it allows.
LaunchShape allowed(LaunchShape shape, const KernelResources& kernel) {
  if (shape.threads && kernel.max_threads > 0) {
    shape.threads = std::min(*shape.threads, kernel.max_threads);
  }
  return shape;
}

/// "registers 128 -> 168, static shared 0 -> 512 B"
std::string reasons(const ResourceRow& before, const KernelResources& now,
                    const LaunchShape& shape) {
  std::string text;
  const auto add = [&](const char* what, int64_t was, int64_t is, const char* unit) {
    if (was == is) return;
    text += fmt::format("{}{} {} -> {}{}", text.empty() ? "" : ", ", what, was, is, unit);
  };
  add("registers", before.kernel.registers, now.registers, "");
  add("static shared memory", before.kernel.static_shared, now.static_shared, " B");
  if (shape.threads) add("threads", *before.shape.threads, *shape.threads, "");
  return text;
}

std::string blocks_text(const ResourceRow& before, const KernelResources& now,
                        const LaunchShape& shape, int blocks, bool one_shape) {
  std::string text = fmt::format("blocks per SM {} -> {}", *before.blocks_per_sm, blocks);
  if (!before.shape.dynamic_shared) text += " at most";
  if (!one_shape) {
    text += fmt::format(" in launches of {} threads and {} B of dynamic shared memory",
                        *before.shape.threads, shared_of(before));
  }
  const std::string why = reasons(before, now, shape);
  return why.empty() ? text : fmt::format("{} ({})", text, why);
}

/// Local memory, then blocks per SM, in whose shape they changed most.
void compare_kernel(const std::vector<ResourceRow>& before, const KernelResources& now, int arch,
                    std::vector<ResourceChange>& changes) {
  std::string worse, better;
  const auto say = [](std::string& text, const std::string& what) {
    text += (text.empty() ? "" : "; ") + what;
  };
  const int64_t was = before[0].kernel.local_bytes, is = now.local_bytes;
  if (is != was) {
    const std::string bytes = fmt::format("local memory {} -> {} B/thread", was, is);
    is > was ? say(worse, fmt::format("{} ({})", bytes, kInLocalMemory)) : say(better, bytes);
  }
  double most = 1, least = 1;
  std::string loss, gain;
  for (const ResourceRow& row : before) {
    const LaunchShape shape = allowed(row.shape, now);
    const auto blocks = blocks_in(now, shape, arch);
    if (!blocks || !row.blocks_per_sm || *blocks == *row.blocks_per_sm) continue;
    const double ratio = *row.blocks_per_sm == 0 ? 2.0 : double(*blocks) / *row.blocks_per_sm;
    const std::string text = blocks_text(row, now, shape, *blocks, before.size() == 1);
    if (ratio < least) std::tie(least, loss) = std::pair(ratio, text);
    if (ratio > most) std::tie(most, gain) = std::pair(ratio, text);
  }
  if (!loss.empty()) say(worse, loss);
  if (!gain.empty()) say(better, gain);
  if (!worse.empty()) changes.push_back({Kind::worse, now.file, now.kernel, worse});
  if (!better.empty()) changes.push_back({Kind::better, now.file, now.kernel, better});
}

/// As it is said of a version of ptxas alone, and of what is named.
std::string name_of_compiler(const std::string& compiler) {
  if (compiler.empty()) return "a compiler of unknown version";
  return compiler.find(' ') == std::string::npos ? "ptxas " + compiler : compiler;
}

std::string first_line(const std::vector<ResourceChange>& changes, Exit exit,
                       const std::string& judged, const std::filesystem::path& path) {
  if (exit == Exit::ok) {
    return fmt::format("PASS: {} with the resources that {} lists\n", judged, path.string());
  }
  std::string changed;
  for (const Kind kind : {Kind::worse, Kind::better, Kind::added, Kind::removed}) {
    const auto n = std::ranges::count(changes, kind, &ResourceChange::kind);
    if (n > 0) changed += fmt::format("{}{} {}", changed.empty() ? "" : ", ", n, name_of(kind));
  }
  return fmt::format("{} (exit {}): {} of {} against {}\n",
                     exit == Exit::inconclusive ? "UNDECIDED" : "FAIL", static_cast<int>(exit),
                     changed, judged, path.string());
}

}  // namespace

ResourceFile read_resources(const std::filesystem::path& path) {
  std::istringstream in(read_file(path));
  ResourceFile file;
  TextPlace place{path.string()};
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for (std::string text; std::getline(in, text);) {
    ++place.line;
    if (text.find('\r') != std::string::npos)
      place.fail("the line has a carriage return; end lines in LF");
    if (place.line == 1 && text != kResourceMagic)
      place.fail("'{}' stands where '{}' belongs", text, kResourceMagic);
    if (place.line == 2) read_header(place, text, file);
    if (place.line == 3 && text != kResourceColumns)
      place.fail("'{}' stands where '{}' belongs", text, kResourceColumns);
    if (place.line <= 3) continue;
    const std::vector<std::string> fields = between_tabs(text);
    if (!fields.empty() && fields[0] == kModules) {
      file.modules.push_back(read_modules(place, fields));
      if (!seen.insert({kModules, fields[1], fields[2], ""}).second) {
        place.fail("'{}' of {} is given twice", fields[2], fields[1]);
      }
      continue;
    }
    const ResourceRow row = read_row(place, fields);
    if (!seen.insert({row.kernel.file, row.kernel.kernel, known_text(row.shape.threads),
                      known_text(row.shape.dynamic_shared)})
             .second) {
      place.fail("'{}' is given twice in this shape", row.kernel.kernel);
    }
    file.rows.push_back(row);
  }
  if (place.line < 3) usage_error("{}: is empty or lacks its header", path.string());
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
  for (const ModuleRow& row : file.modules) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", kModules, row.suite, row.variant, row.cases,
                        row.modules, row.compiler.empty() ? kUnknownText : row.compiler);
  }
  return text;
}

const char* name_of(Kind kind) {
  constexpr std::array kNames = {"worse", "better", "new", "gone"};
  static_assert(kNames.size() == static_cast<size_t>(Kind::removed) + 1);
  return kNames.at(static_cast<size_t>(kind));
}

std::string line_of(const ResourceChange& c) {
  return fmt::format("  {}: {} {}: {}\n", name_of(c.kind), c.file, kernel_name(c.kernel).whole(),
                     c.what);
}

std::vector<ResourceRow> in_shapes(const std::vector<KernelResources>& kernels,
                                   const LaunchShapes& launched, const ResourceFile& before,
                                   int arch) {
  const auto known = by_kernel(before);
  std::vector<ResourceRow> rows;
  for (const KernelResources& kernel : kernels) {
    std::vector<LaunchShape> shapes;
    if (const auto run = launched.find(kernel.kernel); run != launched.end()) {
      shapes = run->second;
    } else if (const auto old = known.find(id_of(kernel)); old != known.end()) {
      for (const ResourceRow& row : old->second) shapes.push_back(allowed(row.shape, kernel));
    }
    const bool unknown = std::ranges::all_of(
        shapes, [](const LaunchShape& shape) { return !shape.dynamic_shared.has_value(); });
    if (unknown) shapes.assign(1, {});  // what the compiler allows, where nobody launched it
    if (unknown && kernel.max_threads > 0) shapes[0].threads = kernel.max_threads;
    add_rows(kernel, shapes, arch, rows);
  }
  return rows;
}

std::vector<ResourceChange> changes_of(const ResourceFile& before,
                                       const std::vector<KernelResources>& kernels, int arch) {
  auto known = by_kernel(before);
  std::vector<ResourceChange> changes;
  for (const KernelResources& kernel : kernels) {
    const auto old = known.extract(id_of(kernel));
    if (!old.empty()) {
      compare_kernel(old.mapped(), kernel, arch, changes);
      continue;
    }
    changes.push_back({Kind::added, kernel.file, kernel.kernel,
                       fmt::format("{} registers, local memory {} B/thread", kernel.registers,
                                   kernel.local_bytes)});
  }
  for (const auto& [id, rows] : known) {
    changes.push_back(
        {Kind::removed, id.first, id.second, "the program does not have this kernel"});
  }
  return changes;
}

std::vector<ResourceChange> changes_of(const std::vector<ModuleRow>& before,
                                       const std::vector<ModuleRow>& now) {
  const auto find = [](const std::vector<ModuleRow>& rows, const ModuleRow& row) {
    return std::ranges::find_if(rows, [&](const ModuleRow& other) {
      return other.suite == row.suite && other.variant == row.variant;
    });
  };
  std::vector<ResourceChange> changes;
  for (const ModuleRow& row : now) {
    const auto old = find(before, row);
    const std::string cases = count_of(static_cast<size_t>(row.cases), "case");
    if (old == before.end() || old->cases != row.cases) {
      std::string what = fmt::format("modules {} in {}", row.modules, cases);
      if (old != before.end()) what += fmt::format("; the file counts {} cases", old->cases);
      changes.push_back({Kind::added, row.suite, row.variant, what});
    } else if (old->modules != row.modules) {
      changes.push_back({row.modules > old->modules ? Kind::worse : Kind::better, row.suite,
                         row.variant,
                         fmt::format("modules {} -> {} in {}", old->modules, row.modules, cases)});
    }
  }
  for (const ModuleRow& row : before) {
    if (find(now, row) != now.end()) continue;
    changes.push_back({Kind::removed, row.suite, row.variant, "the run does not have it"});
  }
  return changes;
}

std::string compilers_of(const std::vector<ModuleRow>& rows) {
  std::set<std::string> all;
  for (const ModuleRow& row : rows) {
    if (!row.compiler.empty()) all.insert(row.compiler);
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

ResourceVerdict verdict_of(std::vector<ResourceChange> changes, const std::string& known_compiler,
                           const std::string& compiler, const std::string& judged,
                           const std::filesystem::path& path) {
  std::ranges::stable_sort(changes, {}, &ResourceChange::kind);  // the worst first
  const bool other = compiler != known_compiler;
  Exit exit = Exit::ok;
  if (!changes.empty()) exit = changes[0].kind == Kind::worse ? Exit::latency : Exit::coverage;
  if (!changes.empty() && other) exit = Exit::inconclusive;

  std::string text = first_line(changes, exit, judged, path);
  for (const ResourceChange& change : changes) text += line_of(change);
  if (other) {
    text += fmt::format("made by {}, the file's by {}: what changed may be the compiler's\n",
                        name_of_compiler(compiler), name_of_compiler(known_compiler));
  }
  if (exit != Exit::ok) {
    text +=
        "if you want these changes, `moegate bless --resources --reason '...'` updates the file\n";
  }
  return {exit, text};
}

}  // namespace moegate
