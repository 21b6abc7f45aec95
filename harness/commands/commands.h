// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each parses its own arguments (without the program's and its own name), prints
// its result on stdout and returns an exit code; all throw Error.
#pragma once

#include <string>
#include <vector>

namespace moegate {

int cmd_list(const std::vector<std::string>& args);
int cmd_verify(const std::vector<std::string>& args);
int cmd_run(const std::vector<std::string>& args);
int cmd_profile(const std::vector<std::string>& args);
int cmd_gate(const std::vector<std::string>& args);
int cmd_nightly(const std::vector<std::string>& args);
int cmd_bless(const std::vector<std::string>& args);
int cmd_report(const std::vector<std::string>& args);
int cmd_bisect(const std::vector<std::string>& args);
int cmd_bisect_step(const std::vector<std::string>& args);  // for git bisect run, not for people
int cmd_pages(const std::vector<std::string>& args);
int cmd_store(const std::vector<std::string>& args);
int cmd_doctor(const std::vector<std::string>& args);
int cmd_ab(const std::vector<std::string>& args);
int cmd_tune(const std::vector<std::string>& args);
int cmd_new(const std::vector<std::string>& args);
int cmd_selftest(const std::vector<std::string>& args);

/// For shells, not for people: prints what could stand in place of the last of `words`, a line
/// each, or ":files" for names of files. `words` are those behind the program, up to the cursor.
int cmd_complete(const std::vector<std::string>& words);
/// For `cmake --install`: prints the man page. `man table`: README.md's table of verbs and flags.
int cmd_man(const std::vector<std::string>& args);

}  // namespace moegate
