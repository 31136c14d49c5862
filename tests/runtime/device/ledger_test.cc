#include "runtime/device/ledger.h"

#include <gtest/gtest.h>

namespace cairn::device {
namespace {

Code code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::kOk;
}

TEST(Ledger, CountsBlocksAndTheirPeak) {
  Ledger ledger;
  ledger.reserve(Tier::kHost, 100);
  ledger.reserve(Tier::kHost, 50);
  ledger.release(Tier::kHost, 100);
  ledger.reserve(Tier::kHost, 20);
  EXPECT_EQ(ledger.count(Tier::kHost).reserved_bytes, 70);
  EXPECT_EQ(ledger.count(Tier::kHost).peak_reserved_bytes, 150);
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_reserved_bytes, 0);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.count(Tier::kHost).peak_reserved_bytes, 70);
}

TEST(Ledger, PreparedRangesComeAndGoInAnyTier) {
  Ledger ledger;
  ledger.prepare(2);
  ledger.prepare(3);  // no more than asked for, whatever is there
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < 5; ++i) ledger.begin_range(i % 2 == 0 ? Tier::kDevice : Tier::kHost, i * 64, 64);
    EXPECT_EQ(ledger.count(Tier::kDevice).live_bytes, 3 * 64);
    EXPECT_EQ(ledger.count(Tier::kHost).live_bytes, 2 * 64);
    EXPECT_EQ(code_of([&] { ledger.begin_range(Tier::kDevice, 32, 64); }), Code::kInternal);
    for (int64_t i = 0; i < 5; ++i) ledger.end_range(i % 2 == 0 ? Tier::kDevice : Tier::kHost, i * 64);
    EXPECT_EQ(ledger.count(Tier::kDevice).live_bytes, 0);
  }
}

TEST(Ledger, CountsRangesPeakAndHeight) {
  Ledger ledger;
  ledger.begin_range(Tier::kDevice, 0, 64);
  ledger.begin_range(Tier::kDevice, 192, 64);
  EXPECT_EQ(ledger.count(Tier::kDevice).live_bytes, 128);
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_height_bytes, 256);
  ledger.end_range(Tier::kDevice, 192);
  ledger.begin_range(Tier::kDevice, 64, 32);
  EXPECT_EQ(ledger.count(Tier::kDevice).live_bytes, 96);
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_live_bytes, 128);
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_height_bytes, 256);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_live_bytes, 96);
  EXPECT_EQ(ledger.count(Tier::kDevice).peak_height_bytes, 96);
}

TEST(Ledger, RefusesOverlapsAndUnknownEnds) {
  Ledger ledger;
  ledger.begin_range(Tier::kDevice, 64, 64);
  const auto begin = [&](int64_t offset, int64_t bytes) {
    return code_of([&] { ledger.begin_range(Tier::kDevice, offset, bytes); });
  };
  EXPECT_EQ(begin(0, 65), Code::kInternal);
  EXPECT_EQ(begin(64, 64), Code::kInternal);
  EXPECT_EQ(begin(127, 1), Code::kInternal);
  EXPECT_EQ(begin(80, 8), Code::kInternal);
  EXPECT_EQ(begin(-8, 8), Code::kInternal);
  EXPECT_EQ(begin(256, 0), Code::kInternal);
  EXPECT_EQ(begin(0, 64), Code::kOk);
  EXPECT_EQ(begin(128, 64), Code::kOk);
  EXPECT_EQ(code_of([&] { ledger.end_range(Tier::kDevice, 65); }), Code::kInternal);
  EXPECT_EQ(code_of([&] { ledger.end_range(Tier::kHost, 64); }), Code::kInternal);
  EXPECT_EQ(ledger.count(Tier::kDevice).live_bytes, 192);
  EXPECT_EQ(code_of([&] { ledger.end_range(Tier::kDevice, 64); }), Code::kOk);
  EXPECT_EQ(begin(64, 64), Code::kOk);
}

}  // namespace
}  // namespace cairn::device
