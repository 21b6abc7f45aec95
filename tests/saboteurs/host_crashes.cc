// SPDX-License-Identifier: Apache-2.0
// Host variants that break their process, or the pipe to the runner: each costs its own row.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/saboteurs/sabotaged_sum.h"

namespace moegate::sabotaged_sum {
namespace {

/// The worker's end of the pipe that its answers go through, as whoever reads /proc finds it.
constexpr int kAnswers = 4;

const Kernel<SabotagedSum> aborts({.name = "aborts",
                                   .backend = Backend::host,
                                   .help = "calls abort()",
                                   .launch = [](SabotagedSum&, const Launch&) { std::abort(); },
                                   .expected = {Status::crashed, "signal 6"}});

const Kernel<SabotagedSum> faults({.name = "faults",
                                   .backend = Backend::host,
                                   .help = "dies of SIGSEGV",
                                   .launch =
                                       [](SabotagedSum&, const Launch&) {
                                         std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler
                                         std::raise(SIGSEGV);
                                       },
                                   .expected = {Status::crashed, "signal 11"}});

const Kernel<SabotagedSum> throws({.name = "throws",
                                   .backend = Backend::host,
                                   .help = "throws what is no exception of the tool",
                                   .launch = [](SabotagedSum&, const Launch&) { throw 42; },
                                   .expected = {Status::crashed, ""}});

const Kernel<SabotagedSum> exits({.name = "exits_with_0",
                                  .backend = Backend::host,
                                  .help = "ends the process as if all were well",
                                  .launch = [](SabotagedSum&, const Launch&) { _exit(0); },
                                  .expected = {Status::crashed, "ended with code 0"}});

const Kernel<SabotagedSum> closes({.name = "closes_the_pipe",
                                   .backend = Backend::host,
                                   .help = "closes the pipe to the runner",
                                   .launch = [](SabotagedSum&, const Launch&) { close(kAnswers); },
                                   .expected = {Status::crashed, "pipe"}});

const Kernel<SabotagedSum> babbles({.name = "writes_to_the_pipe",
                                    .backend = Backend::host,
                                    .help = "seven bytes of its own between the answers",
                                    .launch =
                                        [](SabotagedSum& problem, const Launch& where) {
                                          static const bool once =
                                              write(kAnswers, "\x03\0\0\0xyz", 7) == 7;
                                          (void)once;
                                          honest(problem, where);
                                        },
                                    .expected = {Status::crashed, ""}});

const Kernel<SabotagedSum> hangs({.name = "hangs",
                                  .backend = Backend::host,
                                  .help = "never returns",
                                  .launch =
                                      [](SabotagedSum&, const Launch&) {
                                        std::this_thread::sleep_for(std::chrono::hours(1));
                                      },
                                  .expected = {Status::timeout, ""}});

}  // namespace
}  // namespace moegate::sabotaged_sum
