// SPDX-License-Identifier: Apache-2.0
#include "harness/site/chart_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/site/page_json.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

fs::path pages_folder() {
  return home() / "reports" / "pages";
}

/// A folder of its own, removed at the end of its scope.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "moegate-chart-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(Exit::environment, fmt::format("{}: cannot be made; set TMPDIR", name));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string add(const char* name, const std::string& text) const {
    write_file_atomically(path_ / name, text);
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

}  // namespace

fs::path chart_of(const fs::path& sql) {
  return fs::path(sql).replace_extension(".vg.json");
}

bool has_chart(const fs::path& sql) {
  return is_file(chart_of(sql));
}

std::string read_chart(const fs::path& path) {
  constexpr size_t kLongest = size_t{1} << 20;  // bytes
  const auto chart = parse_json(path.string(), read_file(path, kLongest));
  if (!chart.is_object()) usage_error("{}: a chart is a JSON object", path.string());
  return chart.dump(-1, ' ', true);
}

std::string vega_script() {
  const fs::path installed = pages_folder() / "vega.js";
  if (is_file(installed)) return read_file(installed);
  const fs::path list = pages_folder() / "vega.txt";
  std::istringstream lines(read_file(list));
  std::string script = read_file(pages_folder() / "vega_begin.js");
  for (std::string line; std::getline(lines, line);) {
    const std::string path = trimmed(line);
    if (path.empty() || path[0] == '#') continue;
    if (!is_file(path)) {
      throw Error(Exit::environment,
                  fmt::format("{}: no such file; install Debian's libjs-vega for charts", path));
    }
    script += fmt::format("moegateModule(\"{}\", function (module, exports, require) {{\n",
                          fs::path(path).stem().stem().string());
    script += read_file(path) + "\n});\n";
  }
  return script + read_file(pages_folder() / "vega_end.js");
}

std::string chart_svg(const fs::path& chart, const std::string& title, const Table& table) {
  const std::string job = fmt::format("{{\"spec\":{},\"title\":{},\"table\":{}}}",
                                      read_chart(chart), json_string(title), json_table(table));
  const ScratchFolder folder;
  const Finished node =
      run_program({"node", (pages_folder() / "svg.js").string(),
                   folder.add("vega.js", vega_script()), folder.add("chart.json", job)},
                  Output::capture_stdout);
  if (node.exit != 0) {
    usage_error("{}: cannot be drawn: node ended with {} (its message is above)", chart.string(),
                node.exit);
  }
  return node.out;
}

}  // namespace moegate
