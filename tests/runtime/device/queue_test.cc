#include "tests/runtime/device/support.h"

namespace cairn::device {
namespace {

using kernels::Call;

TEST(Queue, RunsInOrderOfSubmission) {
  const auto device = open_cpu();
  const auto queue = device->create_queue(Lane::kCompute);
  std::vector<int> seen;
  std::vector<std::unique_ptr<FunctionKernel>> kernels;
  for (int i = 0; i < 3000; ++i)
    kernels.push_back(std::make_unique<FunctionKernel>([&seen, i](const Call&) { seen.push_back(i); }));
  for (const auto& kernel : kernels) queue->launch(*kernel, {});
  queue->synchronize();
  ASSERT_EQ(seen.size(), kernels.size());
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(seen[i], i);
}

TEST(Queue, SubmittingDoesNotWaitForTheWork) {
  const auto device = open_cpu();
  const auto queue = device->create_queue(Lane::kCompute);
  std::atomic<bool> open{false};
  std::atomic<int> done{0};
  const FunctionKernel gate([&](const Call&) {
    while (!open) sleep_ms(1);
    ++done;
  });
  for (int i = 0; i < 10; ++i) queue->launch(gate, {});
  EXPECT_EQ(done, 0);  // none can be done: the gate is closed, and yet all are submitted
  open = true;
  queue->synchronize();
  EXPECT_EQ(done, 10);
}

TEST(Queue, AWaitHoldsWorkBackUntilTheRecordedPoint) {
  const auto device = open_cpu();
  const auto compute = device->create_queue(Lane::kCompute), out = device->create_queue(Lane::kCopyOut);
  const auto block = device->allocate(Tier::kDevice, 128);
  const auto host = device->allocate(Tier::kHost, 128);
  const auto event = device->create_event();
  const FunctionKernel slow_write([](const Call& call) {
    sleep_ms(20);
    std::memset(call.out[0].data, 7, 128);
  });
  const Tensor output = bytes_at(*block, 0, 128);
  Call call;
  call.out = {&output, 1};
  compute->launch(slow_write, call);
  compute->record(*event);
  out->wait(*event);
  out->copy({host.get(), 0}, {block.get(), 0}, 128);
  out->synchronize();
  EXPECT_EQ(static_cast<char*>(host->address())[127], 7);
  EXPECT_GT(out->take_stall_seconds(), 0.0);
  EXPECT_EQ(out->take_stall_seconds(), 0.0);
  EXPECT_GE(compute->take_busy_seconds(), 0.02);
}

TEST(Queue, AWaitMeansTheLatestRecordBeforeIt) {
  const auto device = open_cpu();
  const auto a = device->create_queue(Lane::kCompute), b = device->create_queue(Lane::kCopyIn);
  const auto event = device->create_event();
  std::atomic<bool> second_may_run{false};
  std::atomic<int> done{0};
  const FunctionKernel first([&](const Call&) { done = 1; });
  const FunctionKernel second([&](const Call&) {
    while (!second_may_run) sleep_ms(1);
    done = 2;
  });
  a->launch(first, {});
  a->record(*event);
  b->wait(*event);  // the first record, although the event is recorded again below
  a->launch(second, {});
  a->record(*event);
  b->synchronize();  // would hang if b waited for the second
  EXPECT_GE(done, 1);
  b->wait(*event);
  second_may_run = true;
  b->synchronize();
  EXPECT_EQ(done, 2);
}

TEST(Queue, EventsMayBeRecordedOnOneQueueThenAnother) {
  const auto device = open_cpu();
  const auto a = device->create_queue(Lane::kCompute), b = device->create_queue(Lane::kCopyIn),
             c = device->create_queue(Lane::kCopyOut);
  const auto event = device->create_event();
  std::atomic<int> done{0};
  const FunctionKernel slow([&](const Call&) {
    sleep_ms(10);
    ++done;
  });
  a->launch(slow, {});
  a->record(*event);
  c->wait(*event);
  b->record(*event);  // reached at once: must not release the wait above
  c->synchronize();
  EXPECT_EQ(done, 1);
}

TEST(Queue, TheFirstErrorPoisonsTheGroupAndIsKept) {
  const auto device = open_cpu();
  const auto group = device->create_group();
  const auto compute = device->create_queue(Lane::kCompute, group),
             in = device->create_queue(Lane::kCopyIn, group);
  const auto host = device->allocate(Tier::kHost, 64), block = device->allocate(Tier::kDevice, 64);
  const auto event = device->create_event();
  std::memset(host->address(), 5, 64);
  std::atomic<int> ran{0};
  const FunctionKernel good([&](const Call&) { ++ran; });
  const FunctionKernel bad([](const Call&) { fail(Code::kNonFinite, "the first failure"); });
  const FunctionKernel worse([](const Call&) { throw std::runtime_error("the second failure"); });
  compute->launch(good, {});
  compute->launch(bad, {});
  compute->launch(worse, {});
  compute->launch(good, {});
  compute->record(*event);
  in->wait(*event);
  in->copy({block.get(), 0}, {host.get(), 0}, 64);
  std::string message;
  EXPECT_EQ(code_of([&] { in->synchronize(); }, &message), Code::kNonFinite);
  EXPECT_EQ(message, "the first failure");
  EXPECT_EQ(code_of([&] { compute->synchronize(); }), Code::kNonFinite);
  EXPECT_EQ(code_of([&] { compute->synchronize(); }), Code::kNonFinite);
  EXPECT_TRUE(group->poisoned());
  EXPECT_FALSE(device->poisoned()) << "other groups go on";
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(static_cast<char*>(block->address())[0], 0) << "a copy ran after the poison";
}

TEST(Queue, ForeignExceptionsBecomeErrors) {
  const auto device = open_cpu();
  const auto compute = device->create_queue(Lane::kCompute);
  const FunctionKernel bad([](const Call&) { throw std::runtime_error("from outside"); });
  compute->launch(bad, {});
  std::string message;
  EXPECT_EQ(code_of([&] { compute->synchronize(); }, &message), Code::kInternal);
  EXPECT_NE(message.find("from outside"), std::string::npos);
}

TEST(Queue, DestructionFinishesSubmittedWork) {
  const auto device = open_cpu();
  std::atomic<int> ran{0};
  const FunctionKernel slow([&](const Call&) {
    sleep_ms(1);
    ++ran;
  });
  {
    const auto queue = device->create_queue(Lane::kCompute);
    for (int i = 0; i < 5; ++i) queue->launch(slow, {});
  }
  EXPECT_EQ(ran, 5);
}

TEST(Queue, OutlivesItsDeviceHandle) {
  auto device = open_cpu();
  auto block = device->allocate(Tier::kHost, 100);
  auto queue = device->create_queue(Lane::kCompute);
  device.reset();
  std::atomic<int> ran{0};
  const FunctionKernel count([&](const Call&) { ++ran; });
  queue->launch(count, {});
  queue->synchronize();
  EXPECT_EQ(ran, 1);
}

TEST(Queue, CopiesOutsideTheirBlocksAreRefusedAtOnce) {
  const auto device = open_cpu();
  const auto queue = device->create_queue(Lane::kCopyOut);
  const auto a = device->allocate(Tier::kDevice, 128), b = device->allocate(Tier::kHost, 64);
  const auto copy = [&](int64_t to, int64_t from, int64_t bytes) {
    return code_of([&] { queue->copy({b.get(), to}, {a.get(), from}, bytes); });
  };
  EXPECT_EQ(copy(0, 0, 65), Code::kInvalidArgument);
  EXPECT_EQ(copy(1, 0, 64), Code::kInvalidArgument);
  EXPECT_EQ(copy(0, 100, 64), Code::kInvalidArgument);
  EXPECT_EQ(copy(-1, 0, 8), Code::kInvalidArgument);
  EXPECT_EQ(copy(0, 0, 0), Code::kInvalidArgument);
  EXPECT_EQ(copy(0, 64, 64), Code::kOk);
  queue->synchronize();
}

TEST(Queue, TracesEveryLaunchAndCopyInOrder) {
  const auto device = open_cpu();
  const auto queue = device->create_queue(Lane::kCompute);
  const FunctionKernel slow([](const Call&) { sleep_ms(2); });
  queue->launch(slow, {});
  queue->synchronize();
  queue->trace(true);
  for (int i = 0; i < 3; ++i) queue->launch(slow, {});
  queue->synchronize();
  const auto spans = queue->take_trace();
  ASSERT_EQ(spans.size(), 3u);
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_GE(spans[i].end - spans[i].begin, 0.002);
    if (i > 0) {
      EXPECT_GE(spans[i].begin, spans[i - 1].end);
    }
  }
  EXPECT_TRUE(queue->take_trace().empty());
}

}  // namespace
}  // namespace cairn::device
