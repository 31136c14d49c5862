// The emulation shows what hardware would: each mistake here comes to light under some seed, and what is
// right under none.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/common/mma.h"
#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kSeeds = 24, kThreads = 128;

// Under how many seeds `wrong` says so.
template <class Wrong>
int seeds(const Wrong& wrong) {
  int count = 0;
  for (int i = 0; i < kSeeds; ++i) {
    emulated::seed(static_cast<uint64_t>(i) + 1);
    count += wrong();
  }
  emulated::seed(1);
  return count;
}

// Every thread takes what the next one laid down.
__global__ void pass_on(int* out, bool barrier) {
  CAIRN_SHARED int shared[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = thread;
  if (barrier) __syncthreads();
  out[thread] = shared[(thread + 1) % kThreads];
  if (barrier) __syncthreads();
  shared[thread] = -1;
}
int passed_on(bool barrier) {
  return seeds([&] {
    std::vector<int> out(kThreads);
    launch(nullptr, pass_on, {.threads = kThreads}, out.data(), barrier);
    for (int i = 0; i < kThreads; ++i)
      if (out[static_cast<size_t>(i)] != (i + 1) % kThreads) return true;
    return false;
  });
}
TEST(CudaEmulation, AMissingBarrierShows) {
  EXPECT_GT(passed_on(false), 0);
  EXPECT_EQ(passed_on(true), 0);
}

// A lower thread reads what a higher one laid down before: right in descending order alone, wrong in
// ascending, and the other way round for `upwards`.
__global__ void pass_in_warp(int* out, bool upwards, bool barrier) {
  CAIRN_SHARED int shared[kWarp];
  const int lane = static_cast<int>(threadIdx.x);
  shared[lane] = lane;
  if (barrier) __syncwarp();
  out[lane] = shared[upwards ? (lane + kWarp - 1) % kWarp : (lane + 1) % kWarp];
  if (barrier) __syncwarp();
  shared[lane] = -1;
}
TEST(CudaEmulation, NoOrderOfLanesIsSafe) {
  for (const bool upwards : {true, false})
    for (const bool barrier : {true, false}) {
      const int wrong = seeds([&] {
        std::vector<int> out(kWarp);
        launch(nullptr, pass_in_warp, {}, out.data(), upwards, barrier);
        for (int i = 0; i < kWarp; ++i)
          if (out[static_cast<size_t>(i)] != (i + (upwards ? kWarp - 1 : 1)) % kWarp) return true;
        return false;
      });
      EXPECT_EQ(wrong > 0, !barrier) << (upwards ? "upwards" : "downwards");
    }
}

// The last block of a grid to run leaves its number.
__global__ void leave_number(int* out) {
  if (threadIdx.x == 0) *out = static_cast<int>(blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z);
}
TEST(CudaEmulation, BlocksComeInNoOrder) {
  std::vector<bool> last(1000);
  seeds([&] {
    int out = -1;
    launch(nullptr, leave_number, {.blocks = 3, .threads = kWarp, .blocks_y = 3, .blocks_z = 2}, &out);
    last[static_cast<size_t>(out)] = true;
    return false;
  });
  EXPECT_GT(std::count(last.begin(), last.end(), true), 6);
}

// Two groups of a copy each; reads the first after a wait that leaves `kLeft` under way.
template <int kLeft>
__global__ void read_early(const int* from, int* out) {
  CAIRN_SHARED uint4 shared[2];
  const Shared at = shared_address(shared);
  *reinterpret_cast<int*>(shared) = 0;
  cp_async(at, from, true);
  cp_async_commit();
  cp_async(at + 16, from + 4, true);
  cp_async_commit();
  cp_async_wait<kLeft>();
  *out = *reinterpret_cast<const int*>(shared);
  cp_async_wait<0>();
}
template <int kLeft>
int read_too_early() {
  return seeds([&] {
    alignas(16) const int from[] = {7, 7, 7, 7, 8, 8, 8, 8};
    int out = 0;
    launch(nullptr, read_early<kLeft>, {.threads = 1}, static_cast<const int*>(from), &out);
    return out != 7;
  });
}
TEST(CudaEmulation, AWaitTooFewForACopyShows) {
  EXPECT_GT(read_too_early<2>(), 0);
  EXPECT_EQ(read_too_early<1>(), 0);
  EXPECT_EQ(read_too_early<0>(), 0);
}

// Reads what a copy is about to write over: right only if every copy is late.
__global__ void read_late(const int* from, int* out) {
  CAIRN_SHARED uint4 shared[1];
  *reinterpret_cast<int*>(shared) = 3;
  cp_async(shared_address(shared), from, true);
  cp_async_commit();
  *out = *reinterpret_cast<const int*>(shared);
  cp_async_wait<0>();
}
TEST(CudaEmulation, ACopyMayLandAtOnce) {
  const int early = seeds([] {
    alignas(16) const int from[] = {7, 7, 7, 7};
    int out = 0;
    launch(nullptr, read_late, {.threads = 1}, static_cast<const int*>(from), &out);
    return out == 7;
  });
  EXPECT_GT(early, 0);
  EXPECT_LT(early, kSeeds);
}

// Memory and a stream of the runtime's.
struct Driver {
  static constexpr size_t kBytes = 1 << 16;
  Driver() {
    emulated::reset();
    cudaMalloc(&memory, kBytes);
    cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    clear();
  }
  ~Driver() {
    cudaStreamDestroy(stream);
    cudaFree(memory);
  }
  void clear() {
    cudaMemsetAsync(memory, 0, kBytes, stream);
    cudaStreamSynchronize(stream);
  }
  // Whether a kernel of the stream finds another byte than this one.
  bool finds_others(char byte) {
    bool others = false;
    emulated::submit(stream, [&] {
      const char* const at = static_cast<const char*>(memory);
      for (size_t i = 0; i < kBytes; ++i) others = others || at[i] != byte;
    });
    cudaStreamSynchronize(stream);
    return others;
  }
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
};

TEST(CudaEmulation, TheLegacyStreamOrdersNothing) {
  Driver driver;
  const std::vector<char> ones(Driver::kBytes, 1);
  char first = 0;
  const auto copy = [&] {
    driver.clear();
    cudaMemcpy(driver.memory, ones.data(), Driver::kBytes, cudaMemcpyHostToDevice);
    const bool stale = driver.finds_others(1);
    cudaMemcpy(&first, driver.memory, 1, cudaMemcpyDeviceToHost);  // in its order, that stream is
    EXPECT_EQ(first, 1);
    return stale;
  };
  const auto set = [&] {
    driver.clear();
    cudaMemset(driver.memory, 1, Driver::kBytes);
    const bool stale = driver.finds_others(1);
    cudaMemcpy(&first, driver.memory, 1, cudaMemcpyDeviceToHost);
    EXPECT_EQ(first, 1);
    return stale;
  };
  EXPECT_GT(seeds(copy), 0);
  EXPECT_GT(seeds(set), 0);
}

TEST(CudaEmulation, AStreamWaitsForItsOwnCopies) {
  Driver driver;
  EXPECT_EQ(seeds([&] {
              driver.clear();
              std::vector<char> ones(Driver::kBytes, 1);
              cudaMemcpyAsync(driver.memory, ones.data(), Driver::kBytes, cudaMemcpyHostToDevice,
                              driver.stream);
              std::fill(ones.begin(), ones.end(), 9);  // staged before the call returned
              return driver.finds_others(1);
            }),
            0);
  EXPECT_EQ(emulated::pageable_copies(), kSeeds);
}

TEST(CudaEmulation, CopiesTakeTheirTime) {
  Driver driver;
  std::vector<char> host(Driver::kBytes, 1);
  cudaHostRegister(host.data(), host.size(), cudaHostRegisterPortable);
  const int late = seeds([&] {
    driver.clear();
    cudaMemcpyAsync(driver.memory, host.data(), Driver::kBytes, cudaMemcpyHostToDevice, driver.stream);
    const bool there = static_cast<const volatile char*>(driver.memory)[Driver::kBytes - 1] == 1;
    cudaStreamSynchronize(driver.stream);
    return !there;
  });
  EXPECT_GT(late, 0);
  cudaHostUnregister(host.data());
}

TEST(CudaEmulation, OnlyNonBlockingStreamsAreThere) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, 0, 0), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace cairn::kernels::cuda
