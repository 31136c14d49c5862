// What the boundary makes of exceptions, whoever throws them.
#include "capi/src/boundary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace cairn::capi {
namespace {

struct Caught {
  explicit Caught(auto thrown) {
    status = guard(error, [&] { throw thrown; });
    EXPECT_EQ(cairn_error_status(error), status);
    has_fault = cairn_error_memory_fault(error, &fault) == CAIRN_STATUS_OK;
  }
  ~Caught() { cairn_error_release(error); }
  std::string message() const { return cairn_error_message(error); }

  cairn_error_t* error = cairn_error_create();
  cairn_status_t status;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  bool has_fault;
};

TEST(Boundary, EveryCodeIsItsStatus) {
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    const Caught caught(Error(static_cast<Code>(code), "what happened"));
    EXPECT_EQ(caught.status, code);
    EXPECT_EQ(caught.message(), "what happened");
    EXPECT_EQ(caught.has_fault, code == CAIRN_STATUS_OUT_OF_MEMORY);
  }
}

TEST(Boundary, FaultsTravelWhole) {
  const Caught caught(Error(Code::kOutOfMemory, "no",
                            {.requested_bytes = 1,
                             .in_use_bytes = 2,
                             .budget_bytes = 3,
                             .smallest_budget_bytes = 4,
                             .tier = Tier::kDisk,
                             .region = std::string(500, 'r')}));
  ASSERT_TRUE(caught.has_fault);
  EXPECT_EQ(caught.fault.requested_bytes, 1u);
  EXPECT_EQ(caught.fault.in_use_bytes, 2u);
  EXPECT_EQ(caught.fault.budget_bytes, 3u);
  EXPECT_EQ(caught.fault.smallest_budget_bytes, 4u);
  EXPECT_EQ(caught.fault.tier, static_cast<uint32_t>(CAIRN_TIER_DISK));
  EXPECT_EQ(std::string(caught.fault.region), std::string(127, 'r'));
}

TEST(Boundary, ForeignExceptions) {
  EXPECT_EQ(Caught(std::bad_alloc()).status, CAIRN_STATUS_OUT_OF_MEMORY);
  EXPECT_TRUE(Caught(std::bad_alloc()).has_fault);
  const Caught file(std::filesystem::filesystem_error("cannot read", "/some/path",
                                                      std::make_error_code(std::errc::permission_denied)));
  EXPECT_EQ(file.status, CAIRN_STATUS_IO);
  EXPECT_NE(file.message().find("/some/path"), std::string::npos);
  EXPECT_EQ(Caught(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))).status,
            CAIRN_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(Caught(std::system_error(std::make_error_code(std::errc::bad_address))).status,
            CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(Caught(std::logic_error("oops")).status, CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(Caught(std::logic_error("oops")).message(), "oops");
  EXPECT_EQ(Caught(42).status, CAIRN_STATUS_INTERNAL);
}

TEST(Boundary, WorksWithoutAnErrorObject) {
  EXPECT_EQ(guard(nullptr, [] { fail(Code::kIo, "unheard"); }), CAIRN_STATUS_IO);
  EXPECT_EQ(guard(nullptr, [] {}), CAIRN_STATUS_OK);
}

}  // namespace
}  // namespace cairn::capi
