// SPDX-License-Identifier: Apache-2.0
// moegate pages: a store as pages for a browser.
#include <chrono>

#include "harness/base/text.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/report/site.h"
#include "harness/report/site_files.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

/// "90d" -> the UTC date that many days ago. Throws Error(usage).
std::string date_before(const std::string& text) {
  constexpr int kMostDays = 36500;
  const auto days = text.ends_with('d') ? parse_number<int>(text.substr(0, text.size() - 1))
                                        : std::nullopt;
  if (!days || *days < 1 || *days > kMostDays)
    usage_error("--since '{}': give a number of days, such as 90d", text);
  const std::chrono::year_month_day date = today() - std::chrono::days(*days);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace

int cmd_pages(const Args& args) {
  SiteOptions options;
  options.db = kDefaultStore;
  std::string out = "site";
  po::options_description flags("Options");
  flags.add_options()  //
      ("out", po::value(&out)->default_value(out)->value_name("DIR"),
       "folder of the pages; open its index.html")  //
      ("since",
       po::value<std::string>()
           ->notifier([&](const std::string& text) { options.since = date_before(text); })
           ->value_name("DAYS"),
       "only runs of the last days, such as 90d (default: all)")  //
      ("report", po::value(&options.reports)->value_name("NAME"),
       "a report more, by name or path, of the newest run of each device class; repeatable");
  flags.add(db_flag(options.db));
  if (!parse("moegate pages [options]", flags, args)) return 0;
  Store store = Store::open(options.db, Store::Mode::read);
  const auto pages = site_pages(store, options);
  write_site(out, pages);
  fmt::print("{} pages in {}/index.html\n", pages.size(), out);
  return 0;
}

}  // namespace moegate
