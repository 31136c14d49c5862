// kill -9 in the middle of saves: whenever it comes, what lies there loads and continues.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "runtime/io/checkpoint.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

// Saves for ever: over the same directory and as new ones. Tells through `ready` that it began.
[[noreturn]] void child(const fs::path& root, int ready) {
  test::Rig rig;
  // A removal that was killed half way leaves a folder that is no checkpoint; a save refuses to replace such
  // a thing.
  if (fs::exists(root / "runs"))
    for (const auto& entry : fs::directory_iterator(root / "runs")) {
      try {
        Checkpoint whole(entry.path());
      } catch (const Error&) {
        fs::remove_all(entry.path());
      }
    }
  for (uint64_t index = 0;; ++index) {
    rig.train(index, index + 1);
    save(*rig.stepper, root / "latest", {});
    save(*rig.stepper, root / "runs" / cat("step-", index), {});
    if (index > 3) fs::remove_all(root / "runs" / cat("step-", index - 3));
    if (index == 1 && ::write(ready, "x", 1) != 1) ::_exit(1);
  }
}

TEST(Kill, WhateverIsLeftIsWhole) {
  const test::Scratch scratch;
  std::mt19937 random(4);
  // The same run without interruptions: the digest after each micro-batch.
  test::Rig reference;
  std::vector<std::string> digests = {reference.digest()};
  test::Rig probe;
  uint64_t most = 0;
  for (int round = 0; round < 60; ++round) {
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
    ::usleep(random() % 40000);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));

    for (const fs::path& path : {scratch / "latest", newest_checkpoint(scratch / "runs")}) {
      Checkpoint(path).restore(*probe.stepper);  // checks every digest
      const step::State state = probe.stepper->state();
      const uint64_t done = state.step * 3 + state.micro;
      ASSERT_GT(done, 0u);
      while (digests.size() <= done) {
        reference.train(digests.size() - 1, digests.size());
        digests.push_back(reference.digest());
      }
      ASSERT_EQ(probe.digest(), digests[done]);
      most = std::max(most, done);
    }
    // Every directory that carries a checkpoint's name is a whole one (a removal under way excepted: the
    // oldest).
    EXPECT_NO_THROW(Checkpoint(scratch / "latest"));
  }
  EXPECT_GT(most, 2u);
  test::Rig rig;
  save(*rig.stepper, scratch / "latest", {});  // the next save sweeps up what the dead ones left
  for (const auto& entry : fs::directory_iterator(scratch.path()))
    EXPECT_TRUE(entry.path().filename() == "latest" || entry.path().filename() == "runs") << entry.path();
}

}  // namespace
}  // namespace cairn::io
