// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/man_page.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

namespace moegate {
namespace {

/// Groups that were listed, and of which command.
using Listed = std::vector<std::pair<HelpGroup, std::string>>;

std::string in_bold(const std::string& text) {
  return "\\fB" + roff_escaped(text) + "\\fR";
}

std::string in_italic(const std::string& text) {
  return "\\fI" + roff_escaped(text) + "\\fR";
}

std::string flag_entry(const HelpFlag& flag) {
  std::string name = in_bold(flag.name);
  if (!flag.value.empty()) name += " " + in_italic(flag.value);
  std::string about = flag.about;
  if (!flag.if_unset.empty()) {
    about += fmt::format("{}(default: {})", about.empty() ? "" : " ", flag.if_unset);
  }
  return fmt::format(".TP\n{}\n{}\n", name, roff_escaped(about));
}

std::string group_text(const HelpGroup& group, const std::string& command, Listed& listed) {
  for (const auto& [other, of] : listed) {
    if (other == group) {
      return fmt::format(".PP\n{}: as of {}.\n", roff_escaped(group.title),
                         in_bold("moegate " + of));
    }
  }
  listed.emplace_back(group, command);
  std::string text = fmt::format(".PP\n{}:\n", roff_escaped(group.title));
  for (const HelpFlag& flag : group.flags) text += flag_entry(flag);
  return text;
}

std::string command_section(const CommandHelp& command, Listed& listed) {
  std::string text = fmt::format(".SS moegate {}\n{}.\n.PP\n.nf\n", roff_escaped(command.name),
                                 roff_escaped(command.about));
  for (const std::string& usage : command.help.usages) text += in_bold(usage) + "\n";
  text += ".fi\n";
  for (HelpGroup group : command.help.groups) {
    std::erase_if(group.flags, [](const HelpFlag& flag) { return flag.name == "--help"; });
    if (!group.flags.empty()) text += group_text(group, command.name, listed);
  }
  return text;
}

/// Words in backquotes are bold.
std::string marked_up(const std::string& text) {
  std::string roff;
  bool bold = false;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '`'); bold = !bold) {
    if (!part.empty()) roff += bold ? in_bold(part) : roff_escaped(part);
  }
  return roff;
}

std::string variables_section(const std::vector<Variable>& variables) {
  std::string text =
      ".SH ENVIRONMENT\n" +
      marked_up("What is set to nothing counts as not set, but for `MOEGATE_COMMAND`.") + "\n";
  for (const auto& [name, about] : variables) {
    text += fmt::format(".TP\n{}\n{}\n", in_bold(name), marked_up(about));
  }
  return text;
}

}  // namespace

std::string roff_escaped(const std::string& text) {
  std::string escaped;
  // A line that begins so would be a request.
  if (text.starts_with('.') || text.starts_with('\'')) escaped = "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string man_page(const std::string& version, const std::vector<CommandHelp>& commands,
                     const std::vector<Variable>& variables) {
  std::string text = fmt::format(
      ".TH MOEGATE 1 \"\" \"moegate {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "moegate \\- profile GPU kernels of mixture-of-experts layers and test them for regressions\n"
      ".SH SYNOPSIS\n"
      "{} {} [{}]\n"
      ".br\n{}\n"
      ".SH COMMANDS\n",
      roff_escaped(version), in_bold("moegate"), in_italic("COMMAND"), in_italic("options"),
      in_bold("moegate --version"));
  Listed listed;
  for (const CommandHelp& command : commands) text += command_section(command, listed);
  return text + variables_section(variables);
}

}  // namespace moegate
