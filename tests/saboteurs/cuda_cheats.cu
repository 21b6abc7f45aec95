// SPDX-License-Identifier: Apache-2.0
// CUDA variants that cheat or break. Those that hide behind other threads or streams are tried as a
// stream's launches: in a graph, which holds nothing of theirs, they are what
// leaves_the_graph_empty is.
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "harness/kernel/cuda_check.h"
#include "harness/values/conditions.h"
#include "tests/saboteurs/sabotaged_sum.h"

namespace moegate::sabotaged_sum {
namespace {

constexpr const char* kTimed = "in timed launches";
constexpr const char* kThreads =
    "still there";  // the accomplice, or the runtime's for host functions

cudaStream_t stream_of(const Launch& where) {
  return static_cast<cudaStream_t>(where.stream);
}

std::string stream_only(const Case& c, const DeviceFacts&) {
  return launch_of(c) == LaunchMode::stream ? "" : "it hides behind the launches of a stream";
}

__global__ void do_nothing() {}

__device__ unsigned runs;

/// Adds `value` to the first output, in one run of `every`.
__global__ void add_to_first(uint16_t* out, const uint16_t* value, unsigned every) {
  if (++runs % every != 0) return;
  out[0] = float_to_bf16(bf16_to_float(out[0]) + (value ? bf16_to_float(*value) : 1e3f));
}

__global__ void write_one(uint16_t* to, uint16_t value) {
  *to = value;
}

__global__ void touch(const uint4* data, size_t vectors, unsigned* never) {
  unsigned sum = 0;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    sum ^= data[i].x;
  }
  if (sum == 0x6d6f6567u) *never = sum;
}

__global__ void read_nowhere(const int* nowhere, int* out) {
  *out = *nowhere;
}

__global__ void wait_for_ever(const volatile uint16_t* out) {
  while (*out != 0x1234) {
  }
}

/// A thread with a stream of its own, which does what it is given while the launch waits for it.
class Accomplice {
 public:
  void run(const std::function<void(cudaStream_t)>& work) {
    std::unique_lock lock(mutex_);
    work_ = work;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !work_; });
  }

 private:
  void serve() {
    cudaStream_t stream = nullptr;
    MOEGATE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return static_cast<bool>(work_); });
      work_(stream);
      MOEGATE_CUDA_CHECK(cudaStreamSynchronize(stream));
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(cudaStream_t)> work_;
  std::thread thread_{[this] { serve(); }};
};

Accomplice& accomplice() {
  static auto* one = new Accomplice;  // never joined
  return *one;
}

bool is_capturing(const Launch& where) {
  cudaStreamCaptureStatus status{};
  MOEGATE_CUDA_CHECK(cudaStreamIsCapturing(stream_of(where), &status));
  return status == cudaStreamCaptureStatusActive;
}

void leave_empty(SabotagedSum& problem, const Launch& where) {
  if (is_capturing(where)) return do_nothing<<<1, 1, 0, stream_of(where)>>>();
  honest(problem, where);
}

void skip_known(SabotagedSum& problem, const Launch& where) {
  constexpr int kVerified = 2;  // launches on the first output before any is timed
  static std::map<const void*, int> seen;
  if (++seen[output_of(problem).data()] <= kVerified) return honest(problem, where);
  do_nothing<<<1, 1, 0, stream_of(where)>>>();
}

void be_wrong_seldom(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  add_to_first<<<1, 1, 0, stream_of(where)>>>(output_of(problem).data<uint16_t>(), nullptr, 100);
}

std::map<const Problem*, void*>& answers() {
  static std::map<const Problem*, void*> all;
  return all;
}

void copy_answer(SabotagedSum& problem, const Launch& where) {
  Tensor& out = output_of(problem);
  MOEGATE_CUDA_CHECK(cudaMemcpyAsync(out.data(), answers()[&problem], out.bytes(),
                                     cudaMemcpyDeviceToDevice, stream_of(where)));
}

void prepare_answer(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  void*& answer = answers()[&problem];
  if (!answer) MOEGATE_CUDA_CHECK(cudaMalloc(&answer, output_of(problem).bytes()));
  MOEGATE_CUDA_CHECK(cudaMemcpyAsync(answer, output_of(problem).data(), output_of(problem).bytes(),
                                     cudaMemcpyDeviceToDevice, stream_of(where)));
}

void read_beyond(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  const Tensor& in = input_of(problem);
  add_to_first<<<1, 1, 0, stream_of(where)>>>(output_of(problem).data<uint16_t>(),
                                              in.data<uint16_t>() + in.size(), 1);
}

void change_input(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  write_one<<<1, 1, 0, stream_of(where)>>>(input_of(problem).data<uint16_t>() + 7, 0x3f80);
}

void overrun(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  Tensor& out = output_of(problem);
  write_one<<<1, 1, 0, stream_of(where)>>>(out.data<uint16_t>() + out.size(), 0);
}

void zero_last_token(SabotagedSum& problem, const Launch& where) {
  honest(problem, where);
  Tensor& out = output_of(problem);
  const size_t row = out.bytes() / static_cast<size_t>(problem.shape.tokens);
  MOEGATE_CUDA_CHECK(
      cudaMemsetAsync(out.data<char>() + out.bytes() - row, 0, row, stream_of(where)));
}

void hide_in_host_node(SabotagedSum& problem, const Launch& where) {
  MOEGATE_CUDA_CHECK(cudaLaunchHostFunc(
      stream_of(where), [](void*) {}, nullptr));
  honest(problem, where);
}

void work_elsewhere(SabotagedSum& problem, const Launch& where) {
  accomplice().run([&](cudaStream_t stream) { honest(problem, {stream, where.device}); });
  do_nothing<<<1, 1, 0, stream_of(where)>>>();
}

void prefetch(SabotagedSum& problem, const Launch& where) {
  const Tensor& in = input_of(problem);
  accomplice().run([&](cudaStream_t stream) {
    touch<<<where.device.processors, 256, 0, stream>>>(in.data<uint4>(), in.bytes() / sizeof(uint4),
                                                       output_of(problem).data<unsigned>());
  });
  honest(problem, where);
}

void work_on_the_side(SabotagedSum& problem, const Launch& where) {
  static cudaStream_t side = [] {
    cudaStream_t made = nullptr;
    MOEGATE_CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }();
  honest(problem, {side, where.device});
  do_nothing<<<1, 1, 0, stream_of(where)>>>();
}

void persist(SabotagedSum& problem, const Launch& where) {
  MOEGATE_CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, size_t{16} << 20));
  honest(problem, where);
}

struct Cheat {
  const char* name;
  const char* help;
  void (*launch)(SabotagedSum&, const Launch&);
  ExpectedResult expected;
  std::string (*unsupported)(const Case&, const DeviceFacts&) = nullptr;
  void (*prepare)(SabotagedSum&, const Launch&) = nullptr;
};

/// One registration each.
struct Cheats {
  explicit Cheats(std::initializer_list<Cheat> all) {
    for (const Cheat& cheat : all) {
      Kernel<SabotagedSum>({.name = cheat.name,
                            .backend = Backend::cuda,
                            .help = cheat.help,
                            .launch = cheat.launch,
                            .prepare = cheat.prepare,
                            .unsupported = cheat.unsupported,
                            .expected = cheat.expected});
    }
  }
};

const Cheats cheats({
    {"leaves_the_graph_empty",
     "launches nothing of note where it is captured",
     leave_empty,
     {Status::wrong, kTimed},
     [](const Case& c, const DeviceFacts&) -> std::string {
       return launch_of(c) == LaunchMode::graph ? "" : "it cheats where it is captured";
     }},
    {"skips_known_outputs",
     "leaves out the work where it saw the pointer before",
     skip_known,
     {Status::wrong, kTimed}},
    {"wrong_once_in_a_hundred",
     "adds 1000 to the first output in one launch of a hundred",
     be_wrong_seldom,
     {Status::wrong, kTimed}},
    {"answers_in_prepare",
     "computes in prepare(), and copies when it is timed",
     copy_answer,
     {Status::wrong, ""},
     nullptr,
     prepare_answer},
    {"reads_beyond_its_input",
     "adds an element from behind the input's end",
     read_beyond,
     {Status::wrong, "not finite"}},
    {"changes_its_input",
     "writes to its input, for whoever comes next",
     change_input,
     {Status::wrong, "changed its input"}},
    {"writes_beyond_its_output",
     "writes an element behind the output's end",
     overrun,
     {Status::wrong, "guard band"}},
    {"zeroes_the_last_token", "the last token's row is zero", zero_last_token, {Status::wrong, ""}},
    {"hides_in_a_host_node",
     "works in a host function, whose time nobody sees",
     hide_in_host_node,
     {Status::wrong, kThreads}},
    {"works_in_another_thread",
     "another thread launches it on a stream of its own",
     work_elsewhere,
     {Status::wrong, kThreads},
     stream_only},
    {"prefetches_behind_the_flush",
     "another thread reads the input while the flush waits",
     prefetch,
     {Status::wrong, kThreads},
     stream_only},
    {"works_on_a_second_stream",
     "leaves the work to a stream that nobody waits for",
     work_on_the_side,
     {Status::wrong, kTimed},
     stream_only},
    {"keeps_its_input_in_l2",
     "sets a part of the L2 aside, which no flush makes cold",
     persist,
     {Status::wrong, "of the L2 aside"},
     stream_only},
    {"faults",
     "reads an address that does not exist, which breaks the context",
     [](SabotagedSum& problem, const Launch& where) {
       read_nowhere<<<1, 1, 0, stream_of(where)>>>(reinterpret_cast<const int*>(uintptr_t{1} << 52),
                                                   output_of(problem).data<int>());
     },
     {Status::crashed, ""}},
    {"hangs",
     "a kernel that never ends",
     [](SabotagedSum& problem, const Launch& where) {
       wait_for_ever<<<1, 1, 0, stream_of(where)>>>(output_of(problem).data<uint16_t>());
     },
     {Status::timeout, ""}},
});

}  // namespace
}  // namespace moegate::sabotaged_sum
