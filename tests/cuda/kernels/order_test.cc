// What the host writes, and what clears a block, has landed before any queue looks: copies of pageable memory
// land late, and queues wait for no stream of the host's.
#include "tests/cuda/device_fixture.h"

namespace cairn::device {
namespace {

constexpr int64_t kBytes = int64_t{1} << 20;
constexpr int kTries = 8;

// How many of the first bytes of a block are not `expected` when a kernel of a queue that waits for nothing
// looks.
int64_t strangers(Device& device, const Block& block, char expected) {
  const auto queue = device.create_queue(Lane::kCompute, device.create_group());
  int64_t wrong = 0;
  const auto look = on_stream([&](const kernels::Call&) {
    const char* const at = static_cast<const char*>(block.address());
    for (int64_t i = 0; i < block.bytes(); ++i) wrong += at[i] != expected;
  });
  queue->launch(look, {});
  queue->synchronize();
  return wrong;
}

TEST_F(Cuda, QueuesSeeWhatWasWritten) {
  const auto block = device().allocate(Tier::kDevice, kBytes);
  for (int i = 1; i <= kTries; ++i) {
    const std::vector<char> bytes(static_cast<size_t>(kBytes), static_cast<char>(i));
    block->write(0, bytes.data(), kBytes);
    EXPECT_EQ(strangers(device(), *block, static_cast<char>(i)), 0) << "write " << i;
  }
}

TEST_F(Cuda, QueuesSeeBlocksZeroed) {
  for (int i = 0; i < kTries; ++i) {
    const auto block = device().allocate(Tier::kDevice, kBytes);
    EXPECT_EQ(strangers(device(), *block, 0), 0) << "block " << i;
  }
}

TEST_F(Cuda, ABlockGivesBackWhatWasWrittenLast) {
  const auto block = device().allocate(Tier::kDevice, kBytes);
  std::vector<char> bytes(static_cast<size_t>(kBytes)), back(bytes.size());
  for (int i = 1; i <= kTries; ++i) {
    std::fill(bytes.begin(), bytes.end(), static_cast<char>(i));
    block->write(0, bytes.data(), kBytes);
    std::fill(bytes.begin(), bytes.end(), '\0');  // the caller's again
    block->read(0, back.data(), kBytes);
    EXPECT_EQ(std::count(back.begin(), back.end(), static_cast<char>(i)), kBytes);
  }
}

// The legacy stream waits for whatever the host program does with CUDA, and makes that wait.
TEST_F(Cuda, NothingGoesThroughTheLegacyStream) {
  const auto block = device().allocate(Tier::kDevice, 64);
  char byte = 1;
  block->write(0, &byte, 1);
  block->read(0, &byte, 1);
  EXPECT_EQ(emulated::calls("cudaMemcpy"), 0);
  EXPECT_EQ(emulated::calls("cudaMemset"), 0);
}

// From or to memory that is not registered they would hold up the host.
TEST_F(Cuda, CopiesOfQueuesAreBetweenMemoryThatTheDriverKnows) {
  const auto out = device().create_queue(Lane::kCopyOut), in = device().create_queue(Lane::kCopyIn);
  const auto block = device().allocate(Tier::kDevice, 8192);
  const int64_t before = emulated::pageable_copies();
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    const auto other = device().allocate(tier, 8192);
    out->copy({other.get(), 0}, {block.get(), 0}, 8192);
    out->synchronize();
    in->copy({block.get(), 0}, {other.get(), 0}, 8192);
    in->synchronize();
  }
  EXPECT_EQ(emulated::pageable_copies(), before);
}

TEST_F(Cuda, AWriteThatFailsSaysSo) {
  const auto block = device().allocate(Tier::kDevice, 64);
  char byte = 1;
  emulated::fail("cudaMemcpyAsync", cudaErrorInvalidValue);
  std::string message;
  EXPECT_EQ(code_of([&] { block->write(0, &byte, 1); }, &message), Code::kInternal);
  EXPECT_NE(message.find("cudaErrorInvalidValue"), std::string::npos) << message;
  block->write(0, &byte, 1);
  emulated::fail("cudaMemsetAsync", cudaErrorInvalidValue);
  const int64_t taken = emulated::allocated_bytes();
  EXPECT_EQ(code_of([&] { device().allocate(Tier::kDevice, 64); }), Code::kInternal);
  EXPECT_EQ(emulated::allocated_bytes(), taken);
  emulated::fail("cudaStreamSynchronize", cudaErrorLaunchFailure);
  EXPECT_EQ(code_of([&] { block->read(0, &byte, 1); }), Code::kDeviceLost);
  EXPECT_TRUE(device().poisoned());
}

// Keeping and recomputing need no host memory that the driver knows: a machine that refuses to register any
// (limits, virtual machines) trains all the same.
TEST_F(Cuda, OnlyTheTiersNeedRegisteredMemory) {
  emulated::fail("cudaHostRegister", cudaErrorNotSupported, 0, 1000);
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group);
  const auto block = device().allocate(Tier::kDevice, 64);
  const auto kernel = on_stream([&](const kernels::Call& call) {
    const auto& lane = *static_cast<const kernels::cuda::StreamContext*>(call.lane);
    static_cast<char*>(block->address())[0] = static_cast<char>(lane.key->step);
  });
  ASSERT_TRUE(device().begin_recording(group, nullptr));
  compute->launch(kernel, {});
  const auto recording = device().end_recording(group);
  for (const uint64_t step : {4, 5}) {
    recording->run({1, step, 0, 0});
    compute->synchronize();
    EXPECT_EQ(value_at(*block, 0), static_cast<int>(step));
  }
  EXPECT_EQ(emulated::calls("cudaHostRegister"), 0);
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    std::string message;
    EXPECT_EQ(code_of([&] { device().allocate(tier, 4096); }, &message), Code::kOutOfMemory);
    EXPECT_NE(message.find("cudaErrorNotSupported"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cairn::device
