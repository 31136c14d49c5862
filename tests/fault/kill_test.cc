// kill -9 in the middle of saves, at every system call and at any moment: what lies there loads, and
// continuing gives the bits of a run that was never killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <random>

#include "runtime/io/checkpoint.h"
#include "tests/fault/calls.h"
#include "tests/fault/run.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;
using test::Under;

// Runs `work` in a child. True: it was killed; false: it came to its end.
bool killed(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  EXPECT_GE(pid, 0);
  if (pid == 0) {
    try {
      work();
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the child failed";
  return WIFSIGNALED(status);
}

TEST(Kill, AtEverySystemCallOfASave) {
  test::Rig probe;
  test::Reference reference;
  int64_t all = 0, taken = 0;
  for (const test::Scene& scene : test::kScenes) {
    test::Stage stage(scene);
    stage.set();
    const long calls = [&] {
      test::Rig rig;
      rig.train(0, test::kNew);
      const Under counted({});
      stage.save(rig);
      return Under::made();
    }();
    for (long n = 0; n <= calls; ++n) {
      if (!support::taken(all++, 12 * support::stride(3))) continue;
      ++taken;
      stage.set();
      const bool died = killed([&] {
        test::Rig rig;
        rig.train(0, test::kNew);
        const Under under({.at = n, .kill = true});
        stage.save(rig);
      });
      const std::string where = cat(scene.name, ", call ", n);
      const uint64_t found = stage.found(stage.root(), probe, reference);
      ASSERT_TRUE(found == test::kNew || found == (scene.older ? test::kOld : 0)) << where;
      ASSERT_EQ(died, n < calls) << where;
      if (!died) {
        EXPECT_EQ(found, test::kNew) << where;
      }
      // It goes on from there as if nothing had been.
      if (found == 0) probe = test::Rig();
      probe.train(found, test::kNew + 2);
      ASSERT_EQ(probe.digest(), reference.after(test::kNew + 2)) << where;
      const Under quick({});
      stage.save(probe);
      EXPECT_EQ(stage.disorder(stage.root()), "") << where;
    }
  }
  std::cout << "[    KILLS ] " << taken << " of " << all << std::endl;
}

// Saves for ever: over the same directory and as new ones, and removes old ones. Tells through `ready` that
// it began.
[[noreturn]] void child(const fs::path& root, int ready) {
  test::Rig rig;
  const Under quick({});
  for (uint64_t index = 0;; ++index) {
    rig.train(index, index + 1);
    save(*rig.stepper, root / "latest", {});
    save(*rig.stepper, root / "runs" / cat("step-", index), {});
    if (index > 3) remove_checkpoint(root / "runs" / cat("step-", index - 3));
    if (index == 1 && ::write(ready, "x", 1) != 1) ::_exit(1);
  }
}

TEST(Kill, WhateverIsLeftIsWhole) {
  const test::Scratch scratch;
  std::mt19937 random(4);
  test::Rig probe;
  test::Reference reference;
  uint64_t most = 0;
  int kills = 0;
  for (int round = 0; round < 1000; ++round) {
    const unsigned wait = random() % 20000;
    if (!support::taken(round, 25)) continue;
    ++kills;
    fs::remove_all(scratch / "runs");  // a new run; `latest` goes on from whatever the last one left
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      try {
        child(scratch.path(), pipe[1]);
      } catch (...) {
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    char byte;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1) << "the child failed";
    ::close(pipe[0]);
    ::usleep(wait);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));

    // Every directory that has a checkpoint's name is a whole one, even while it was being removed.
    std::vector<fs::path> there = {scratch / "latest"};
    for (const auto& entry : fs::directory_iterator(scratch / "runs"))
      if (entry.path().filename().string().starts_with("step-")) there.push_back(entry.path());
    for (const fs::path& path : there) {
      Checkpoint(path).restore(*probe.stepper);  // checks every digest
      const step::State state = probe.stepper->state();
      const uint64_t done = state.step * 3 + state.micro;
      ASSERT_GT(done, 0u);
      ASSERT_EQ(probe.digest(), reference.after(done)) << path;
      most = std::max(most, done);
    }
    Checkpoint(newest_checkpoint(scratch / "runs")).restore(*probe.stepper);
    const step::State state = probe.stepper->state();
    const uint64_t done = state.step * 3 + state.micro;
    probe.train(done, done + 2);
    ASSERT_EQ(probe.digest(), reference.after(done + 2));
  }
  EXPECT_GT(most, 2u);
  const Under quick({});
  test::Rig rig;
  save(*rig.stepper, scratch / "latest", {});  // the next save sweeps up what the dead ones left
  save(*rig.stepper, scratch / "runs" / "step-0", {});
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".cairn")) << entry.path();
  for (const auto& entry : fs::directory_iterator(scratch.path()))
    EXPECT_TRUE(entry.path().filename() == "latest" || entry.path().filename() == "runs") << entry.path();
  std::cout << "[    KILLS ] " << kills << std::endl;
}

}  // namespace
}  // namespace cairn::io
