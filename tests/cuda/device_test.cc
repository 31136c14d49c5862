// The CUDA device on the emulated runtime: memory, order, recordings, and every error that a driver can give.
#include "runtime/device/cuda/device.h"

#include <atomic>
#include <chrono>

#include "tests/cuda/device_fixture.h"

namespace cairn::device {
namespace {

TEST_F(Cuda, SaysWhatItIs) {
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_EQ(info.isa, "sm_90");
  EXPECT_FALSE(info.host_reaches);
  EXPECT_GT(info.bf16_flops_per_second, 10 * info.f32_flops_per_second);
}

TEST_F(Cuda, BlocksAreZeroedCountedAndGivenBack) {
  {
    const auto block = device().allocate(Tier::kDevice, 1000);
    EXPECT_EQ(value_at(*block, 999), 0);
    const char text[] = "cairn";
    block->write(10, text, 5);
    EXPECT_EQ(value_at(*block, 14), 'n');
    const auto host = device().allocate(Tier::kHost, 5000);
    EXPECT_EQ(host->pinned_bytes(), 5000);
    EXPECT_EQ(device().ledger().count(Tier::kDevice).reserved_bytes, 1000);
    EXPECT_EQ(device().ledger().count(Tier::kHost).reserved_bytes, 5000);
  }
  EXPECT_EQ(device().ledger().count(Tier::kDevice).reserved_bytes, 0);
  EXPECT_EQ(device().ledger().count(Tier::kHost).reserved_bytes, 0);
}

TEST_F(Cuda, TheDriverCountsWhatIsTaken) {
  const int64_t before = device().taken_bytes();
  {
    const auto block = device().allocate(Tier::kDevice, 100000);
    EXPECT_GE(device().taken_bytes(), before + 100000);
  }
  EXPECT_EQ(device().taken_bytes(), before);
}

TEST_F(Cuda, ACopyInsideTheDeviceIsTracedAndMoves) {
  const auto compute = device().create_queue(Lane::kCompute);
  const auto block = device().allocate(Tier::kDevice, 256);
  const char text[] = "cairn";
  block->write(3, text, 5);
  compute->trace(true);
  compute->copy({block.get(), 128}, {block.get(), 0}, 64);
  compute->synchronize();
  EXPECT_EQ(value_at(*block, 131), 'c');
  const auto spans = compute->take_trace();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_LE(spans[0].begin, spans[0].end);
}

// Else the first spans would hold the time that submitting the others takes.
TEST_F(Cuda, TracedWorkBeginsWhenAllOfItIsSubmitted) {
  const auto compute = device().create_queue(Lane::kCompute), out = device().create_queue(Lane::kCopyOut);
  std::atomic<bool> all_submitted{false};
  bool first = true, second = true;
  const auto looking = [&](bool& saw) {
    return on_stream([&](const kernels::Call&) { saw = all_submitted; });
  };
  const auto a = looking(first), b = looking(second);
  const auto began = std::chrono::steady_clock::now();
  for (const auto* queue : {&compute, &out}) (*queue)->trace(true);
  compute->launch(a, {});
  out->launch(b, {});
  sleep_ms(2);
  all_submitted = true;
  const auto took = std::chrono::steady_clock::now() - began;
  for (const auto* queue : {&out, &compute}) (*queue)->synchronize();
  if (took > std::chrono::milliseconds(15)) GTEST_SKIP() << "others kept this thread from submitting";
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

// A stream that takes no more work until some of it is done must not wait for the rest.
TEST_F(Cuda, TracedWorkIsNotHeldBackForLong) {
  const auto compute = device().create_queue(Lane::kCompute);
  std::atomic<bool> ran{false};
  const auto kernel = on_stream([&](const kernels::Call&) { ran = true; });
  compute->trace(true);
  compute->launch(kernel, {});
  while (!ran) sleep_ms(1);
  compute->synchronize();
}

TEST_F(Cuda, CopiesComeAfterTheEventTheyWaitFor) {
  const auto compute = device().create_queue(Lane::kCompute), out = device().create_queue(Lane::kCopyOut);
  const auto block = device().allocate(Tier::kDevice, 128), host = device().allocate(Tier::kHost, 128);
  const auto event = device().create_event();
  const auto slow = on_stream([&](const kernels::Call&) {
    sleep_ms(30);
    static_cast<char*>(block->address())[127] = 7;
  });
  compute->launch(slow, {});
  compute->record(*event);
  out->wait(*event);
  out->copy({host.get(), 0}, {block.get(), 0}, 128);
  out->synchronize();
  EXPECT_EQ(value_at(*host, 127), 7);
  const auto traffic = out->take_traffic();
  EXPECT_EQ(traffic[static_cast<size_t>(Tier::kHost)].bytes, 128);
  EXPECT_EQ(out->take_traffic()[static_cast<size_t>(Tier::kHost)].bytes, 0);
  compute->synchronize();
}

TEST_F(Cuda, TheComputeLanesWaitsAreStall) {
  const auto compute = device().create_queue(Lane::kCompute), in = device().create_queue(Lane::kCopyIn);
  const auto event = device().create_event();
  const auto slow = on_stream([](const kernels::Call&) { sleep_ms(30); });
  in->launch(slow, {});
  in->record(*event);
  compute->wait(*event);
  compute->synchronize();
  EXPECT_GE(compute->take_stall_seconds(), 0.02);
  EXPECT_EQ(compute->take_stall_seconds(), 0.0);
  in->synchronize();
}

TEST_F(Cuda, ARecordingRunsAgainWithAnotherKey) {
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group),
             out = device().create_queue(Lane::kCopyOut, group);
  const auto in = device().create_queue(Lane::kCopyIn, group);
  const auto block = device().allocate(Tier::kDevice, 64), host = device().allocate(Tier::kHost, 64);
  const auto made = device().create_event(), gone = device().create_event(), back = device().create_event();
  const auto kernel = on_stream([&](const kernels::Call& call) {
    const auto& lane = *static_cast<const kernels::cuda::StreamContext*>(call.lane);
    static_cast<char*>(block->address())[0] = static_cast<char>(lane.key->step * 10 + call.key.op);
  });
  const auto spoil = on_stream([&](const kernels::Call&) { static_cast<char*>(block->address())[0] = 99; });
  ASSERT_TRUE(device().begin_recording(group, nullptr));
  kernels::Call call;
  call.key.op = 3;
  compute->launch(kernel, call);
  compute->record(*made);
  out->wait(*made);
  out->copy({host.get(), 0}, {block.get(), 0}, 64);
  out->record(*gone);
  compute->wait(*gone);
  compute->launch(spoil, {});
  compute->record(*back);
  in->wait(*back);
  in->copy({block.get(), 0}, {host.get(), 0}, 64);
  const auto recording = device().end_recording(group);
  EXPECT_EQ(value_at(*block, 0), 0);  // nothing has run
  for (const uint64_t step : {4, 5, 6}) {
    recording->run({1, step, 0, 0});
    for (const auto* queue : {&compute, &out, &in}) (*queue)->synchronize();
    EXPECT_EQ(value_at(*host, 0), static_cast<int>(step * 10 + 3));
    EXPECT_EQ(value_at(*block, 0), static_cast<int>(step * 10 + 3));
    EXPECT_EQ(out->take_traffic()[static_cast<size_t>(Tier::kHost)].bytes, 64);
  }
  EXPECT_EQ(emulated::calls("cudaGraphLaunch"), 3);
}

TEST_F(Cuda, EventsOfEarlierRunsAreOverInARecording) {
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group),
             out = device().create_queue(Lane::kCopyOut, group);
  const auto event = device().create_event();
  compute->record(*event);
  compute->synchronize();
  ASSERT_TRUE(device().begin_recording(group, nullptr));
  out->wait(*event);
  compute->record(*event);
  const auto recording = device().end_recording(group);
  out->wait(*event);  // recorded in the recording, whose runs are over
  out->synchronize();
  recording->run({});
  compute->synchronize();
}

TEST_F(Cuda, AFailedRecordingLeavesAGroupThatSaysSo) {
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group);
  for (const char* call : {"cudaStreamEndCapture", "cudaGraphInstantiate"}) {
    emulated::fail(call, cudaErrorMemoryAllocation);
    ASSERT_TRUE(device().begin_recording(group, nullptr));
    std::string message;
    EXPECT_EQ(code_of([&] { device().end_recording(group); }, &message), Code::kOutOfMemory);
    EXPECT_NE(message.find(call), std::string::npos) << message;
  }
  compute->synchronize();  // the group goes on
}

TEST_F(Cuda, WhatAFailedRecordingCopiedIsNoneOfTheNextOnes) {
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group),
             out = device().create_queue(Lane::kCopyOut, group);
  const auto block = device().allocate(Tier::kDevice, 64), host = device().allocate(Tier::kHost, 64);
  const auto record = [&] {
    EXPECT_TRUE(device().begin_recording(group, nullptr));
    out->copy({host.get(), 0}, {block.get(), 0}, 64);
    return device().end_recording(group);
  };
  emulated::fail("cudaStreamEndCapture", cudaErrorMemoryAllocation);
  EXPECT_EQ(code_of([&] { record(); }), Code::kOutOfMemory);
  const auto recording = record();
  recording->run({});
  for (const auto* queue : {&compute, &out}) (*queue)->synchronize();
  EXPECT_EQ(out->take_traffic()[static_cast<size_t>(Tier::kHost)].bytes, 64);
}

TEST_F(Cuda, AKernelThatCannotStartPoisonsItsGroupAlone) {
  const auto bad = device().create_group(), good = device().create_group();
  const auto a = device().create_queue(Lane::kCompute, bad), b = device().create_queue(Lane::kCompute, good);
  const FunctionKernel broken([](const kernels::Call&) { fail(Code::kUnsupported, "no such kernel"); });
  int ran = 0;
  const FunctionKernel fine([&](const kernels::Call&) { ++ran; });
  a->launch(broken, {});
  a->launch(fine, {});
  b->launch(fine, {});
  EXPECT_EQ(code_of([&] { a->synchronize(); }), Code::kUnsupported);
  EXPECT_TRUE(bad->poisoned());
  EXPECT_FALSE(device().poisoned());
  b->synchronize();
  EXPECT_EQ(ran, 1);
}

TEST_F(Cuda, ALostDeviceSaysSoFromThenOn) {
  const auto queue = device().create_queue(Lane::kCompute);
  const auto block = device().allocate(Tier::kDevice, 64);
  const auto crash = on_stream([](const kernels::Call&) { fail(Code::kInternal, "as if it crashed"); });
  queue->launch(crash, {});
  std::string message;
  EXPECT_EQ(code_of([&] { queue->synchronize(); }, &message), Code::kDeviceLost);
  EXPECT_NE(message.find("cuda:0"), std::string::npos) << message;
  EXPECT_TRUE(device().poisoned());
  char byte = 0;
  EXPECT_EQ(code_of([&] { block->read(0, &byte, 1); }), Code::kDeviceLost);
  EXPECT_EQ(code_of([&] { device().allocate(Tier::kDevice, 64); }), Code::kDeviceLost);
  EXPECT_EQ(code_of([&] { device().create_event(); }), Code::kDeviceLost);
  EXPECT_EQ(code_of([&] { device().create_queue(Lane::kCopyIn); }), Code::kDeviceLost);
  EXPECT_EQ(code_of([&] { queue->synchronize(); }), Code::kDeviceLost);
}

TEST_F(Cuda, DriversThatCannotBeUsedAreUnsupported) {
  std::string message;
  const cudaError_t statuses[] = {cudaErrorNoDevice, cudaErrorInsufficientDriver,
                                  cudaErrorSystemDriverMismatch, cudaErrorInitializationError};
  for (const cudaError_t status : statuses) {
    emulated::fail("cudaGetDeviceCount", status);
    EXPECT_EQ(failing_open(&message), Code::kUnsupported);
    EXPECT_NE(message.find(cudaGetErrorName(status)), std::string::npos) << message;
  }
  emulated::fail("cudaGetDeviceCount", cudaErrorInsufficientDriver);
  failing_open(&message);
  EXPECT_NE(message.find("580"), std::string::npos) << message;
  emulated::gpu().driver = 0;
  EXPECT_EQ(failing_open(&message), Code::kUnsupported);
  EXPECT_NE(message.find("no NVIDIA driver"), std::string::npos) << message;
  emulated::gpu().driver = 13000;
  emulated::gpu().major = 7;
  EXPECT_EQ(failing_open(&message), Code::kUnsupported);
  EXPECT_NE(message.find("compute capability 7.0"), std::string::npos) << message;
  emulated::reset();
  EXPECT_EQ(code_of([] { cuda::open("cuda:1", {}); }, &message), Code::kUnsupported);
  EXPECT_NE(message.find("only 1 GPU"), std::string::npos) << message;
  EXPECT_EQ(code_of([] { cuda::open("cuda:0", {.link_bytes_per_second = 1e9}); }), Code::kInvalidArgument);
}

TEST_F(Cuda, TooLittleMemoryIsAFaultOfItsTier) {
  emulated::gpu().memory_bytes = 1 << 20;
  try {
    device().allocate(Tier::kDevice, 2 << 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    ASSERT_NE(error.fault(), nullptr);
    EXPECT_EQ(error.fault()->requested_bytes, 2u << 20);
    EXPECT_EQ(error.fault()->budget_bytes, 1u << 20);
    EXPECT_EQ(error.fault()->tier, Tier::kDevice);
  }
  emulated::fail("cudaHostRegister", cudaErrorMemoryAllocation);
  try {
    device().allocate(Tier::kHost, 4096);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("pinned"), std::string::npos) << error.what();
    EXPECT_EQ(error.fault()->tier, Tier::kHost);
  }
  device().allocate(Tier::kHost, 4096);
}

TEST_F(Cuda, TheDiskIsReachedThroughPinnedSlots) {
  const int64_t bytes = (int64_t{16} << 20) + 4096 + 100;  // two pieces
  const auto out = device().create_queue(Lane::kCopyOut), in = device().create_queue(Lane::kCopyIn);
  const auto block = device().allocate(Tier::kDevice, bytes), disk = device().allocate(Tier::kDisk, bytes);
  EXPECT_GT(disk->staging_bytes(), 0);
  std::vector<char> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 + i / 4096);
  block->write(0, data.data(), bytes);
  out->copy({disk.get(), 0}, {block.get(), 0}, bytes);
  out->synchronize();
  block->write(0, std::vector<char>(data.size()).data(), bytes);
  in->copy({block.get(), 0}, {disk.get(), 0}, bytes);
  in->synchronize();
  std::vector<char> back(data.size());
  block->read(0, back.data(), bytes);
  EXPECT_EQ(back, data);
  EXPECT_EQ(in->take_traffic()[static_cast<size_t>(Tier::kDisk)].bytes, bytes);
}

TEST_F(Cuda, AFailingDiskPoisonsTheGroup) {
  options_.disk_fault = [](bool writes, int64_t, int64_t bytes) {
    return writes ? -int64_t{28} : bytes;
  };  // ENOSPC
  const auto group = device().create_group();
  const auto out = device().create_queue(Lane::kCopyOut, group);
  const auto block = device().allocate(Tier::kDevice, 8192), disk = device().allocate(Tier::kDisk, 8192);
  out->copy({disk.get(), 0}, {block.get(), 0}, 8192);
  EXPECT_EQ(code_of([&] { out->synchronize(); }), Code::kIo);
  EXPECT_FALSE(device().poisoned());
}

TEST_F(Cuda, CopiesOutsideTheirBlocksAreRefused) {
  const auto queue = device().create_queue(Lane::kCopyOut);
  const auto block = device().allocate(Tier::kDevice, 64), host = device().allocate(Tier::kHost, 64);
  EXPECT_EQ(code_of([&] { queue->copy({host.get(), 0}, {block.get(), 32}, 64); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { queue->copy({nullptr, 0}, {block.get(), 0}, 64); }), Code::kInvalidArgument);
  const auto cpu = open_cpu();
  const auto foreign = cpu->allocate(Tier::kHost, 64);
  EXPECT_EQ(code_of([&] { queue->copy({foreign.get(), 0}, {block.get(), 0}, 64); }), Code::kInvalidArgument);
  const auto event = cpu->create_event();
  EXPECT_EQ(code_of([&] { queue->record(*event); }), Code::kInvalidArgument);
  queue->synchronize();
}

}  // namespace
}  // namespace cairn::device
