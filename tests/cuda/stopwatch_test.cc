// What queues say of their time: of the work that ran, and of none before it.
#include "tests/cuda/device_fixture.h"

namespace cairn::device {
namespace {

// Two lanes of a group, both ends of their copies, and an event between them.
struct Lanes {
  explicit Lanes(Device& device)
      : group(device.create_group()),
        compute(device.create_queue(Lane::kCompute, group)),
        in(device.create_queue(Lane::kCopyIn, group)),
        block(device.allocate(Tier::kDevice, 64)),
        host(device.allocate(Tier::kHost, 64)),
        event(device.create_event()) {}
  const std::shared_ptr<Group> group;
  const std::unique_ptr<Queue> compute, in;
  const std::unique_ptr<Block> block, host;
  const std::unique_ptr<Event> event;
};

// The runs before a recording waited long; the recording waits for nothing.
TEST_F(Cuda, ARecordingHasNoTimesOfEarlierRuns) {
  const Lanes lanes(device());
  const auto& [group, compute, in, block, host, event] = lanes;
  const auto slow = on_stream([](const kernels::Call&) { sleep_ms(30); });
  for (int i = 0; i < 2; ++i) {
    in->launch(slow, {});
    in->record(*event);
    compute->wait(*event);
  }
  compute->synchronize();
  in->synchronize();
  EXPECT_GE(compute->take_stall_seconds(), 0.02);
  ASSERT_TRUE(device().begin_recording(group, nullptr));
  compute->copy({block.get(), 0}, {host.get(), 0}, 64);
  const auto recording = device().end_recording(group);
  for (int i = 0; i < 3; ++i) {
    recording->run({});
    compute->synchronize();
    EXPECT_EQ(compute->take_stall_seconds(), 0.0) << "run " << i;
    EXPECT_EQ(compute->take_traffic()[static_cast<size_t>(Tier::kHost)].bytes, 64);
  }
}

// Measuring takes time itself: of two recordings of the same work one measures, and the other has its seconds.
TEST_F(Cuda, ARecordingWithoutTimesHasThoseOfAnother) {
  const Lanes lanes(device());
  const auto& [group, compute, in, block, host, event] = lanes;
  const auto record = [&](const Recording* measured) {
    EXPECT_TRUE(device().begin_recording(group, measured));
    in->copy({block.get(), 0}, {host.get(), 0}, 64);
    in->record(*event);
    compute->wait(*event);
    return device().end_recording(group);
  };
  const int64_t before = emulated::calls("cudaEventRecordWithFlags");
  const auto measured = record(nullptr);
  const int64_t between = emulated::calls("cudaEventRecordWithFlags");
  const auto plain = record(measured.get());
  EXPECT_EQ(emulated::calls("cudaEventRecordWithFlags") - between, between - before - 4)
      << "around a copy, and a wait";
  EXPECT_TRUE(measured->measures());
  EXPECT_FALSE(plain->measures());
  const auto seconds = [&](Recording& recording) {
    recording.run({});
    compute->synchronize();
    in->synchronize();
    const Traffic traffic = in->take_traffic()[static_cast<size_t>(Tier::kHost)];
    EXPECT_EQ(traffic.bytes, 64);
    return traffic.busy_seconds;
  };
  EXPECT_EQ(seconds(*plain), 0.0);
  const double known = seconds(*measured);
  EXPECT_GT(known, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(seconds(*plain), known);
}

// A recording that failed leaves its pairs to nobody.
TEST_F(Cuda, AFailedRecordingsTimesAreNobodys) {
  const auto group = device().create_group();
  const auto compute = device().create_queue(Lane::kCompute, group);
  const auto block = device().allocate(Tier::kDevice, 64), host = device().allocate(Tier::kHost, 64);
  emulated::fail("cudaStreamEndCapture", cudaErrorMemoryAllocation);
  ASSERT_TRUE(device().begin_recording(group, nullptr));
  compute->copy({block.get(), 0}, {host.get(), 0}, 64);
  EXPECT_EQ(code_of([&] { device().end_recording(group); }), Code::kOutOfMemory);
  compute->synchronize();
  EXPECT_EQ(compute->take_traffic()[static_cast<size_t>(Tier::kHost)].busy_seconds, 0.0);
}

}  // namespace
}  // namespace cairn::device
