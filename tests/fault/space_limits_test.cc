// The operating system's limits on space: a file that may not grow, a disk that is full. Either is an error with a
// cause, and what was saved before is whole.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/fault/run.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

size_t entries(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

// In a process of its own, where the signal has its default effect: the end.
TEST(SpaceLimits, AFileSizeLimitIsAnErrorAndNoSignal) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  rig.train(0, 3);
  save(*rig.stepper, scratch / "saved", {});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const struct rlimit small = {1000, 1000};
    test::Rig mine;
    mine.train(0, 6);
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    const auto result = test::failure([&] { save(*mine.stepper, scratch / "saved", {}); });
    const auto file = test::failure([&] { export_safetensors(*mine.session, {}, scratch / "weights"); });
    sigset_t pending;
    ::sigpending(&pending);
    const bool right = result.code == Code::kIo && file.code == Code::kIo &&
                       result.message.find(kManifestName) != std::string::npos &&
                       ::sigismember(&pending, SIGXFSZ) == 0;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Checkpoint(scratch / "saved").restore(*probe.stepper);
  EXPECT_EQ(probe.stepper->state().step, 1u);
  EXPECT_EQ(entries(scratch.path()), 1u);
}

TEST(SpaceLimits, AFullDiskIsAnErrorBeforeAnythingIsWritten) {
  const test::Scratch scratch;
  const fs::path disk = scratch / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128k") != 0)
    GTEST_SKIP() << "may not mount a small disk here";
  struct Unmount {
    fs::path path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } unmount{disk};
  test::Rig rig, probe;
  rig.train(0, 3);
  save(*rig.stepper, disk / "saved", {});
  rig.train(3, 6);
  for (int i = 0; fs::space(disk).available >= 8192; ++i)
    scratch.put("disk/fill" + std::to_string(i), std::string(4096, 'x'));
  const size_t before = entries(disk);
  const auto result = test::failure([&] { save(*rig.stepper, disk / "saved", {}); });
  EXPECT_EQ(result.code, Code::kIo);
  EXPECT_NE(result.message.find("are free"), std::string::npos) << result.message;
  Checkpoint(disk / "saved").restore(*probe.stepper);
  EXPECT_EQ(probe.stepper->state().step, 1u);
  EXPECT_EQ(entries(disk), before);
}
}  // namespace
}  // namespace cairn::io
