// Wrong programs, made by hand: the checked device must name each violation, whatever the timing.
#include "tests/runtime/device/support.h"

namespace cairn::device {
namespace {

using kernels::Call;

class Check : public ::testing::Test {
 protected:
  std::shared_ptr<Device> device = checked(open_cpu());
  std::unique_ptr<Block> block = device->allocate(Tier::kDevice, 256),
                         host = device->allocate(Tier::kHost, 256), disk = device->allocate(Tier::kDisk, 256);
  std::unique_ptr<Queue> compute = device->create_queue(Lane::kCompute),
                         out = device->create_queue(Lane::kCopyOut), in = device->create_queue(Lane::kCopyIn);
  std::unique_ptr<Event> event = device->create_event(), event2 = device->create_event();
  FunctionKernel nothing{[](const Call&) {}};
  std::vector<std::unique_ptr<Tensor>> tensors;

  Call call(const Tensor* input, const Tensor* output) {
    Call c;
    if (input != nullptr) c.in = {input, 1};
    if (output != nullptr) c.out = {output, 1};
    return c;
  }
  const Tensor* at(int64_t offset, int64_t bytes) {
    tensors.push_back(std::make_unique<Tensor>(bytes_at(*block, offset, bytes)));
    return tensors.back().get();
  }
  void read(int64_t offset, int64_t bytes) { compute->launch(nothing, call(at(offset, bytes), nullptr)); }
  void write(int64_t offset, int64_t bytes) { compute->launch(nothing, call(nullptr, at(offset, bytes))); }
  void copy_out(int64_t offset, int64_t bytes) {
    out->copy({host.get(), offset}, {block.get(), offset}, bytes);
  }
  void copy_in(int64_t offset, int64_t bytes) {
    in->copy({block.get(), offset}, {host.get(), offset}, bytes);
  }
  void order(Queue& first, Queue& then, Event& by) {
    first.record(by);
    then.wait(by);
  }
  void finish() {
    compute->synchronize();
    out->synchronize();
    in->synchronize();
  }
  std::string violation() {
    std::string message;
    const Code code = code_of([&] { finish(); }, &message);
    EXPECT_EQ(device->poisoned(), code != Code::kOk);
    if (code == Code::kOk) return "";
    EXPECT_EQ(code, Code::kInternal) << message;
    return message;
  }
  void expect_race() { EXPECT_NE(violation().find("race"), std::string::npos); }
};

TEST_F(Check, AcceptsAnOrderedRoundTrip) {
  write(0, 128);
  order(*compute, *out, *event);
  copy_out(0, 128);
  order(*out, *compute, *event2);
  write(0, 64);
  order(*compute, *in, *event);
  copy_in(0, 128);
  order(*in, *compute, *event2);
  read(0, 128);
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, AcceptsReadsSideBySideAndDisjointWrites) {
  write(0, 64);
  order(*compute, *out, *event);
  copy_out(0, 64);
  read(0, 64);
  write(64, 64);
  copy_in(128, 64);
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, CopyOutBeforeTheValueIsMade) {
  write(0, 64);
  copy_out(0, 64);
  expect_race();
}

TEST_F(Check, WriteOverBytesBeingCopiedOut) {
  write(0, 64);
  order(*compute, *out, *event);
  copy_out(0, 64);
  write(60, 8);  // overlaps in four bytes
  expect_race();
}

TEST_F(Check, UseBeforeTheCopyInIsDone) {
  copy_in(0, 64);
  read(32, 4);
  expect_race();
}

TEST_F(Check, CopyInOverBytesStillRead) {
  read(0, 64);
  copy_in(0, 64);
  expect_race();
}

TEST_F(Check, CopyInBeforeTheCopyOutOfTheSameBytes) {
  order(*compute, *out, *event);
  out->copy({host.get(), 0}, {block.get(), 0}, 64);
  in->copy({block.get(), 64}, {host.get(), 0}, 64);
  expect_race();
}

TEST_F(Check, DiskBytesRaceToo) {
  out->copy({disk.get(), 0}, {block.get(), 0}, 64);
  in->copy({block.get(), 64}, {disk.get(), 32}, 64);
  expect_race();
}

TEST_F(Check, AnEventOrdersOnlyWhatCameBeforeItsRecord) {
  compute->record(*event);
  write(0, 64);  // after the record
  out->wait(*event);
  copy_out(0, 64);
  expect_race();
}

TEST_F(Check, OrderIsTransitiveOverThreeQueues) {
  copy_out(0, 64);
  order(*out, *compute, *event);
  order(*compute, *in, *event2);
  copy_in(0, 64);
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, SynchronizingOrdersEverythingAfterIt) {
  copy_in(0, 64);
  in->synchronize();
  write(0, 64);
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, WorkspaceIsWritten) {
  const FunctionKernel with_workspace([](const Call&) {}, 64);
  copy_in(0, 64);
  Call c;
  c.workspace = static_cast<char*>(block->address()) + 32;
  compute->launch(with_workspace, c);
  expect_race();
}

TEST_F(Check, MissingWorkspace) {
  const FunctionKernel with_workspace([](const Call&) {}, 64);
  compute->launch(with_workspace, {});
  EXPECT_NE(violation().find("workspace"), std::string::npos);
}

TEST_F(Check, InPlaceIsNoRace) {
  const Tensor* t = at(0, 64);
  Call c = call(t, t);
  c.in_place = 1;
  compute->launch(nothing, c);
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, InPlaceIsDeclared) {
  const Tensor* t = at(0, 64);
  compute->launch(nothing, call(t, t));
  EXPECT_NE(violation().find("output 0 overlaps input 0"), std::string::npos);
}

TEST_F(Check, InPlaceIsExact) {
  Call c = call(at(0, 64), at(32, 64));
  c.in_place = 1;
  compute->launch(nothing, c);
  EXPECT_NE(violation().find("output 0 is said to lie on input 0"), std::string::npos);
}

TEST_F(Check, OutputsAndWorkspaceLieApart) {
  const Tensor outputs[] = {*at(0, 64), *at(60, 64)};
  Call c;
  c.out = outputs;
  compute->launch(nothing, c);
  EXPECT_NE(violation().find("output 1 overlaps output 0"), std::string::npos);
}

TEST_F(Check, WorkspaceOverAnOperand) {
  const FunctionKernel with_workspace([](const Call&) {}, 64);
  Call c = call(at(0, 64), nullptr);
  c.workspace = static_cast<char*>(block->address()) + 32;
  compute->launch(with_workspace, c);
  EXPECT_NE(violation().find("workspace 0 overlaps input 0"), std::string::npos);
}

TEST_F(Check, RangesOutsideTheirBlock) {
  copy_out(250, 8);
  EXPECT_NE(violation().find("outside"), std::string::npos);
}

TEST_F(Check, OperandsOutsideEveryBlock) {
  int here = 0;
  const Tensor stray{{DType::kI32, {1}}, &here};
  compute->launch(nothing, call(&stray, nullptr));
  EXPECT_NE(violation().find("outside"), std::string::npos);
}

TEST_F(Check, OperandReachingOverTheEnd) {
  read(200, 57);
  EXPECT_NE(violation().find("outside"), std::string::npos);
}

TEST_F(Check, UseAfterTheBlockIsReleased) {
  const Tensor* t = at(0, 64);
  finish();
  block.reset();
  compute->launch(nothing, call(t, nullptr));
  EXPECT_NE(violation().find("living"), std::string::npos);
}

TEST_F(Check, ReleaseWhileWorkMayUseTheBlock) {
  write(0, 64);
  block.reset();
  EXPECT_NE(violation().find("released"), std::string::npos);
}

TEST_F(Check, ReleaseAfterSynchronizingIsFine) {
  write(0, 64);
  order(*compute, *out, *event);
  out->synchronize();  // has waited for compute
  block.reset();
  EXPECT_EQ(violation(), "");
}

TEST_F(Check, WaitForAnEventNeverRecorded) {
  compute->wait(*event);
  EXPECT_NE(violation().find("never recorded"), std::string::npos);
}

TEST_F(Check, EventsAndBlocksOfAnotherDevice) {
  const auto other = checked(open_cpu());
  const auto foreign = other->create_event();
  compute->record(*foreign);
  EXPECT_NE(violation().find("another device"), std::string::npos);
  const auto third = checked(open_cpu());
  const auto queue = third->create_queue(Lane::kCopyOut);
  queue->copy({host.get(), 0}, {block.get(), 0}, 8);
  EXPECT_EQ(code_of([&] { queue->synchronize(); }), Code::kInternal);
}

TEST_F(Check, TheFirstViolationIsKeptAndLaterWorkSkipped) {
  compute->wait(*event);
  copy_in(0, 64);
  read(0, 64);
  EXPECT_NE(violation().find("never recorded"), std::string::npos);
}

TEST_F(Check, PassesErrorsOfTheDeviceInsideOn) {
  const FunctionKernel bad([](const Call&) { fail(Code::kNonFinite, "inside"); });
  compute->launch(bad, {});
  EXPECT_EQ(code_of([&] { compute->synchronize(); }), Code::kNonFinite);
  EXPECT_EQ(code_of([&] { in->synchronize(); }), Code::kNonFinite) << "the same group";
}

}  // namespace
}  // namespace cairn::device
