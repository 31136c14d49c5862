#include "tests/conformance/known.h"

#include <gtest/gtest.h>

namespace cairn::conformance {
namespace {

constexpr Unsupported kGaps[] = {{"gelu", DType::kF64, "slow"}};
constexpr ExpectedFailure kFailures[] = {{"relu", "sweep", DType::kF32, "wrong"}};

TEST(Known, WhatIsNotListedHasToWork) {
  const Known known{kGaps, {}, {}};
  static Account account(known);
  account.taken("gelu", DType::kF64, false, "a call");
  account.taken("gelu", DType::kF32, true, "a call");
  EXPECT_NONFATAL_FAILURE(account.taken("gelu", DType::kF32, false, "a call"), "no kernel takes it");
  EXPECT_NONFATAL_FAILURE(account.taken("gelu", DType::kF64, true, "a call"), "although the list");
  account.close();
}

TEST(Known, WhatIsListedHasToBeMet) {
  static const Known known{kGaps, {}, {}};
  EXPECT_NONFATAL_FAILURE(Account(known).close(), "no case asks for it");
}

TEST(Known, AnUnexpectedPassFails) {
  static const Known known{{}, kFailures, {}};
  static Account passes(known);
  passes.row("relu", "sweep", DType::kF32, [] {});
  EXPECT_NONFATAL_FAILURE(passes.close(), "unexpected pass");
  Account fails(known);
  fails.row("relu", "sweep", DType::kF32, [] { ADD_FAILURE() << "beyond the bound"; });
  fails.close();
  static Account others(known);
  EXPECT_NONFATAL_FAILURE(others.row("gelu", "sweep", DType::kF32, [] { ADD_FAILURE() << "unlisted"; }),
                          "unlisted");
}

}  // namespace
}  // namespace cairn::conformance
