// SPDX-License-Identifier: Apache-2.0
// One CUDA GPU as a Device: memory, copies and facts. Timing is elsewhere.
#include <cuda_runtime.h>

#include "harness/device/cannot_capture.h"
#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/hash_words.cuh"
#include "harness/device/nvml.h"
#include "harness/device/open.h"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

constexpr size_t kSmallest = 256;  // an empty tensor still needs an address of its own

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string version_text(int version) {  // 13000 -> "13.0"
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string driver_text() {
  int driver = 0, runtime = 0;
  MOEGATE_CUDA_CHECK(cudaDriverGetVersion(&driver));
  MOEGATE_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  const std::string number = nvidia_driver_version();
  return fmt::format("driver {}CUDA {}, runtime {}", number.empty() ? "" : number + ", ",
                     version_text(driver), version_text(runtime));
}

DeviceFacts read_facts(int ordinal) {
  cudaDeviceProp prop{};
  MOEGATE_CUDA_CHECK(cudaGetDeviceProperties(&prop, ordinal));
  DeviceFacts facts;
  facts.backend = Backend::cuda;
  facts.name = prop.name;
  facts.klass = class_name(prop.name);
  facts.uuid = uuid_text(prop.uuid);
  facts.capability = 10 * prop.major + prop.minor;
  facts.processors = prop.multiProcessorCount;
  facts.cache_bytes = prop.l2CacheSize;
  facts.memory_bytes = static_cast<int64_t>(prop.totalGlobalMem);
  facts.shared_per_block = static_cast<int64_t>(prop.sharedMemPerBlockOptin);
  facts.driver = driver_text();
  return facts;
}

__global__ void fill_random_kernel(void* to, size_t units, RandomFill what) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < units; i += step)
    write_random_unit(what, to, i);
}

__global__ void hash_kernel(const void* data, size_t bytes, unsigned long long* sum) {
  add_of_block(hash_of_threads_words(data, bytes, 0, [](uint64_t word) { return word; }), sum);
}

/// A warp per row.
__global__ void row_distance_kernel(RowPairs pairs, const int32_t* out_places,
                                    const int32_t* reference_places, RowDistance* distances) {
  constexpr int kWarp = 32;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / kWarp;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < pairs.rows;
       row += warps) {
    RowDistance mine;
    add_row_distance(pairs, out_places, reference_places, row, lane, kWarp, mine);
    for (int other = kWarp / 2; other > 0; other /= 2) {
      RowDistance theirs;
      theirs.error = __shfl_xor_sync(~0u, mine.error, other);
      theirs.size = __shfl_xor_sync(~0u, mine.size, other);
      theirs.nonfinite = __shfl_xor_sync(~0u, mine.nonfinite, other);
      theirs.outside = __shfl_xor_sync(~0u, mine.outside, other);
      mine.add(theirs);
    }
    if (lane == 0) distances[row] = mine;
  }
}

__global__ void nothing_kernel() {}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : CudaDevice(ordinal, nullptr) {
    // Non-blocking: work on the legacy default stream must not order itself into a sample.
    MOEGATE_CUDA_CHECK(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking));
    stream_ = own_stream_;
    leave_fast_start();
  }
  /// A guest's, on a stream that is there already.
  CudaDevice(int ordinal, cudaStream_t stream) : stream_(stream) {
    MOEGATE_CUDA_CHECK(cudaSetDevice(ordinal));
    facts_ = read_facts(ordinal);
    hash_.reset(allocate(sizeof(unsigned long long)));
  }
  ~CudaDevice() override {
    if (own_stream_) cudaStreamDestroy(own_stream_);
  }

  void* allocate(size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes < kSmallest ? kSmallest : bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      give_up(Exit::environment,
              "{}: cannot allocate {} bytes ({} of {} free); close other programs on it or choose "
              "a smaller case",
              facts_.name, bytes, free, total);
    }
    MOEGATE_CUDA_CHECK(status);
    return p;
  }
  void release(void* p) noexcept override { cudaFree(p); }
  void try_capture(const Variant& variant, Problem& problem) override {
    const CapturedLaunch launch(variant, problem, {stream_, facts_});
    if (launch.operations().empty()) throw EmptyCapture();
  }

  void upload(void* to, const void* from, size_t bytes) override {
    MOEGATE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    MOEGATE_CUDA_CHECK(cudaStreamSynchronize(stream_));  // `from` is the caller's again
  }
  void download(void* to, const void* from, size_t bytes) override {
    MOEGATE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    MOEGATE_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  void copy(void* to, const void* from, size_t bytes) override {
    MOEGATE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }
  void fill(void* to, uint8_t byte, size_t bytes) override {
    MOEGATE_CUDA_CHECK(cudaMemsetAsync(to, byte, bytes, stream_));
  }
  void fill_random(void* to, size_t units, const RandomFill& what) override {
    constexpr int kThreads = 256, kBlocksPerProcessor = 8;
    fill_random_kernel<<<facts_.processors * kBlocksPerProcessor, kThreads, 0, stream_>>>(to, units,
                                                                                          what);
    MOEGATE_CUDA_CHECK(cudaGetLastError());
  }
  uint64_t hash(const void* data, size_t bytes) override {
    constexpr int kThreads = 512, kBlocksPerProcessor = 4;
    unsigned long long sum = 0;
    upload(hash_.get(), &sum, sizeof sum);
    hash_kernel<<<facts_.processors * kBlocksPerProcessor, kThreads, 0, stream_>>>(
        data, bytes, static_cast<unsigned long long*>(hash_.get()));
    MOEGATE_CUDA_CHECK(cudaGetLastError());
    download(&sum, hash_.get(), sizeof sum);
    return sum;
  }
  std::vector<RowDistance> row_distances(const RowPairs& pairs) override {
    constexpr int kThreads = 256, kBlocksPerProcessor = 8;
    const auto on_device = [&](const int32_t* places) {
      const size_t bytes = places ? static_cast<size_t>(pairs.rows) * sizeof(int32_t) : 0;
      Memory memory(places ? allocate(bytes) : nullptr);
      if (places) upload(memory.get(), places, bytes);
      return memory;
    };
    const Memory out_places = on_device(pairs.out_places);
    const Memory reference_places = on_device(pairs.reference_places);
    std::vector<RowDistance> all(static_cast<size_t>(pairs.rows));
    const Memory distances(allocate(all.size() * sizeof(RowDistance)));
    row_distance_kernel<<<facts_.processors * kBlocksPerProcessor, kThreads, 0, stream_>>>(
        pairs, static_cast<const int32_t*>(out_places.get()),
        static_cast<const int32_t*>(reference_places.get()),
        static_cast<RowDistance*>(distances.get()));
    MOEGATE_CUDA_CHECK(cudaGetLastError());
    download(all.data(), distances.get(), all.size() * sizeof(RowDistance));
    return all;
  }
  void synchronize() override { MOEGATE_CUDA_CHECK(cudaDeviceSynchronize()); }
  void* stream() const override { return stream_; }

 private:
  /// Until a process has launched about eight kernels on the legacy default stream, gaps between
  /// the kernels of its graphs are 0.1 us instead of 0.4 (H200, driver 580; harness/README.md). A
  /// program with more than one stream is past that, and so is every row here, whatever ran before
  /// it in its process.
  static void leave_fast_start() {
    constexpr int kLaunches = 32;
    for (int i = 0; i < kLaunches; ++i) nothing_kernel<<<1, 1, 0, cudaStreamLegacy>>>();
    MOEGATE_CUDA_CHECK(cudaGetLastError());
    MOEGATE_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }

  struct Free {
    void operator()(void* p) const noexcept { cudaFree(p); }
  };
  using Memory = std::unique_ptr<void, Free>;

  cudaStream_t stream_ = nullptr, own_stream_ = nullptr;
  Memory hash_;
};

/// Throws Error(environment) where there is no such device.
void require_device(int ordinal) {
  std::string why;
  const size_t count = cuda_devices(&why).size();
  if (count == 0) {
    give_up(Exit::environment, "device cuda:{} is not there: {}; use --device host", ordinal, why);
  }
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= count) {
    give_up(Exit::environment, "device cuda:{} is not there: visible are cuda:0 to cuda:{}",
            ordinal, count - 1);
  }
}

}  // namespace

std::vector<DeviceFacts> cuda_devices(std::string* why_none) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  std::vector<DeviceFacts> all;
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    if (why_none) {
      int driver = 0;
      cudaDriverGetVersion(&driver);  // 0 without a driver; the count's own message misleads then
      *why_none = driver == 0 ? "no NVIDIA driver (libcuda.so.1) on this machine"
                              : fmt::format("CUDA reports: {}", cudaGetErrorString(status));
    }
    return all;
  }
  for (int i = 0; i < count; ++i) all.push_back(read_facts(i));
  return all;
}

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  require_device(ordinal);
  return std::make_unique<CudaDevice>(ordinal);
}

std::unique_ptr<Device> open_guest_cuda_device(int ordinal, void* stream) {
  require_device(ordinal);
  return std::make_unique<CudaDevice>(ordinal, static_cast<cudaStream_t>(stream));
}

bool is_being_captured(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t asked = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
  if (asked != cudaSuccess) cudaGetLastError();  // the legacy stream, while another one is
  return asked != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

}  // namespace moegate
