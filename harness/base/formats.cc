// SPDX-License-Identifier: Apache-2.0
#include "harness/base/formats.h"

#include <re2/re2.h>
#include <boost/algorithm/string/replace.hpp>

#include <filesystem>
#include <sstream>

#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

class Scanner {
 public:
  explicit Scanner(const std::string& path) : place_{path}, sections_(1) {}

  std::vector<IniSection> scan(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      ++place_.line;
      scan_line(line);
    }
    return std::move(sections_);
  }

 private:
  void scan_line(const std::string& raw) {
    const size_t hash = raw.find('#');
    // A comment starts at '#' wherever it stands; a path or name with '#' would lose its end.
    if (hash != std::string::npos && hash > 0 && raw[hash - 1] != ' ' && raw[hash - 1] != '\t') {
      place_.fail(
          "'#' starts a comment even inside '{}'; put a blank before a comment, and rename what "
          "contains '#'",
          trimmed(raw));
    }
    const std::string line = trimmed(raw.substr(0, hash));
    if (line.empty()) return;
    if (line.front() == '[') return scan_section(line);
    const size_t equals = line.find('=');
    const std::string key = trimmed(line.substr(0, equals));
    static const RE2 word("[-\\w]+");
    if (equals == std::string::npos || !RE2::FullMatch(key, word)) {
      place_.fail("malformed line '{}'; write 'name = value, value' or '[section]'", line);
    }
    IniSection& section = sections_.back();
    if (const IniEntry* first = section.find(key)) {
      place_.fail(
          "'{}' is repeated (first on line {}); write all its values in one comma-separated list",
          key, first->line);
    }
    section.entries.push_back({key, place_.line, split_list(line.substr(equals + 1))});
    if (std::ranges::count(section.entries.back().values, "") == 0) return;
    place_.fail(
        "[{}] parameter '{}' has an empty value list or element; give each comma a value on both "
        "sides",
        section.name, key);
  }

  void scan_section(const std::string& line) {
    // Dots divide a name into parts, and a part has a name.
    static const RE2 in_brackets(R"(\[([-\w.]*[-\w])\])");
    std::string name;
    if (!RE2::FullMatch(line, in_brackets, &name)) {
      place_.fail(
          "malformed section '{}'; write [name] with letters, digits, '-', '_' and inner '.'",
          line);
    }
    for (const IniSection& other : sections_) {
      if (other.name != name) continue;
      place_.fail("section [{}] is repeated (first on line {}); merge the two or rename one", name,
                  other.line);
    }
    sections_.push_back({name, place_.line, {}});
  }

  TextPlace place_;
  std::vector<IniSection> sections_;
};

// Format: numpy/lib/format.py. "\x93NUMPY", major, minor, header length (2 bytes in version 1, else
// 4, little-endian), a Python dict literal {'descr': '<i4', 'fortran_order': False, 'shape': (3,
// 4), }, then the elements.

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr const char* kRemedy =
    "save it with numpy.save(path, numpy.ascontiguousarray(array, dtype='<i4'))";

/// A file under its path, so that every complaint names it.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path) : path_(path) {}

  IntTable read() {
    load();
    const size_t data_at = find_data();
    const size_t item_bytes = parse_item_bytes();
    if (!value_of("fortran_order").starts_with("False")) fail("is in Fortran order, not C order");
    const std::vector<int64_t> shape = parse_shape();
    if (shape.empty() || shape.size() > 2) {
      fail("has {} dimensions, not 1 or 2: [n] or [rows, k]", shape.size());
    }
    return decode({shape[0], shape.size() == 2 ? shape[1] : 1, {}}, item_bytes, data_at);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    usage_error("'{}' {}; {}", path_, fmt::format(format, std::forward<Args>(args)...), kRemedy);
  }

  void load() {
    std::error_code error;
    const auto type = std::filesystem::status(path_, error).type();
    if (type == std::filesystem::file_type::not_found) {
      usage_error(
          "'{}' does not exist; check the path (a relative one starts at the current folder)",
          path_);
    }
    if (type == std::filesystem::file_type::directory) fail("is a folder, not a .npy file");
    constexpr size_t kLongest = size_t{1} << 30;  // a hundred million expert ids
    bytes_ = read_file(path_, kLongest);
  }

  uint64_t little_endian(size_t at, size_t count) const {
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes_[at + i]);
    return value;
  }

  /// Checks the preamble, keeps the header's text, and returns where the elements start.
  size_t find_data() {
    const bool is_npy = std::string_view(bytes_).substr(0, kMagic.size()) == kMagic;
    if (!is_npy) fail("is not a .npy file: it does not start with \\x93NUMPY");
    if (bytes_.size() < 12) fail("is truncated in its header");
    const int major = static_cast<uint8_t>(bytes_[6]);
    if (major < 1 || major > 3) fail("has .npy version {}, not 1 to 3", major);
    const size_t length_bytes = major == 1 ? 2 : 4;
    const size_t text_at = 8 + length_bytes;
    const uint64_t length = little_endian(8, length_bytes);
    if (length > bytes_.size() - text_at) fail("is truncated in its header");
    header_ = bytes_.substr(text_at, length);
    return text_at + length;
  }

  /// The text after 'name', up to the header's end.
  std::string value_of(const char* name) const {
    std::string value;
    const std::string key = fmt::format(R"((?s)['"]{}['"][ \t:]*([^ \t:].*))", name);
    if (!RE2::PartialMatch(header_, RE2(key, RE2::Latin1), &value)) {
      fail("has a header without '{}'", name);
    }
    return value;
  }

  size_t parse_item_bytes() const {
    static const RE2 quoted(R"re(^(?:'([^']*)'|"([^"]*)"))re", RE2::Latin1);
    std::string single, twice;
    const bool is_quoted = RE2::PartialMatch(value_of("descr"), quoted, &single, &twice);
    const std::string dtype = is_quoted ? single + twice : "a structured type";
    if (dtype == "<i2") return 2;
    if (dtype == "<i4") return 4;
    if (dtype == "<i8") return 8;
    fail("has dtype {}, not <i2, <i4 or <i8 (int16, int32, int64)", dtype);
  }

  std::vector<int64_t> parse_shape() const {
    static const RE2 in_brackets(R"((?s)^\((.*?)\))", RE2::Latin1);
    std::string extents;
    if (!RE2::PartialMatch(value_of("shape"), in_brackets, &extents)) {
      fail("has a header without a shape");
    }
    std::istringstream words(boost::replace_all_copy(extents, ",", " "));
    std::vector<int64_t> shape;
    for (std::string word; words >> word;) {
      const auto extent = parse_number<int64_t>(word);
      if (!extent || *extent < 0) fail("has a header with an unreadable shape");
      shape.push_back(*extent);
    }
    return shape;
  }

  /// The values of a table of this shape.
  IntTable decode(IntTable table, size_t item_bytes, size_t data_at) const {
    const uint64_t have = (bytes_.size() - data_at) / item_bytes;
    // Divided, not multiplied: a corrupt shape must not overflow into a small product.
    const bool whole =
        table.rows == 0 || table.columns == 0 ||
        static_cast<uint64_t>(table.columns) <= have / static_cast<uint64_t>(table.rows);
    if (!whole) {
      fail("is truncated: its shape is [{}, {}], but only {} elements follow", table.rows,
           table.columns, have);
    }
    table.values.resize(static_cast<size_t>(table.rows * table.columns));
    const unsigned unused_bits = 64 - 8 * static_cast<unsigned>(item_bytes);
    for (size_t i = 0; i < table.values.size(); ++i) {
      const uint64_t raw = little_endian(data_at + i * item_bytes, item_bytes);
      table.values[i] = static_cast<int64_t>(raw << unused_bits) >> unused_bits;  // sign extension
    }
    return table;
  }

  const std::string& path_;
  std::string bytes_;
  std::string header_;
};

}  // namespace

IniFile parse_ini(const std::string& path, const std::string& text) {
  IniFile file{path, Scanner(path).scan(text)};
  if (file.sections.size() == 1) {
    usage_error("{}: has no [section]; put the parameters of each model in one", path);
  }
  return file;
}

nlohmann::json parse_json(const std::string& where, std::string_view text) {
  constexpr size_t kShown = 160;  // of a message, which quotes the text
  const auto not_too_deep = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth <= kDeepestJson) return true;
    usage_error("{}: its JSON is nested deeper than {}; is it the right file?", where,
                kDeepestJson);
  };
  try {
    return nlohmann::json::parse(text, not_too_deep);
  } catch (const nlohmann::json::exception& e) {
    usage_error("{}: is damaged, or no JSON: {}", where,
                clipped(one_line(valid_utf8(e.what())), kShown));
  }
}

IntTable read_npy(const std::string& path) {
  return NpyFile(path).read();
}

}  // namespace moegate
