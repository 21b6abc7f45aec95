// SPDX-License-Identifier: Apache-2.0
#include "harness/report/site_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/home.h"
#include "harness/base/notes.h"
#include "harness/base/sha256.h"
#include "harness/report/chart_file.h"
#include "harness/report/page_json.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPagesInFile = 4;  // about; a browser loads a file to show a page

std::string part_of_page(const char* name) {
  return read_file(home() / "reports" / "pages" / name);
}

/// What a policy names a script by that stands in the page.
std::string base64_sha256(const std::string& text) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(text);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4 | static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    out += kDigits[bits >> count & 63];
  }
  if (count > 0) out += kDigits[bits << (6 - count) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// The charts that pages use, by name.
class Charts {
 public:
  void add(const Page& page) {
    for (const Section& section : page.sections) {
      for (const Block& block : section.blocks) {
        if (const auto* chart = std::get_if<Chart>(&block)) add(*chart);
      }
    }
  }
  std::string json() const {
    std::string out = "{";
    for (const auto& [name, file] : files_)
      out += fmt::format("{}{}:{}", out.size() > 1 ? "," : "", json_string(name), text_of(file));
    return out + "}";
  }

 private:
  void add(const Chart& chart) {
    const auto [at, fresh] = files_.try_emplace(chart_name(chart), chart.file);
    if (!fresh && at->second != chart.file) {
      usage_error("{} and {}: two charts of one name; rename a report and its chart", at->second,
                  chart.file);
    }
  }
  static std::string text_of(const std::string& file) {
    std::string text = read_chart(file);
    replace(text, "<", "\\u003c");
    return text;
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
  for (const char* file : {"charts.js", "fold.js", "tables.js", "blocks.js", "app.js"})
    app += part_of_page(file);
  app += "})();\n";
  std::string scripts, hashes;
  for (std::string script : {inlined, app}) {
    if (script.empty()) continue;
    replace(script, "</script", "<\\/script");
    scripts += "<script>" + script + "</script>\n";
    hashes += " 'sha256-" + base64_sha256(script) + "'";
  }
  const std::string policy = fmt::format(
      "default-src 'none'; script-src{}{}; style-src 'sha256-{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      inlined.empty() ? " 'self'" : "", hashes, base64_sha256(style));
  std::string html = part_of_page("index.html");
  // Data last: it must not be searched for what is replaced.
  replace(html, "{{policy}}", policy);
  replace(html, "{{title}}", title);
  replace(html, "{{style}}", style);
  const size_t at = html.find("{{data}}");
  if (at == std::string::npos) usage_error("reports/pages/index.html: has no {{{{data}}}}");
  return html.substr(0, at) + "<script type=\"application/json\" id=\"data\">" + data +
         "</script>\n" + scripts + html.substr(at + std::string("{{data}}").size());
}

/// FNV-1a; app.js has the same.
uint32_t hash_of(const std::string& id) {
  uint32_t hash = 2166136261;
  for (const char c : shown_text(id)) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash;
}

void make_empty(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) fs::create_directories(folder, error);
  if (error) usage_error("{}: {}", folder.string(), error.message());
}

/// Writes the other pages, some to a file. Returns the numbers of the files, as JSON.
std::string write_parts(const fs::path& folder, const std::vector<SitePage>& pages, uint32_t files,
                        Charts& charts) {
  std::map<uint32_t, std::vector<const SitePage*>> parts;
  for (size_t i = 1; i < pages.size(); ++i)
    parts[hash_of(pages[i].id) % files].push_back(&pages[i]);
  std::string numbers = "[";
  for (const auto& [number, all] : parts) {
    numbers += fmt::format("{}{}", numbers.size() > 1 ? "," : "", number);
    std::string text = fmt::format("moegatePart({},{{", number);
    for (const SitePage* entry : all) {
      const Page page = entry->make();
      charts.add(page);
      text += fmt::format("{}{}:", entry == all[0] ? "" : ",", json_string(entry->id));
      text += to_json(page, entry->title);
    }
    write_file_atomically(folder / fmt::format("{}.js", number), text + "});\n");
  }
  return numbers + "]";
}

}  // namespace

void write_site(const fs::path& folder, const std::vector<SitePage>& pages) {
  make_empty(folder / "data");
  const auto files =
      std::bit_ceil(static_cast<uint32_t>(std::max<size_t>(1, pages.size() / kPagesInFile)));
  Charts charts;
  const Page first = pages[0].make();
  charts.add(first);
  const std::string parts = write_parts(folder / "data", pages, files, charts);
  const Vega vega = find_vega();
  if (!vega.script.empty()) write_file_atomically(folder / "vega.js", vega.script);
  const std::string data =
      fmt::format("{{\"files\":{},\"parts\":{},\"vega\":{},\"charts\":{},\"pages\":{{{}:{}}}}}",
                  files, parts, json_string(vega.missing), charts.json(), json_string(pages[0].id),
                  to_json(first, pages[0].title));
  write_file_atomically(folder / "index.html", document("moegate", data, ""));
}

std::string single_html(const Page& page, const std::string& title) {
  Charts charts;
  charts.add(page);
  const Vega vega = find_vega();
  const std::string data =
      fmt::format("{{\"files\":0,\"vega\":{},\"charts\":{},\"pages\":{{\"start\":{}}}}}",
                  json_string(vega.missing), charts.json(), to_json(page, title));
  return document("moegate", data, vega.script);
}

}  // namespace moegate
