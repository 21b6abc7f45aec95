// SPDX-License-Identifier: Apache-2.0
// A host variant of topk_sort that does what `fused` does and then misbehaves as MOEGATE_SABOTEUR
// says. With no request it is correct, and as fast as `fused`.
// - slow:X: takes X times as long
// - scale: weights times 1.05
// - drop: loses one token
// - unwritten: does not write num_valid
// - overrun: writes past its output
// - flip: every second output differs in the last bits, inside every tolerance
// - late:N: wrong from the launch after the N-th on
// - abort, segv: kills the process
// - hang: never returns
// - throw: throws
// - print: prints to standard output
// - close: closes the pipe to the runner
// - fork: leaves a child behind in a session of its own, which writes its number to the
//   file `child`
// - exit-handler: has registered an exit handler that ends any process of the program with 0
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "kernels/topk_sort/topk_sort.h"
#include "tests/saboteurs/saboteur.h"

namespace moegate::test {
namespace {

using topk_sort::TopkSort;
using topk_sort::TopkSortArgs;

const Variant& fused() {
  for (const Variant& v : all_variants()) {
    if (v.op == TopkSort::kOp && v.backend == Backend::host && v.name == "fused") return v;
  }
  throw Error(Exit::internal, "the saboteur needs variant fused of topk_sort");
}

size_t workspace(const Case& c, const DeviceFacts& device) {
  return fused().workspace(c, device);
}

void leave_a_child() {
  static bool left = false;
  if (left) return;
  left = true;
  if (fork() != 0) return;
  setsid();
  std::ofstream("child.tmp") << getpid();
  std::rename("child.tmp", "child");
  sleep(600);
  _exit(0);
}

void launch(TopkSort& problem, const Launch& where) {
  using Clock = std::chrono::steady_clock;
  const Sabotage sabotage = requested_sabotage();
  const TopkSortArgs args = problem.args();
  const int32_t kept[2] = {args.num_valid[0], args.num_valid[1]};
  const auto start = Clock::now();
  fused().launch(problem, where);
  const auto took = Clock::now() - start;
  if (sabotage.mode == "slow") {
    while (Clock::now() - start < took * sabotage.amount) {
    }
  } else if (sabotage.mode == "scale") {
    for (int i = 0; i < args.num_valid[0]; ++i) args.sorted_weights[i] *= 1.05f;
  } else if (sabotage.mode == "drop") {
    args.sorted_ids[0] = args.shape.topk << 24 | args.shape.tokens;
    args.sorted_weights[0] = 0;
  } else if (sabotage.mode == "unwritten") {
    std::memcpy(args.num_valid, kept, sizeof kept);
  } else if (sabotage.mode == "overrun") {
    static_cast<char*>(args.moe_buf)[args.moe_buf_bytes] = 0;
  } else if (sabotage.mode == "flip") {
    static int calls = 0;
    if (++calls % 2 == 0) args.sorted_weights[0] *= 1 + 1e-6f;  // inside every tolerance
  } else if (sabotage.mode == "late") {
    static int calls = 0;
    if (++calls > sabotage.amount) args.sorted_ids[0] ^= 1;
  } else if (sabotage.mode == "abort") {
    std::abort();
  } else if (sabotage.mode == "segv") {
    std::raise(SIGSEGV);
  } else if (sabotage.mode == "hang") {
    std::this_thread::sleep_for(std::chrono::hours(1));
  } else if (sabotage.mode == "throw") {
    throw Error(Exit::environment, "sabotage: thrown from a launch");
  } else if (sabotage.mode == "print") {
    std::puts("a kernel says hello");
    std::fflush(stdout);
  } else if (sabotage.mode == "close") {
    close(4);
  } else if (sabotage.mode == "fork") {
    leave_a_child();
  }
}

[[maybe_unused]] const bool handler = [] {
  if (requested_sabotage().mode == "exit-handler") std::atexit([] { _exit(0); });
  return true;
}();

const Kernel<TopkSort> kernel({.name = "saboteur",
                               .backend = Backend::host,
                               .help = "fused, then what MOEGATE_SABOTEUR says",
                               .launch = launch,
                               .workspace = workspace});

}  // namespace
}  // namespace moegate::test
