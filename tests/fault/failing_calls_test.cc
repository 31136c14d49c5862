// Saves with a file system that fails. The system calls under durable writes are replaced in this program:
// the n-th one fails, for every n, or writes come back short or interrupted.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "runtime/data/data.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace {

struct Injection {
  long fail_at = -1;  // which call from now on fails; -1: none
  int error = EIO;
  long calls = 0;
  size_t longest_write = ~size_t{0};  // writes come back after so many bytes
  bool interrupt = false;             // every second call is interrupted first
};
Injection injection;
bool armed = false;  // only while a save runs

// Whether this call is to fail; sets errno.
bool fails(bool may_interrupt) {
  if (!armed) return false;
  const long call = injection.calls++;
  if (call == injection.fail_at) {
    errno = injection.error;
    return true;
  }
  if (injection.interrupt && may_interrupt && call % 2 == 0) {
    errno = EINTR;
    return true;
  }
  return false;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

ssize_t write_piece(const char* name, int fd, const void* data, size_t bytes, off_t offset) {
  if (fails(true)) return -1;
  if (armed) bytes = std::min(bytes, injection.longest_write);
  return next<ssize_t (*)(int, const void*, size_t, off_t)>(name)(fd, data, bytes, offset);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return write_piece("pwrite", fd, data, bytes, offset);
}
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* data, size_t bytes,
                                                        off64_t offset) {
  return write_piece("pwrite64", fd, data, bytes, offset);
}
__attribute__((visibility("default"))) int fsync(int fd) {
  return fails(true) ? -1 : next<int (*)(int)>("fsync")(fd);
}
__attribute__((visibility("default"))) int mkdir(const char* path, mode_t mode) noexcept {
  return fails(false) ? -1 : next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}
__attribute__((visibility("default"))) int rename(const char* from, const char* to) noexcept {
  return fails(false) ? -1 : next<int (*)(const char*, const char*)>("rename")(from, to);
}
__attribute__((visibility("default"))) int renameat2(int a, const char* from, int b, const char* to,
                                                     unsigned flags) noexcept {
  return fails(false) ? -1
                      : next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(a, from, b,
                                                                                                 to, flags);
}
}

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

struct Arm {
  explicit Arm(const Injection& with) {
    injection = with;
    armed = true;
  }
  ~Arm() { armed = false; }
};

size_t entries(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

// Opens the checkpoint, restores it and says which step it is of; every digest is checked by that.
uint64_t step_of(const fs::path& path, test::Rig& probe) {
  Checkpoint(path).restore(*probe.stepper);
  return probe.stepper->state().step;
}

TEST(FailingCalls, EveryFailureLeavesAWholeCheckpoint) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  rig.train(0, 3);
  save(*rig.stepper, scratch / "saved", {});
  rig.train(3, 6);
  for (const int error : {EIO, ENOSPC, EROFS}) {
    bool done = false;
    for (long n = 0; !done; ++n) {
      ASSERT_LT(n, 1000);
      const auto result = [&] {
        const Arm arm({.fail_at = n, .error = error});
        return test::failure([&] { save(*rig.stepper, scratch / "saved", {}); });
      }();
      done = injection.calls <= n;  // it never came to the n-th call
      if (done) {
        EXPECT_EQ(result.code, Code::kOk) << result.message;
        EXPECT_GT(n, 8);
        EXPECT_EQ(step_of(scratch / "saved", probe), 2u);
        // Back to the old checkpoint for the next kind of error.
        test::Rig old;
        old.train(0, 3);
        save(*old.stepper, scratch / "saved", {});
        continue;
      }
      EXPECT_EQ(result.code, Code::kIo) << "call " << n << ": " << result.message;
      EXPECT_NE(result.message.find(std::generic_category().message(error)), std::string::npos)
          << result.message;
      EXPECT_NE(result.message.find(scratch.path().string()), std::string::npos) << result.message;
      const uint64_t step = step_of(scratch / "saved", probe);
      EXPECT_TRUE(step == 1 || step == 2) << "call " << n;
      if (step == 2) {  // only the flush after the exchange may fail with the new one in place
        test::Rig old;
        old.train(0, 3);
        save(*old.stepper, scratch / "saved", {});
      }
      EXPECT_EQ(entries(scratch.path()), 1u) << "call " << n;
    }
  }
}

TEST(FailingCalls, ANewDirectoryIsThereWholeOrNotAtAll) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  for (long n = 0;; ++n) {
    ASSERT_LT(n, 1000);
    const auto result = [&] {
      const Arm arm({.fail_at = n});
      return test::failure([&] { save(*rig.stepper, scratch / "runs" / "step-1", {}); });
    }();
    if (result.code == Code::kOk) break;
    EXPECT_EQ(result.code, Code::kIo);
    if (fs::exists(scratch / "runs" / "step-1")) {
      EXPECT_EQ(step_of(scratch / "runs" / "step-1", probe), 0u);
    }
    fs::remove_all(scratch / "runs");
  }
  EXPECT_EQ(step_of(scratch / "runs" / "step-1", probe), 0u);
}

TEST(FailingCalls, ShortAndInterruptedWritesAreContinued) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  rig.train(0, 4);
  for (const size_t longest : {size_t{1}, size_t{7}, ~size_t{0}}) {
    {
      const Arm arm({.longest_write = longest, .interrupt = true});
      save(*rig.stepper, scratch / "saved", {});
    }
    EXPECT_EQ(step_of(scratch / "saved", probe), 1u);
    EXPECT_EQ(probe.digest(), rig.digest());
  }
}

TEST(FailingCalls, SingleFilesAreWholeOrUntouched) {
  const test::Scratch scratch;
  test::Rig rig;
  const auto text = scratch.put("text", "the way back");
  const std::function<void(const fs::path&)> kWriters[] = {
      [&](const fs::path& path) { export_safetensors(*rig.session, {}, path); },
      [&](const fs::path& path) { data::write_tokens(text, *data::bytes_tokenizer(), path); },
      [&](const fs::path& path) { write_file_durably(path, test::bytes_of("new")); },
  };
  for (const auto& write : kWriters)
    for (long n = 0;; ++n) {
      ASSERT_LT(n, 100);
      scratch.put("file", "old");
      const auto result = [&] {
        const Arm arm({.fail_at = n, .error = ENOSPC});
        return test::failure([&] { write(scratch / "file"); });
      }();
      if (injection.calls <= n) {
        EXPECT_EQ(result.code, Code::kOk);
        EXPECT_NE(test::slurp(scratch / "file"), "old");
        break;
      }
      EXPECT_EQ(result.code, Code::kIo);
      // Only the flush of the folder comes after the rename.
      EXPECT_TRUE(test::slurp(scratch / "file") == "old" || n + 1 == injection.calls) << n;
      EXPECT_EQ(entries(scratch.path()), 2u);
    }
}

TEST(FailingCalls, AFileSizeLimitIsAnError) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  rig.train(0, 3);
  save(*rig.stepper, scratch / "saved", {});
  rig.train(3, 6);
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = test::failure([&] { save(*rig.stepper, scratch / "saved", {}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(result.code, Code::kIo);
  EXPECT_NE(result.message.find("tensors.bin"), std::string::npos) << result.message;
  EXPECT_EQ(step_of(scratch / "saved", probe), 1u);
}

TEST(FailingCalls, AFullDiskIsAnErrorBeforeAnythingIsWritten) {
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
  EXPECT_EQ(step_of(disk / "saved", probe), 1u);
  EXPECT_EQ(entries(disk), before);
}

}  // namespace
}  // namespace cairn::io
