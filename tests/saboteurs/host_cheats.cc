// SPDX-License-Identifier: Apache-2.0
// Host variants that cheat, each a kind that a timing loop praises: what is timed is not what was
// verified, work is done where nobody times it, or the others are robbed.
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "tests/saboteurs/sabotaged_sum.h"

namespace moegate::sabotaged_sum {
namespace {

constexpr const char* kTimed = "in timed launches";

/// Whether this is one of the two launches on this output that are verified before any is timed.
bool is_first(Problem& problem) {
  static std::map<const void*, int> seen;
  return ++seen[output_of(problem).data()] <= 2;
}

const Kernel<SabotagedSum> skips({.name = "skips_known_outputs",
                                  .backend = Backend::host,
                                  .help = "leaves out the work where it saw the pointer before",
                                  .launch =
                                      [](SabotagedSum& problem, const Launch& where) {
                                        if (is_first(problem)) honest(problem, where);
                                      },
                                  .expected = {Status::wrong, kTimed}});

const Kernel<SabotagedSum> halves({.name = "skips_half_later",
                                   .backend = Backend::host,
                                   .help = "leaves out half of the tokens after the first launch",
                                   .launch =
                                       [](SabotagedSum& problem, const Launch& where) {
                                         const Bytes before = bytes_of(output_of(problem));
                                         honest(problem, where);
                                         if (is_first(problem)) return;
                                         std::memcpy(output_of(problem).data(), before.data(),
                                                     before.size() / 2);
                                       },
                                   .expected = {Status::wrong, kTimed}});

const Kernel<SabotagedSum> poisoned({.name = "works_on_poison_only",
                                     .backend = Backend::host,
                                     .help = "works where the output's first elements are poison",
                                     .launch =
                                         [](SabotagedSum& problem, const Launch& where) {
                                           const auto* out = output_of(problem).data<uint32_t>();
                                           if (out[0] == 0xffffffff || out[0] == 0x55555555)
                                             honest(problem, where);
                                         },
                                     .expected = {Status::wrong, kTimed}});

const Kernel<SabotagedSum> seldom({.name = "wrong_once_in_a_hundred",
                                   .backend = Backend::host,
                                   .help = "doubles the first output in one launch of a hundred",
                                   .launch =
                                       [](SabotagedSum& problem, const Launch& where) {
                                         static int launches = 0;
                                         honest(problem, where);
                                         auto* out = output_of(problem).data<uint16_t>();
                                         if (++launches % 100 == 0)
                                           out[0] = float_to_bf16(2 * bf16_to_float(out[0]) + 1);
                                       },
                                   .expected = {Status::wrong, kTimed}});

const Kernel<SabotagedSum> later(
    {.name = "returns_before_it_is_done",
     .backend = Backend::host,
     .help = "leaves the work of later launches to a thread that it does not wait for",
     .launch =
         [](SabotagedSum& problem, const Launch& where) {
           if (is_first(problem)) return honest(problem, where);
           std::thread([&problem, where] { honest(problem, where); }).detach();
         },
     .expected = {Status::wrong, "after its launch had returned"}});

// What it keeps is too little heap to be noted: what is caught is that repeated inputs are quicker.
// Under load, too, because it is by much.
const Kernel<SabotagedSum> keeps({.name = "keeps_outputs_by_hash",
                                  .backend = Backend::host,
                                  .help = "copies the output that it kept for this input",
                                  .launch =
                                      [](SabotagedSum& problem, const Launch& where) {
                                        static std::map<uint64_t, Bytes> kept;
                                        Bytes& output = kept[sparse_hash(input_of(problem))];
                                        if (output.empty()) {
                                          std::this_thread::sleep_for(
                                              std::chrono::milliseconds(100));
                                          honest(problem, where);
                                          output = bytes_of(output_of(problem));
                                        }
                                        std::memcpy(output_of(problem).data(), output.data(),
                                                    output.size());
                                      },
                                  .expected = {Status::wrong, ""}});

std::map<const Problem*, Bytes>& answers() {
  static std::map<const Problem*, Bytes> all;
  return all;
}

const Kernel<SabotagedSum> prepared({.name = "answers_in_prepare",
                                     .backend = Backend::host,
                                     .help = "computes in prepare(), and copies when it is timed",
                                     .launch =
                                         [](SabotagedSum& problem, const Launch&) {
                                           const Bytes& answer = answers()[&problem];
                                           std::memcpy(output_of(problem).data(), answer.data(),
                                                       answer.size());
                                         },
                                     .prepare =
                                         [](SabotagedSum& problem, const Launch& where) {
                                           honest(problem, where);
                                           answers()[&problem] = bytes_of(output_of(problem));
                                         },
                                     .expected = {Status::wrong, ""}});

const Kernel<SabotagedSum> copies(
    {.name = "copies_its_operands",
     .backend = Backend::host,
     .help = "keeps a private copy of its input, which no flush makes cold",
     .launch =
         [](SabotagedSum& problem, const Launch& where) {
           static std::map<const Problem*, Bytes> copies;
           Bytes& copy = copies[&problem];
           if (copy.empty()) copy = bytes_of(input_of(problem));
           honest(problem, where);
         },
     .unsupported = no_sanitizer,
     .expected = {Status::wrong, "of its own from launch to launch"}});

const Kernel<SabotagedSum> beyond({.name = "reads_beyond_its_input",
                                   .backend = Backend::host,
                                   .help = "adds an element from behind the input's end",
                                   .launch =
                                       [](SabotagedSum& problem, const Launch& where) {
                                         honest(problem, where);
                                         const Tensor& in = input_of(problem);
                                         auto* out = output_of(problem).data<uint16_t>();
                                         const float more =
                                             bf16_to_float(in.data<uint16_t>()[in.size()]);
                                         out[0] = float_to_bf16(bf16_to_float(out[0]) + more);
                                       },
                                   .expected = {Status::wrong, "not finite"}});

const Kernel<SabotagedSum> changes({.name = "changes_its_input",
                                    .backend = Backend::host,
                                    .help = "writes to its input, for whoever comes next",
                                    .launch =
                                        [](SabotagedSum& problem, const Launch& where) {
                                          honest(problem, where);
                                          input_of(problem).data<uint16_t>()[7] ^= 1;
                                        },
                                    .expected = {Status::wrong, "changed its input"}});

const Kernel<SabotagedSum> overruns({.name = "writes_beyond_its_output",
                                     .backend = Backend::host,
                                     .help = "writes an element behind the output's end",
                                     .launch =
                                         [](SabotagedSum& problem, const Launch& where) {
                                           honest(problem, where);
                                           Tensor& out = output_of(problem);
                                           out.data<uint16_t>()[out.size()] = 0;
                                         },
                                     .expected = {Status::wrong, "guard band"}});

/// A little more than the operator's ceiling on a common factor, 0.2 %.
const Kernel<SabotagedSum> scaled({.name = "scales_by_a_quarter_percent",
                                   .backend = Backend::host,
                                   .help = "outputs times 1.0025",
                                   .launch =
                                       [](SabotagedSum& problem, const Launch& where) {
                                         honest(problem, where);
                                         Tensor& out = output_of(problem);
                                         auto* values = out.data<uint16_t>();
                                         for (int64_t i = 0; i < out.size(); ++i) {
                                           const float value = bf16_to_float(values[i]);
                                           // Rounded up and down in turn: the factor, on average.
                                           values[i] =
                                               float_to_bf16(value * (i % 2 ? 1.005f : 1.0f));
                                         }
                                       },
                                   .expected = {Status::wrong, ""}});

const Kernel<SabotagedSum> one_token({.name = "zeroes_the_last_token",
                                      .backend = Backend::host,
                                      .help = "the last token's row is zero",
                                      .launch =
                                          [](SabotagedSum& problem, const Launch& where) {
                                            honest(problem, where);
                                            Tensor& out = output_of(problem);
                                            const size_t row =
                                                out.bytes() /
                                                static_cast<size_t>(problem.shape.tokens);
                                            std::memset(out.data<char>() + out.bytes() - row, 0,
                                                        row);
                                          },
                                      .expected = {Status::wrong, ""}});

const Kernel<SabotagedSum> robs({.name = "takes_a_thread",
                                 .backend = Backend::host,
                                 .help = "leaves fewer OpenMP threads to those that come after it",
                                 .launch =
                                     [](SabotagedSum& problem, const Launch& where) {
                                       honest(problem, where);
                                       omp_set_num_threads(omp_get_max_threads() + 1);
                                     },
                                 .expected = {Status::wrong, "OpenMP"}});

const Kernel<SabotagedSum> pins({.name = "pins_its_thread",
                                 .backend = Backend::host,
                                 .help = "confines its thread to the processor that it is on",
                                 .launch =
                                     [](SabotagedSum& problem, const Launch& where) {
                                       cpu_set_t here;
                                       CPU_ZERO(&here);
                                       CPU_SET(static_cast<size_t>(sched_getcpu()), &here);
                                       sched_setaffinity(0, sizeof here, &here);
                                       honest(problem, where);
                                     },
                                 .unsupported = [](const Case&, const DeviceFacts&) -> std::string {
                                   cpu_set_t allowed;
                                   sched_getaffinity(0, sizeof allowed, &allowed);
                                   return CPU_COUNT(&allowed) > 1 ? "" : "there is one processor";
                                 },
                                 .expected = {Status::wrong, "processors"}});

const Kernel<SabotagedSum> burns(
    {.name = "burns_in_the_background",
     .backend = Backend::host,
     .help = "leaves a thread behind that is never idle, so that everybody is noisy",
     .launch =
         [](SabotagedSum& problem, const Launch& where) {
           static std::atomic<bool> burning = false;
           if (!burning.exchange(true)) {
             std::thread([] {
               for (;;) std::this_thread::yield();
             }).detach();
           }
           honest(problem, where);
         },
     .expected = {Status::wrong, "still there"}});

#if defined(__x86_64__) || defined(__aarch64__)
void flush_denormals() {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#else
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{1} << 24));  // FZ
#endif
}

const Kernel<SabotagedSum> flushes({.name = "flushes_denormals",
                                    .backend = Backend::host,
                                    .help = "leaves the processor's floating-point modes changed",
                                    .launch =
                                        [](SabotagedSum& problem, const Launch& where) {
                                          honest(problem, where);
                                          flush_denormals();
                                        },
                                    .expected = {Status::wrong, "floating-point modes"}});
#endif

}  // namespace
}  // namespace moegate::sabotaged_sum
