// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "harness/commands/templates.h"

namespace moegate {
namespace {

/// Groups that were listed, and of which verb.
using Listed = std::vector<std::pair<Flags::Group, std::string>>;

bool same(const Flags::Group& a, const Flags::Group& b) {
  const auto equal = [](const Flag& x, const Flag& y) {
    return std::string_view(x.text.name) == y.text.name &&
           std::string_view(x.text.about) == y.text.about && x.if_unset() == y.if_unset();
  };
  return a.title == b.title && std::ranges::equal(a.flags, b.flags, equal);
}

std::string in_bold(const std::string& text) {
  return "\\fB" + roff_escaped(text) + "\\fR";
}

std::string flag_entry(const Flag& flag) {
  std::string name = in_bold(fmt::format("--{}", flag.text.name));
  if (*flag.text.value != 0) name += " \\fI" + roff_escaped(flag.text.value) + "\\fR";
  std::string about = flag.text.about;
  const std::string unset = flag.if_unset();
  if (!unset.empty()) about += fmt::format("{}(default: {})", about.empty() ? "" : " ", unset);
  return fmt::format(".TP\n{}\n{}\n", name, roff_escaped(about));
}

std::string group_text(const Flags::Group& group, const std::string& verb, Listed& listed) {
  for (const auto& [other, of] : listed) {
    if (same(other, group)) {
      return fmt::format(".PP\n{}: as of {}.\n", roff_escaped(group.title),
                         in_bold("moegate " + of));
    }
  }
  listed.emplace_back(group, verb);
  std::string text = fmt::format(".PP\n{}:\n", roff_escaped(group.title));
  for (const Flag& flag : group.flags) text += flag_entry(flag);
  return text;
}

std::string verb_section(const DescribedVerb& described, Listed& listed) {
  const Verb& verb = *described.verb;
  std::string text = fmt::format(".SS moegate {}\n{}.\n.PP\n.nf\n", roff_escaped(verb.name),
                                 roff_escaped(verb.about));
  for (const char* usage : verb.usages) {
    text += in_bold(fmt::format("moegate {} {}", verb.name, usage)) + "\n";
  }
  text += ".fi\n";
  for (const Flags::Group& group : described.flags.groups()) {
    if (!group.flags.empty()) text += group_text(group, verb.name, listed);
  }
  return text;
}

}  // namespace

std::string roff_escaped(const std::string& text) {
  constexpr std::string_view kSpecial = "\\-'`^~";
  constexpr std::array kAs = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
  std::string escaped;
  // A line that begins so would be a request.
  if (text.starts_with('.') || text.starts_with('\'')) escaped = "\\&";
  for (const char c : text) {
    const size_t place = kSpecial.find(c);
    escaped += place == std::string_view::npos ? std::string(1, c) : kAs[place];
  }
  return escaped;
}

std::string man_page(const std::string& version, const std::vector<DescribedVerb>& verbs) {
  Listed listed;
  std::string commands, examples;
  for (const DescribedVerb& verb : verbs) {
    commands += verb_section(verb, listed);
    for (const char* example : verb.verb->examples) {
      examples += fmt::format(".TP\n{}\n{}.\n", in_bold(example), roff_escaped(verb.verb->about));
    }
  }
  return filled_in(
      template_text("man/moegate.1"),
      {{"version", roff_escaped(version)}, {"commands", commands}, {"examples", examples}});
}

std::string reference(const std::vector<DescribedVerb>& verbs) {
  std::string text = "| command | what it does | flags of its own |\n| --- | --- | --- |\n";
  std::map<std::string, std::string> shared;  // of the groups that belong to a run's options
  for (const DescribedVerb& described : verbs) {
    std::string own;
    for (const Flags::Group& group : described.flags.groups()) {
      const bool of_run = group.title == kSelectionGroup || group.title == kMeasuringGroup;
      if (of_run && shared.contains(group.title)) continue;
      std::string& names = of_run ? shared[group.title] : own;
      for (const Flag& flag : group.flags) {
        names += fmt::format("{}`--{}`", names.empty() ? "" : " ", flag.text.name);
      }
    }
    text += fmt::format("| `{}` | {} | {} |\n", described.verb->name, described.verb->about, own);
  }
  for (const auto& [title, names] : shared) {
    text += fmt::format("| *several* | {} | {} |\n", title, names);
  }
  return text;
}

}  // namespace moegate
