// SPDX-License-Identifier: Apache-2.0
#include "harness/site/site_files.h"

#include <fmt/format.h>
#include <boost/algorithm/hex.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/site/page_json.h"
#include "harness/site/site_parts.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

std::string part_of_page(const char* name) {
  return read_file(pages_folder() / name);
}

/// The text of a chart: a Vega specification, whose data set "table" gets the rows. Throws
/// Error(usage) naming the file for what is no JSON object.
std::string read_chart(const fs::path& path) {
  constexpr size_t kLongest = size_t{1} << 20;  // bytes
  const auto chart = parse_json(path.string(), read_file(path, kLongest));
  if (!chart.is_object()) usage_error("{}: a chart is a JSON object", path.string());
  return chart.dump(-1, ' ', true);
}

/// Vega with what it needs, as one script: Debian's libjs-vega, or the copy in an installed folder.
/// Throws Error(environment) naming the package.
std::string vega_script() {
  const fs::path installed = pages_folder() / "vega.js";
  if (is_file(installed)) return read_file(installed);
  std::istringstream lines(part_of_page("vega.txt"));
  std::string script = part_of_page("vega_begin.js");
  for (std::string line; std::getline(lines, line);) {
    const std::string path = trimmed(line);
    if (path.empty() || path[0] == '#') continue;
    if (!is_file(path)) {
      give_up(Exit::environment, "{}: no such file; install Debian's libjs-vega for charts", path);
    }
    script += fmt::format("moegateModule(\"{}\", function (module, exports, require) {{\n",
                          fs::path(path).stem().stem().string());
    script += read_file(path) + "\n});\n";
  }
  return script + part_of_page("vega_end.js");
}

constexpr size_t kRowsInFile = 32;  // about; a browser loads a file to show a page

/// What a policy names a script by that stands in the page.
std::string base64_sha256(const std::string& text) {
  using boost::archive::iterators::base64_from_binary, boost::archive::iterators::transform_width;
  using Digits = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  const std::string bytes = boost::algorithm::unhex(sha256(text)) + '\0';  // fills the last digit
  std::string out(Digits(bytes.begin()), Digits(bytes.end()));
  out.back() = '=';  // nothing but what was filled in
  return out;
}

class Charts {
 public:
  void add(const Page& page) {
    for (const Section& section : page.sections) {
      for (const Block& block : section.blocks) {
        if (const auto* chart = std::get_if<Chart>(&block)) add(chart->file);
        if (const auto* chart = std::get_if<LevelChart>(&block)) add(chart->file);
      }
    }
  }
  std::string json() const {
    return json_object(files_, [](std::string& out, const std::string& file) {
      out += boost::replace_all_copy(read_chart(file), "<", "\\u003c");
    });
  }

 private:
  void add(const std::string& chart) {
    const auto [at, fresh] = files_.try_emplace(chart_name(chart), chart);
    if (!fresh && at->second != chart) {
      usage_error("{} and {}: two charts of one name; rename a report and its chart", at->second,
                  chart);
    }
  }
  std::map<std::string, std::string> files_;
};

/// Vega, or why there is none.
struct Vega {
  std::string script, missing;
};

Vega find_vega() {
  try {
    return {vega_script(), ""};
  } catch (const Error& e) {
    if (e.code() != Exit::environment) throw;
    say("moegate: pages without charts: {}\n", e.what());
    return {"", e.what()};
  }
}

/// The document: the template of reports/pages/ with style, scripts, policy and data.
std::string document(const std::string& title, const std::string& data,
                     const std::string& inlined) {
  const std::string style = part_of_page("style.css");
  std::string app = "(function () {\n\"use strict\";\n";
  for (const char* file : {"unpack.js", "charts.js", "range.js", "fold.js", "tables.js",
                           "blocks.js", "find.js", "app.js"})
    app += part_of_page(file);
  app += "})();\n";
  std::string scripts, hashes;
  for (std::string script : {inlined, app}) {
    if (script.empty()) continue;
    boost::replace_all(script, "</script", "<\\/script");
    scripts += "<script>" + script + "</script>\n";
    hashes += " 'sha256-" + base64_sha256(script) + "'";
  }
  const std::string policy = fmt::format(
      "default-src 'none'; script-src{}{}; style-src 'sha256-{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      inlined.empty() ? " 'self'" : "", hashes, base64_sha256(style));
  std::string html = part_of_page("index.html");
  // Data last: it must not be searched for what is replaced.
  boost::replace_all(html, "{{policy}}", policy);
  boost::replace_all(html, "{{title}}", title);
  boost::replace_all(html, "{{style}}", style);
  const size_t at = html.find("{{data}}");
  if (at == std::string::npos) usage_error("reports/pages/index.html: has no {{{{data}}}}");
  return html.substr(0, at) + "<script type=\"application/json\" id=\"data\">" + data +
         "</script>\n" + scripts + html.substr(at + std::string("{{data}}").size());
}

constexpr std::string_view kPart = "moegatePart(";  // how a file of pages begins

/// Whether `moegate pages` of this or an earlier version made the file: named rows-7-1a2b3c4d.js,
/// rows-7.js or 7.js, and with pages in it. Many a project has files in a data/ of its own.
bool is_of_site(const fs::directory_entry& entry) {
  static const Pattern name = compile_pattern("", "^(page-|rows-)?[0-9]+(-[0-9a-f]+)?\\.js$");
  std::error_code ignored;  // what cannot be looked at stays
  if (!fs::is_regular_file(entry.symlink_status(ignored))) return false;
  if (!name.found_in(entry.path().filename().string())) return false;
  std::string head(kPart.size(), '\0');
  std::ifstream(entry.path(), std::ios::binary).read(head.data(), std::ssize(head));
  return head == kPart;
}

/// The files of pages that are there, of this site and of the one before.
std::vector<fs::path> files_of_sites(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (is_of_site(*at)) files.push_back(at->path());
  }
  if (error) usage_error("{}: {}", folder.string(), error.message());
  return files;
}

using Pages = std::span<const SitePage>;

/// What a site's index names its files by: a file is named by its content, too, so that those of
/// the site before stay as they are until the new index is there.
class DataFiles {
 public:
  explicit DataFiles(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) usage_error("{}: {}", folder_.string(), error.message());
  }

  /// Writes a script that hands pages over to app.js. Returns what names its content.
  std::string write(const std::string& name, Pages pages, Charts& charts) {
    PagesJson json;
    for (const SitePage& entry : pages) {
      const Page page = entry.make();
      charts.add(page);
      json.add(entry.id, page, entry.title);
    }
    const std::string text = std::string(kPart) + json.json() + ");\n";
    const std::string content = sha256(text).substr(0, 8);
    const fs::path file = folder_ / fmt::format("{}-{}.js", name, content);
    write_file_atomically(file, text);
    written_.insert(file);
    return content;
  }

  /// To be called once the index names what was written.
  void remove_others() const {
    for (const fs::path& file : files_of_sites(folder_)) {
      std::error_code ignored;  // what stays is in nobody's way
      if (!written_.contains(file)) fs::remove(file, ignored);
    }
  }

 private:
  fs::path folder_;
  std::set<fs::path> written_;
};

/// Each page in a file of its own. Returns the files' names by their numbers, as JSON.
std::string write_single_pages(DataFiles& data, Pages pages, Charts& charts) {
  std::map<uint32_t, std::vector<SitePage>> files;  // as a rule one page of each number
  for (const SitePage& page : pages) files[file_hash(page.id)].push_back(page);
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [number, of_number] : files) {
    names.emplace_back(std::to_string(number),
                       data.write(fmt::format("page-{}", number), of_number, charts));
  }
  return json_object(names, append_string);
}

/// Rows' pages, which come by file_hash(), as many files. Returns their names, as JSON.
std::string write_row_pages(DataFiles& data, Pages pages, Charts& charts) {
  const size_t files = (pages.size() + kRowsInFile - 1) / kRowsInFile;
  std::vector<std::string> names;
  auto begin = pages.begin();
  for (size_t i = 0; i < files; ++i) {
    const auto end = std::find_if(begin, pages.end(), [&](const SitePage& page) {
      return uint64_t{file_hash(page.id)} * files >> 32 > i;  // app.js has the same
    });
    names.push_back(data.write(fmt::format("rows-{}", i), {begin, end}, charts));
    begin = end;
  }
  return json_list(names, append_string);
}

/// What app.js begins with.
std::string site_json(const std::string& files, const std::string& row_files, const Vega& vega,
                      const Charts& charts, const PagesJson& first, const std::string& repository) {
  return fmt::format(
      "{{\"files\":{},\"rowFiles\":{},\"vega\":{},\"repository\":{},\"charts\":{},\"part\":{}}}",
      files, row_files, json_string(vega.missing), json_string(repository), charts.json(),
      first.json());
}

/// One page with everything that it needs, charts included.
std::string single_html(const Page& page, const std::string& title) {
  Charts charts;
  charts.add(page);
  PagesJson first;
  first.add("start", page, title);
  const Vega vega = find_vega();
  return document("moegate", site_json("{}", "[]", vega, charts, first, ""), vega.script);
}

Table::Cell number(double x) {
  return Table::number("{:.5g}", x);
}

/// As reports/pages/night-change.sql has it of a stored verdict.
Table changes_table(const GateResult& result) {
  std::vector<const CaseVerdict*> rows;
  for (const CaseVerdict& v : result.cases) {
    if (v.latency) rows.push_back(&v);
  }
  std::ranges::stable_sort(rows, {}, [](const CaseVerdict* v) { return v->latency->effect; });
  Table table{{"place", "case", "variant", "outcome", "change (%)", "from (%)", "to (%)"}};
  for (const CaseVerdict* v : rows) {
    table.add(table.rows.size() + 1, v->id.key, v->id.variant, name_of(v->outcome),
              number(100 * v->latency->effect), number(100 * v->latency->low),
              number(100 * v->latency->high));
  }
  return table;
}

/// As reports/pages/night-scatter.sql has it.
Table levels_table(const GateResult& result) {
  Table table{{"case", "variant", "outcome", "before", "now"}};
  for (const CaseVerdict& v : result.cases) {
    if (!(v.base > 0 && v.head > 0)) continue;
    table.add(v.id.key, v.id.variant, name_of(v.outcome), number(v.base), number(v.head));
  }
  return table;
}

void add_chart(Page& page, const char* name, const char* title, Table table) {
  if (table.rows.empty()) return;
  page.add(0, Chart{page_chart(name), title, std::move(table)});
}

}  // namespace

fs::path chart_of(const fs::path& sql) {
  return fs::path(sql).replace_extension(".vg.json");
}

bool has_chart(const fs::path& sql) {
  return is_file(chart_of(sql));
}

std::string chart_svg(const fs::path& chart, const std::string& title, const Table& table) {
  const std::string job = fmt::format("{{\"spec\":{},\"title\":{},\"table\":{}}}",
                                      read_chart(chart), json_string(title), json_table(table));
  const ScratchFolder folder("chart");
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

void write_site(const fs::path& folder, const std::vector<SitePage>& pages,
                const std::string& repository) {
  DataFiles data(folder / "data");
  Charts charts;
  const Page start = pages[0].make();
  charts.add(start);
  PagesJson first;
  first.add(pages[0].id, start, pages[0].title);
  const Pages others = Pages(pages).subspan(1);
  const auto rows = std::ranges::find_if(others, is_row_page, &SitePage::id);
  const std::string files = write_single_pages(data, {others.begin(), rows}, charts);
  const std::string row_files = write_row_pages(data, {rows, others.end()}, charts);
  const Vega vega = find_vega();
  if (!vega.script.empty()) write_file_atomically(folder / "vega.js", vega.script);
  const std::string json = site_json(files, row_files, vega, charts, first, repository);
  write_file_atomically(folder / "index.html", document("moegate", json, ""));
  data.remove_others();
}

std::string verdict_html(const GateReport& report) {
  Page page = gate_page(report);
  add_chart(page, "night-change",
            "Change of every judged row, sorted, with its bounds; below 0 is faster",
            changes_table(report.result));
  add_chart(page, "night-scatter", "Level before and now; below the line is faster",
            levels_table(report.result));
  page.add(0, Heading{"All rows"}, Rows{verdict_table(report.result)});
  return single_html(page, "Verdict of " + describe(report.run));
}

}  // namespace moegate
