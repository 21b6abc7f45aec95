// SPDX-License-Identifier: Apache-2.0
// moegate pages: a store as pages for a browser.
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/site/site.h"
#include "harness/site/site_files.h"

namespace moegate {
namespace {

/// "90d" -> 90. Throws Error(usage).
int parse_days(const std::string& text) {
  constexpr int kMostDays = 36500;
  const auto days =
      text.ends_with('d') ? parse_number<int>(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!days || *days < 1 || *days > kMostDays)
    usage_error("--since '{}': give a number of days, such as 90d", text);
  return *days;
}

}  // namespace

int cmd_pages(const Args& args) {
  SiteOptions options;
  options.db = kDefaultStore;
  std::string out = "site";
  Flags flags;
  flags.add(flag("out", out, "folder of the pages; open its index.html"));
  flags.add(
      flag("since", [&](const std::string& text) { options.since = days_ago(parse_days(text)); }));
  flags.add(flag("report", options.reports));
  flags.add(db_flag(options.db));
  if (!parse("pages", flags, args)) return 0;
  options.repeat = [&](const RunInfo& run) { return repeat_command(run, options.db); };
  Store store = Store::open(options.db, Store::Mode::read);
  const auto pages = site_pages(store, options);
  write_site(out, pages);
  fmt::print("{} pages in {}/index.html\n", pages.size(), out);
  return 0;
}

}  // namespace moegate
