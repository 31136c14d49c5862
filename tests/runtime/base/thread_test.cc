#include "runtime/base/os/thread.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/team.h"
#include "tests/support/few_threads.h"

namespace cairn {
namespace {

struct Seen {
  char name[16] = {};
  sigset_t blocked;
  void look() {
    prctl(PR_GET_NAME, name, 0, 0, 0);
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  }
};

TEST(Thread, HasItsNameAndLeavesSignalsToTheHost) {
  Seen seen;
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  Thread thread;
  EXPECT_FALSE(thread.started());
  thread.start<&Seen::look>("cairn/compute", &seen);
  EXPECT_TRUE(thread.started());
  thread.join();
  EXPECT_FALSE(thread.started());
  EXPECT_STREQ(seen.name, "cairn/compute");
  for (const int host : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF, SIGPIPE})
    EXPECT_TRUE(sigismember(&seen.blocked, host)) << strsignal(host);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
    EXPECT_FALSE(sigismember(&seen.blocked, own)) << strsignal(own);
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << "the caller's own mask";
}

TEST(Thread, RoundsToNearestWhateverItsMakerDoes) {
  int mode = -1;
  Thread thread;
  std::fesetround(FE_UPWARD);
  thread.start(
      "cairn/compute", [](void* seen) { *static_cast<int*>(seen) = std::fegetround(); }, &mode);
  thread.join();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(mode, FE_TONEAREST);
}

TEST(Thread, LongNamesAreCut) {
  Seen seen;
  Thread thread;
  thread.start<&Seen::look>("cairn/a-name-beyond-fifteen", &seen);
  thread.join();
  EXPECT_STREQ(seen.name, "cairn/a-name-be");
}

TEST(Thread, NoneToBeHadIsAnErrorWithTheRemedy) {
  Seen seen;
  Thread thread;
  const test::FewThreads none(0);
  try {
    thread.start<&Seen::look>("cairn/compute", &seen);
    FAIL() << "a thread was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    for (const char* part : {"cairn/compute", "Resource temporarily unavailable", "RLIMIT_NPROC"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_FALSE(thread.started());
}

TEST(ThreadTeam, TooFewThreadsIsAnErrorThatSaysHowMany) {
  for (const long allowed : {0L, 1L, 6L}) {
    const test::FewThreads few(allowed);
    try {
      const ThreadTeam team(8);
      FAIL() << "eight threads of " << allowed + 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kOutOfMemory);
      for (const std::string& part : {std::string("cannot start 8 compute threads"),
                                      cat("only ", allowed + 1, ":"), std::string("fewer threads")})
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  const test::FewThreads enough(7);
  const ThreadTeam team(8);
}

TEST(Spread, CallsEveryItemOnceWithAnyNumberOfThreads) {
  for (const int allowed : {0, 1, 2, 100})
    for (const int threads : {1, 2, 7, 1000})
      for (const int64_t count : {0, 1, 5, 300}) {
        const test::FewThreads few(allowed);
        std::array<std::atomic<int>, 300> calls{};
        spread("cairn/test", count, threads, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
        for (int64_t i = 0; i < 300; ++i)
          ASSERT_EQ(calls[static_cast<size_t>(i)], i < count ? 1 : 0) << i << " of " << count;
      }
}

}  // namespace
}  // namespace cairn
