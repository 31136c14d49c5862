// What a backend is known not to do, with the reason. The conformance tests hold it to the list in both
// directions: what is not listed has to work, and what is listed has to fail.
#pragma once
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string_view>

#include "runtime/base/kernel.h"

namespace cairn::conformance {

// No row takes `op` (every op: "*", those in `but` excepted) in a graph of this dtype.
struct Unsupported {
  std::string_view op;
  DType dtype;
  std::string_view reason;
  std::span<const std::string_view> but = {};
};

// A row that takes the op and is not within the op's bound.
struct ExpectedFailure {
  std::string_view op, row;
  DType dtype;
  std::string_view reason;
};

struct Known {
  std::span<const Unsupported> unsupported = {};
  std::span<const ExpectedFailure> failures = {};
  // Rows, by name, that no case may run: they need a library which may not be there.
  std::set<std::string_view> optional = {};
};

// Keeps the account of one run.
class Account {
 public:
  explicit Account(const Known& known) : known_(known) {}

  // Whether some row took the call.
  void taken(std::string_view op, DType dtype, bool any, const std::string& what) {
    const Unsupported* const gap = find(op, dtype);
    if (gap == nullptr) {
      EXPECT_TRUE(any) << what << ": no kernel takes it, and the list of what is unsupported does not say so";
    } else {
      EXPECT_FALSE(any) << what << ": a kernel takes it, although the list calls it unsupported ("
                        << gap->reason << ")";
      missed_.insert(gap);
    }
  }

  // Runs `body`, whose failures are swallowed if the row is expected to fail.
  void row(std::string_view op, std::string_view row, DType dtype, const std::function<void()>& body) {
    for (const ExpectedFailure& failure : known_.failures) {
      if (failure.op != op || failure.row != row || failure.dtype != dtype) continue;
      testing::TestPartResultArray results;
      {
        const testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
        body();
      }
      for (int i = 0; i < results.size(); ++i)
        if (results.GetTestPartResult(i).failed()) failed_.insert(&failure);
      return;
    }
    body();
  }

  // Every entry has to have been met.
  void close() const {
    for (const Unsupported& gap : known_.unsupported)
      EXPECT_TRUE(missed_.contains(&gap)) << "listed as unsupported, but no case asks for it: " << gap.op
                                          << " in " << dtype_name(gap.dtype) << " (" << gap.reason << ")";
    for (const ExpectedFailure& failure : known_.failures)
      EXPECT_TRUE(failed_.contains(&failure))
          << "unexpected pass of '" << failure.row << "' of " << failure.op << " in "
          << dtype_name(failure.dtype) << " (" << failure.reason << ")";
  }

 private:
  const Unsupported* find(std::string_view op, DType dtype) const {
    for (const Unsupported& gap : known_.unsupported)
      if (gap.dtype == dtype && (gap.op == op || gap.op == "*") &&
          std::ranges::find(gap.but, op) == gap.but.end())
        return &gap;
    return nullptr;
  }
  const Known& known_;
  std::set<const Unsupported*> missed_;
  std::set<const ExpectedFailure*> failed_;
};

}  // namespace cairn::conformance
