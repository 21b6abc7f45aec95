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
int cmd_compare(const std::vector<std::string>& args);
int cmd_explain(const std::vector<std::string>& args);
int cmd_bless(const std::vector<std::string>& args);
int cmd_waivers(const std::vector<std::string>& args);
int cmd_resources(const std::vector<std::string>& args);
int cmd_report(const std::vector<std::string>& args);
int cmd_bisect(const std::vector<std::string>& args);
int cmd_bisect_step(const std::vector<std::string>& args);  // for git bisect run, not for people
int cmd_pages(const std::vector<std::string>& args);
int cmd_history(const std::vector<std::string>& args);
int cmd_prune(const std::vector<std::string>& args);
int cmd_doctor(const std::vector<std::string>& args);
int cmd_repro(const std::vector<std::string>& args);
int cmd_ab(const std::vector<std::string>& args);
int cmd_tune(const std::vector<std::string>& args);
int cmd_export(const std::vector<std::string>& args);
int cmd_import(const std::vector<std::string>& args);
int cmd_new(const std::vector<std::string>& args);
int cmd_selftest(const std::vector<std::string>& args);

}  // namespace moegate
