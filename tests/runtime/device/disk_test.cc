// The disk tier: every byte at any place, past the page cache or through it, and each way a disk can fail.
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/device/host/file.h"
#include "tests/runtime/device/support.h"

namespace cairn::device {
namespace {

TEST(Disk, RoundTripKeepsEveryByteAndLeavesNothingBehind) {
  const std::string directory = ::testing::TempDir() + "cairn_disk_" + std::to_string(getpid());
  std::filesystem::create_directory(directory);
  DeviceOptions options;
  options.disk_directory = directory;
  const auto device = open_cpu(options);
  {
    constexpr int64_t kBytes = (3 << 20) + 17;
    const auto disk = device->allocate(Tier::kDisk, kBytes + 100),
               a = device->allocate(Tier::kDevice, kBytes), b = device->allocate(Tier::kDevice, kBytes);
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    auto* bytes = static_cast<unsigned char*>(a->address());
    for (int64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 31 >> 3);
    const auto queue = device->create_queue(Lane::kCopyOut);
    queue->copy({disk.get(), 100}, {a.get(), 0}, kBytes);
    queue->copy({b.get(), 0}, {disk.get(), 100}, kBytes);
    queue->synchronize();
    EXPECT_EQ(std::memcmp(a->address(), b->address(), kBytes), 0);
    queue->copy({disk.get(), 0}, {disk.get(), 100}, 10);
    EXPECT_EQ(code_of([&] { queue->synchronize(); }), Code::kUnsupported);
  }
  std::filesystem::remove_all(directory);
}

// A block of whole numbers, some of which a file has in its place.
TEST(Disk, BorrowedBytesAreReadFromTheirFileUntilTheyAreWritten) {
  const std::string path = ::testing::TempDir() + "cairn_lent_" + std::to_string(getpid());
  constexpr int64_t kBytes = (1 << 20) + 300, kFrom = 5000, kLent = (1 << 19) + 11, kAt = 77;
  std::vector<unsigned char> lent(kAt + kLent), all(kBytes, 1), found(kBytes);
  for (size_t i = 0; i < lent.size(); ++i) lent[i] = static_cast<unsigned char>(2 + i % 251);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char*>(lent.data()), std::ssize(lent));
  const host::DiskFault none;
  host::DiskFile disk(::testing::TempDir(), kBytes, none);
  const auto move = [&](bool writes, std::vector<unsigned char>& bytes, int64_t from, int64_t count) {
    disk.transfer(writes, reinterpret_cast<char*>(bytes.data()) + from, from, count);
  };
  move(true, all, 0, kBytes);
  disk.borrow(kFrom, kLent, std::make_shared<const InputFile>(path), kAt);
  std::copy(lent.begin() + kAt, lent.end(), all.begin() + kFrom);
  move(false, found, 0, kBytes);
  EXPECT_EQ(found, all);
  disk.own(kFrom + 4096, 4096);
  std::fill_n(all.begin() + kFrom + 4096, 4096, 9);
  move(true, all, kFrom + 4096, 4096);
  std::ofstream(path, std::ios::binary) << "another";  // which nothing reads any more
  std::fill(found.begin(), found.end(), 0);
  move(false, found, 0, kBytes);
  EXPECT_EQ(found, all);
  disk.borrow(0, 7, std::make_shared<const InputFile>(path), 0);
  std::ofstream(path, std::ios::app) << "!";
  std::string message;
  EXPECT_EQ(code_of([&] { move(false, found, 0, 100); }, &message), Code::kIo);
  EXPECT_NE(message.find("was written to while it was open"), std::string::npos) << message;
  std::filesystem::remove(path);
}

TEST(Disk, HowADirectoryIsReachedIsFoundOut) {
  EXPECT_NE(host::disk_access(::testing::TempDir()), host::DiskAccess::kNone);
  EXPECT_EQ(host::disk_access("/nonexistent-directory"), host::DiskAccess::kNone);
  struct statfs shared = {};
  if (statfs("/dev/shm", &shared) == 0 && shared.f_type == 0x01021994)  // tmpfs
    EXPECT_EQ(host::disk_access("/dev/shm"), host::DiskAccess::kMemory);
}

TEST(Disk, NoSpaceAndNoDirectoryAreIoErrorsThatNameThePlace) {
  std::string message;
  DeviceOptions options;
  options.disk_directory = "/nonexistent-directory";
  EXPECT_EQ(code_of([&] { open_cpu(options)->allocate(Tier::kDisk, 100); }, &message), Code::kIo);
  EXPECT_NE(message.find("/nonexistent-directory"), std::string::npos);
  options.disk_directory = ::testing::TempDir();
  const auto device = open_cpu(options);
  constexpr int64_t kHuge = int64_t{1} << 60;
  EXPECT_EQ(code_of([&] { device->allocate(Tier::kDisk, kHuge); }, &message), Code::kIo);
  EXPECT_NE(message.find(std::to_string(kHuge)), std::string::npos) << message;
  EXPECT_NE(message.find(options.disk_directory), std::string::npos) << message;
  EXPECT_NE(message.find("bytes are free"), std::string::npos) << message;
  EXPECT_EQ(device->ledger().count(Tier::kDisk).reserved_bytes, 0);
}

// Where files can be tried: one with a disk under it, as a rule, and one without (no O_DIRECT).
std::vector<std::string> directories() {
  std::vector<std::string> found = {::testing::TempDir()};
  if (access("/dev/shm", W_OK) == 0) found.push_back("/dev/shm");
  return found;
}

struct Bench {
  static constexpr int64_t kBytes = (12 << 20) + 333;
  explicit Bench(DeviceOptions options) : device(open_cpu(std::move(options))) {
    for (int64_t i = 0; i + 8 <= kBytes; i += 512) {  // no two sectors alike
      std::memset(at(i), static_cast<int>(i >> 9), static_cast<size_t>(std::min<int64_t>(512, kBytes - i)));
      std::memcpy(at(i), &i, 8);
    }
  }
  unsigned char* at(int64_t offset) { return static_cast<unsigned char*>(memory->address()) + offset; }
  std::shared_ptr<Device> device;
  std::unique_ptr<Block> memory = device->allocate(Tier::kDevice, 2 * kBytes),
                         disk = device->allocate(Tier::kDisk, kBytes);
  std::unique_ptr<Queue> out = device->create_queue(Lane::kCopyOut), in = device->create_queue(Lane::kCopyIn);

  // Out to `offset` and back into the second half.
  void there_and_back(int64_t from, int64_t offset, int64_t bytes) {
    out->copy({disk.get(), offset}, {memory.get(), from}, bytes);
    out->synchronize();
    in->copy({memory.get(), kBytes + from}, {disk.get(), offset}, bytes);
    in->synchronize();
    ASSERT_EQ(std::memcmp(at(from), at(kBytes + from), static_cast<size_t>(bytes)), 0)
        << bytes << " bytes at " << offset;
  }
};

TEST(Disk, KeepsBytesAtAnyPlaceOfAnySize) {
  for (const std::string& directory : directories()) {
    DeviceOptions options;
    options.disk_directory = directory;
    Bench bench(options);
    std::vector<unsigned char> model(Bench::kBytes);
    std::mt19937 random(7);
    for (int i = 0; i < 60; ++i) {
      const int64_t most = i % 3 == 0 ? Bench::kBytes : 20000;
      const int64_t bytes = 1 + static_cast<int64_t>(random()) % most;
      const int64_t unit = i % 2 == 0 ? 64 : 1;
      const int64_t offset = static_cast<int64_t>(random()) % (Bench::kBytes - bytes + 1) / unit * unit;
      const int64_t from = static_cast<int64_t>(random()) % (Bench::kBytes - bytes + 1) / unit * unit;
      bench.there_and_back(from, offset, bytes);
      std::memcpy(model.data() + offset, bench.at(from), static_cast<size_t>(bytes));
    }
    // Neighbours of what was written are as they were.
    bench.in->copy({bench.memory.get(), Bench::kBytes}, {bench.disk.get(), 0}, Bench::kBytes);
    bench.in->synchronize();
    EXPECT_EQ(std::memcmp(model.data(), bench.at(Bench::kBytes), model.size()), 0) << directory;
  }
}

TEST(Disk, ShortAndInterruptedTransfersGoOnWhereTheyStopped) {
  DeviceOptions options;
  std::atomic<uint32_t> calls{0};
  options.disk_fault = [&](bool, int64_t, int64_t bytes) -> int64_t {
    const uint32_t call = ++calls;
    if (call % 5 == 0) return -EINTR;
    if (call == 1) return -EINVAL;  // a file system that takes the flag, but no such transfer
    return call % 3 == 0 ? 1 + bytes / 3 : bytes;
  };
  Bench bench(options);
  bench.there_and_back(0, 0, Bench::kBytes);
  bench.there_and_back(100, 64 * 3, 5 << 20);
  bench.there_and_back(1, 4096, 4096);
  EXPECT_GT(calls, 30u);
}

TEST(Disk, FailuresAreIoErrorsThatSayWhatAndWhereAndEndInOrder) {
  for (const bool writing : {true, false})
    for (const int error : {EIO, ENOSPC, 0}) {  // 0: nothing is transferred
      for (const int after : {0, 3}) {
        std::atomic<int> calls{0};
        DeviceOptions options;
        options.disk_directory = ::testing::TempDir();
        options.disk_fault = [&](bool writes, int64_t, int64_t bytes) -> int64_t {
          return writes == writing && calls++ >= after ? -error : bytes;
        };
        Bench bench(options);
        const auto group = bench.device->create_group();
        const auto queue = bench.device->create_queue(Lane::kCopyOut, group);
        std::string message;
        queue->copy({bench.disk.get(), 0}, {bench.memory.get(), 0}, Bench::kBytes);
        queue->copy({bench.memory.get(), Bench::kBytes}, {bench.disk.get(), 0}, Bench::kBytes);
        try {
          queue->synchronize();
          FAIL() << "the failure was not seen";
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), Code::kIo);
          message = e.what();
          ASSERT_NE(e.fault(), nullptr);
          EXPECT_EQ(e.fault()->tier, Tier::kDisk);
        }
        EXPECT_NE(message.find(writing ? "writing" : "reading"), std::string::npos) << message;
        EXPECT_NE(message.find(options.disk_directory), std::string::npos) << message;
        // The file and its ring are as good as before.
        calls = -1000;
        bench.there_and_back(0, 0, Bench::kBytes);
      }
    }
}

TEST(Disk, NeighboursOnDiskTravelTogether) {
  std::atomic<int> transfers{0};
  DeviceOptions options;
  options.disk_fault = [&](bool, int64_t, int64_t bytes) {
    ++transfers;
    return bytes;
  };
  Bench bench(options);
  constexpr int kParts = 64;
  constexpr int64_t kPart = 8192;
  std::vector<Copy> out, in;
  for (int i = 0; i < kParts; ++i) {  // scattered in memory, in a row on disk
    const int64_t memory = (i * 37 % kParts) * 3 * kPart;
    out.push_back({{bench.disk.get(), i * kPart}, {bench.memory.get(), memory}, kPart});
    in.push_back({{bench.memory.get(), Bench::kBytes + memory}, {bench.disk.get(), i * kPart}, kPart});
  }
  bench.out->copy(out);
  bench.out->synchronize();
  EXPECT_EQ(transfers, 1);
  bench.in->copy(in);
  bench.in->synchronize();
  EXPECT_EQ(transfers, 2);
  for (int i = 0; i < kParts; ++i)
    EXPECT_EQ(std::memcmp(bench.at(i * 3 * kPart), bench.at(Bench::kBytes + i * 3 * kPart), kPart), 0) << i;
  const auto traffic = bench.out->take_traffic();
  EXPECT_EQ(traffic[2].bytes, kParts * kPart);
  EXPECT_GT(traffic[2].busy_seconds, 0);
  EXPECT_EQ(traffic[1].bytes, 0);
  EXPECT_EQ(bench.out->take_traffic()[2].bytes, 0) << "taken";
}

// Memory at the same place within a sector as the bytes on disk is read and written in place; other memory is copied.
TEST(Disk, BothKindsOfMemoryInOneCopyArriveWhole) {
  for (const std::string& directory : directories()) {
    DeviceOptions options;
    options.disk_directory = directory;
    Bench bench(options);
    constexpr int64_t kPart = 2 << 20, kPlaces[] = {0, 64, 512 * 3, 4096 + 100, 4096};
    constexpr int64_t kSecond = Bench::kBytes / kPageBytes * kPageBytes;
    std::vector<Copy> out, in;
    for (const int64_t place : kPlaces) {
      const auto i = static_cast<int64_t>(out.size());
      const int64_t at = i * kPart + place, disk = i * kPart + (i == 3 ? 7 : place), bytes = kPart - 5000;
      out.push_back({{bench.disk.get(), disk}, {bench.memory.get(), at}, bytes});
      in.push_back({{bench.memory.get(), kSecond + at}, {bench.disk.get(), disk}, bytes});
    }
    bench.out->copy(out);
    bench.out->synchronize();
    bench.in->copy(in);
    bench.in->synchronize();
    for (const Copy& copy : out)
      EXPECT_EQ(std::memcmp(bench.at(copy.from.offset), bench.at(kSecond + copy.from.offset),
                            static_cast<size_t>(copy.bytes)),
                0)
          << directory << ' ' << copy.from.offset;
  }
}

TEST(Disk, TheRingComesWithTheBlockAndStaysAsItIs) {
  const auto device = open_cpu();
  const auto staging = [&] { return device->ledger().count(Tier::kDisk).staging_bytes; };
  {
    const auto disk = device->allocate(Tier::kDisk, 64 << 20),
               memory = device->allocate(Tier::kDevice, 64 << 20);
    const int64_t ring = staging();
    EXPECT_GT(ring, 0);
    EXPECT_EQ(disk->staging_bytes(), ring);
    EXPECT_LE(ring, 32 << 20) << "of fixed size";
    const auto queue = device->create_queue(Lane::kCopyOut);
    queue->copy({disk.get(), 0}, {memory.get(), 0}, 64 << 20);
    queue->synchronize();
    EXPECT_EQ(staging(), ring);
    EXPECT_EQ(device->ledger().count(Tier::kHost).reserved_bytes, 0) << "no part of the host tier";
  }
  EXPECT_EQ(staging(), 0);
  EXPECT_EQ(device->ledger().count(Tier::kHost).pinned_bytes, 0);
}

TEST(DiskDeathTest, NothingStaysBehindAfterAKill) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string directory = ::testing::TempDir() + "cairn_disk_killed";
  std::filesystem::create_directory(directory);
  EXPECT_EXIT(
      {
        DeviceOptions options;
        options.disk_directory = directory;
        Bench bench(options);
        bench.out->copy({bench.disk.get(), 0}, {bench.memory.get(), 0}, Bench::kBytes);
        raise(SIGKILL);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace cairn::device
