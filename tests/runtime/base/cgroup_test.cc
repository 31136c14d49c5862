#include "runtime/base/os/cgroup.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/text/cat.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

// A tree with a /proc and mount points of its own.
class MemoryLimits : public testing::Test {
 protected:
  ~MemoryLimits() override { fs::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  // Of this machine, as systemd mounts version 2.
  void unified(const std::string& own, const std::string& shown = "/") {
    file("/proc/self/cgroup", "0::" + own + "\n");
    file("/proc/self/mountinfo",
         "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
         "30 22 0:26 " +
             shown + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  int64_t limit() { return memory_limit(root_).bytes; }
  std::string by() { return memory_limit(root_).by; }

  const std::string root_ = (fs::temp_directory_path() / cat("cairn-limits-", ::getpid())).string();
  const int64_t machine_ = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
};

TEST_F(MemoryLimits, WithoutGroupsAreTheMachines) {
  EXPECT_EQ(limit(), machine_);
  EXPECT_EQ(by(), "");
  EXPECT_EQ(available_memory(root_), kNoMemoryLimit);
  file("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(available_memory(root_), 1024000);
}

TEST_F(MemoryLimits, OfTheOwnGroupAndThoseAbove) {
  unified("/system.slice/job.service");
  file("/sys/fs/cgroup/system.slice/job.service/memory.max", "max\n");
  EXPECT_EQ(limit(), machine_);
  file("/sys/fs/cgroup/system.slice/job.service/memory.max", "300000000\n");
  EXPECT_EQ(limit(), 300000000);
  EXPECT_EQ(by(), root_ + "/sys/fs/cgroup/system.slice/job.service/memory.max");
  file("/sys/fs/cgroup/system.slice/job.service/memory.high", "250000000\n");
  EXPECT_EQ(limit(), 250000000);
  file("/sys/fs/cgroup/system.slice/memory.max", "200000000\n");
  EXPECT_EQ(limit(), 200000000);
  file("/sys/fs/cgroup/memory.max", "100000000\n");  // a container's, seen from inside
  EXPECT_EQ(limit(), 100000000);
  file("/sys/fs/cgroup/other.slice/memory.max", "1\n");
  EXPECT_EQ(limit(), 100000000);
}

TEST_F(MemoryLimits, OfAContainersMountPoint) {
  // Without a namespace of its own the path is the host's, and the mount point shows the container's group.
  unified("/docker/abc/job", "/docker/abc");
  file("/sys/fs/cgroup/memory.max", "200000000\n");
  file("/sys/fs/cgroup/job/memory.max", "100000000\n");
  EXPECT_EQ(limit(), 100000000);
  // A group that the mount point does not show: what it shows counts.
  unified("/../elsewhere", "/docker/abc");
  EXPECT_EQ(limit(), 200000000);
  // A name that merely begins alike is another one.
  unified("/docker/abcd", "/docker/abc");
  file("/sys/fs/cgroup/d/memory.max", "1\n");
  EXPECT_EQ(limit(), 200000000);
}

TEST_F(MemoryLimits, OfVersionOne) {
  file("/proc/self/cgroup", "9:name=systemd:/\n5:cpu,cpuacct:/\n4:memory:/outer/inner\n0::/\n");
  file("/proc/self/mountinfo",
       "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
       "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
       "35 31 0:32 / /sys/fs/cgroup/mem\\040ory rw,relatime - cgroup cgroup rw,memory\n"
       "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  const std::string groups = "/sys/fs/cgroup/mem ory";
  file(groups + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), machine_);
  file(groups + "/outer/inner/memory.limit_in_bytes", "300000000\n");
  EXPECT_EQ(limit(), 300000000);
  file(groups + "/outer/memory.limit_in_bytes", "200000000\n");
  EXPECT_EQ(limit(), 200000000);
  file(groups + "/outer/inner/memory.stat", "cache 5\nhierarchical_memory_limit 150000000\n");
  EXPECT_EQ(limit(), 150000000);                             // of a group above that is not shown
  file("/sys/fs/cgroup/unified/memory.max", "100000000\n");  // both kinds at once
  EXPECT_EQ(limit(), 100000000);
}

TEST_F(MemoryLimits, WhatIsStillAvailable) {
  unified("/a/b");
  file("/proc/meminfo", "MemAvailable: 1000000 kB\n");
  file("/sys/fs/cgroup/a/b/memory.max", "max\n");
  file("/sys/fs/cgroup/a/b/memory.current", "50000\n");
  EXPECT_EQ(available_memory(root_), 1024000000);
  file("/sys/fs/cgroup/a/memory.max", "100000\n");
  file("/sys/fs/cgroup/a/memory.current", "90000\n");
  file("/sys/fs/cgroup/a/memory.stat", "anon 70000\nactive_file 5000\ninactive_file 1000\n");
  EXPECT_EQ(available_memory(root_), 16000);
  file("/sys/fs/cgroup/a/b/memory.high", "55000\n");
  EXPECT_EQ(available_memory(root_), 5000);
  file("/sys/fs/cgroup/a/b/memory.current", "60000\n");  // beyond it already
  EXPECT_EQ(available_memory(root_), 0);
}

TEST_F(MemoryLimits, OfTheProcess) {
  rlimit before = {}, less = {};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  less = before;
  less.rlim_cur = static_cast<rlim_t>(machine_ / 2);
  if (before.rlim_max < less.rlim_cur) GTEST_SKIP() << "limited already";
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &less), 0);
  const MemoryLimit found = memory_limit(root_);
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_EQ(found.bytes, machine_ / 2);
  EXPECT_EQ(found.by, "RLIMIT_DATA");
}

}  // namespace
}  // namespace cairn
