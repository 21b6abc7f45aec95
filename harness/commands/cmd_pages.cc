// SPDX-License-Identifier: Apache-2.0
// moegate pages: a store as pages for a browser.
#include "harness/campaign/run_options.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/site/site.h"
#include "harness/site/site_files.h"

namespace moegate {

int cmd_pages(const Args& args) {
  SiteOptions options;
  options.db = kDefaultStore;
  const Project project = find_project();
  std::string out = project.is_there() ? (project.out() / "pages").string() : "site";
  options.waivers = project.waivers(project.judges_own_kernels());
  Flags flags;
  flags.add(flag("out", out, "folder of the pages; open its index.html"));
  flags.add(flag("since", since_days(options.since)));
  flags.add(flag("report", options.reports));
  flags.add(db_flag(options.db));
  if (!parse("pages", flags, args)) return 0;
  options.repeat = [&](const RunInfo& run) { return repeat_command(run, options.db); };
  Store store = Store::open(options.db, Store::Mode::read);
  const auto pages = site_pages(store, options);
  write_site(out, pages, repository_address(project));
  fmt::print("{} pages in {}/index.html\n", pages.size(), out);
  return 0;
}

}  // namespace moegate
