#include "runtime/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

template <class Work>
Error thrown(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "nothing was thrown");
}

TEST(Error, CopiesSayTheSameAfterTheFirstIsGone) {
  std::optional<Error> first(
      Error(Code::kOverBudget, std::string(100, 'x'), {.requested_bytes = 7, .region = "h0"}));
  const Error copy = *first;
  first.reset();
  EXPECT_EQ(copy.code(), Code::kOverBudget);
  EXPECT_EQ(copy.what(), std::string(100, 'x'));
  ASSERT_NE(copy.fault(), nullptr);
  EXPECT_EQ(copy.fault()->requested_bytes, 7u);
  EXPECT_EQ(copy.fault()->region, "h0");
  EXPECT_EQ(Error(Code::kIo, "plain").fault(), nullptr);
}

TEST(Error, OfALiteral) {
  const Error error = Error::of_literal(Code::kOutOfMemory, "no memory");
  EXPECT_STREQ(Error(error).what(), "no memory");
  EXPECT_EQ(error.code(), Code::kOutOfMemory);
  EXPECT_EQ(error.fault(), nullptr);
}

TEST(Error, BytesAreNotBlamedForWantOfMemory) {
  const auto said_as = [](Code code) {
    return thrown([&] { fail_as(Code::kCorruptFile, Error(code, "cause"), "model: "); });
  };
  EXPECT_EQ(said_as(Code::kInvalidArgument).code(), Code::kCorruptFile);
  EXPECT_STREQ(said_as(Code::kInvalidArgument).what(), "model: cause");
  EXPECT_EQ(said_as(Code::kOutOfMemory).code(), Code::kOutOfMemory);
  EXPECT_EQ(code_of_errno(ENOMEM), Code::kOutOfMemory);
  EXPECT_EQ(code_of_errno(EIO), Code::kIo);
}

}  // namespace
}  // namespace cairn
