#include "runtime/base/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"

namespace cairn {
namespace {

// Whether this process comes to have so many threads: the system lists one for a moment after its end.
bool threads_become(size_t wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    const std::filesystem::directory_iterator all("/proc/self/task");
    if (static_cast<size_t>(std::distance(begin(all), end(all))) == wanted) return true;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

// What a loop is split into, and which thread ran what.
struct Split {
  std::vector<std::pair<int64_t, int64_t>> shares;
  explicit Split(int64_t count, int64_t grain) : shares(64) {
    parallel_for(count, grain, [&](int64_t begin, int64_t end, int share) {
      shares[static_cast<size_t>(share)] = {begin, end};
    });
  }
};

// Everything that follows from a split must not depend on who is there to run it.
TEST(ParallelFor, SplitsByTheNumberAskedForWhoeverRunsIt) {
  for (const int threads : {1, 2, 3, 7, 16})
    for (const int workers : {0, 1, 2, 15}) {
      ThreadTeam team(threads, workers);
      for (const int64_t count : {0, 1, 15, 16, 17, 100, 4096})
        for (const int64_t grain : {1, 16, 32}) {
          set_thread_count(threads);
          const Split alone(count, grain);
          set_thread_team(&team);
          const Split together(count, grain);
          set_thread_team(nullptr);
          set_thread_count(1);
          ASSERT_EQ(alone.shares, together.shares)
              << threads << ' ' << workers << ' ' << count << ' ' << grain;
          int64_t covered = 0;
          for (const auto& [begin, end] : alone.shares) {
            if (end == 0) continue;
            ASSERT_EQ(begin, covered) << "shares follow each other";
            ASSERT_EQ(begin % grain, 0);
            covered = end;
          }
          ASSERT_EQ(covered, count);
        }
    }
}

TEST(ParallelFor, LoopsWithinLoopsAreRunWhole) {
  ThreadTeam team(2);
  set_thread_team(&team);
  set_thread_count(2);
  std::atomic<int> calls{0};
  parallel_for(2, 1, [&](int64_t, int64_t, int) {
    parallel_for(100, 1, [&](int64_t begin, int64_t end, int share) {
      EXPECT_EQ(end - begin, 100);
      EXPECT_EQ(share, 0);
      ++calls;
    });
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(thread_count(), 2);
  set_thread_team(nullptr);
  set_thread_count(1);
}

TEST(ParallelFor, RunsOnOneThreadUnlessToldOtherwise) {
  std::thread([] { EXPECT_EQ(thread_count(), 1); }).join();
  set_thread_count(-3);
  EXPECT_EQ(thread_count(), 1);
}

TEST(ThreadTeam, RunsEveryShareOnceLoopAfterLoop) {
  constexpr int kShares = 4;
  ThreadTeam team(kShares);
  set_thread_team(&team);
  set_thread_count(kShares);
  std::vector<int64_t> sums(kShares);
  int64_t expected = 0;
  for (int loop = 0; loop < 20000; ++loop) {
    parallel_for(kShares, 1, [&](int64_t begin, int64_t, int share) {
      sums[static_cast<size_t>(share)] += begin + loop;
    });
    for (int s = 0; s < kShares; ++s) expected += s + loop;
  }
  set_thread_team(nullptr);
  set_thread_count(1);
  int64_t sum = 0;
  for (const int64_t part : sums) sum += part;
  EXPECT_EQ(sum, expected);
}

// Shares that wait for each other end only if as many threads run them, asleep or not.
TEST(ThreadTeam, WakesItsWorkers) {
  constexpr int kShares = 3;
  ThreadTeam team(kShares);
  set_thread_team(&team);
  set_thread_count(kShares);
  for (const int pause_ms : {0, 1, 20}) {
    std::atomic<int> here{0};
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    parallel_for(kShares, 1, [&](int64_t, int64_t, int) {
      ++here;
      while (here.load() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    });
    EXPECT_EQ(here, kShares);
  }
  set_thread_team(nullptr);
  set_thread_count(1);
}

TEST(ThreadTeam, LanesTakeTurns) {
  ThreadTeam team(3);
  constexpr int kLoops = 3000;
  std::atomic<int> inside{0};
  std::vector<std::thread> lanes;
  std::vector<int64_t> done(4);
  for (size_t lane = 0; lane < done.size(); ++lane)
    lanes.emplace_back([&, lane] {
      set_thread_team(&team);
      set_thread_count(3);
      for (int loop = 0; loop < kLoops; ++loop) {
        std::atomic<int64_t> sum{0};
        parallel_for(3, 1, [&](int64_t begin, int64_t end, int) {
          EXPECT_LE(++inside, 3) << "shares of two loops at once";
          sum += end - begin;
          --inside;
        });
        done[lane] += sum;
      }
    });
  for (std::thread& lane : lanes) lane.join();
  for (const int64_t sum : done) EXPECT_EQ(sum, 3 * kLoops);
}

TEST(ThreadTeam, EndsItsThreads) {
  // Its threads, a sanitizer's included; other tests joined theirs long before.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::filesystem::directory_iterator all("/proc/self/task");
  const auto before = static_cast<size_t>(std::distance(begin(all), end(all)));
  for (int round = 0; round < 50; ++round) {
    const ThreadTeam team(5);
    EXPECT_TRUE(threads_become(before + 4));
  }
  EXPECT_TRUE(threads_become(before));
}

}  // namespace
}  // namespace cairn
