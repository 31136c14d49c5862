#include "runtime/costs/probe/host_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cairn::costs {
namespace {

namespace fs = std::filesystem;

TEST(HostMemory, IsMeasuredOnceAndKept) {
  std::string path = (fs::temp_directory_path() / "cairn-host-XXXXXX").string();
  const fs::path folder = ::mkdtemp(path.data());
  // Each name of the directory is asked as by a process that was not there before.
  const auto ask = [&](const char* again, std::string_view how = kRatesCache) {
    return find_host_memory_rate({.threads = 1,
                                  .how = std::string(how),
                                  .kept_in = (folder / "cairn").string() + again,
                                  .most_waiting = 1e9});
  };
  EXPECT_EQ(ask("", kRatesModel), 0);
  const double first = ask("");
  EXPECT_GT(first, 1e8);
  EXPECT_LT(first, 1e13);
  fs::path kept;
  for (const auto& file : fs::directory_iterator(folder / "cairn")) kept = file.path();
  EXPECT_EQ(kept.filename().string().substr(0, 12), "host-memory-");
  EXPECT_EQ(ask("/."), first) << "another process measured again";
  std::ofstream(kept) << "{\"format\": \"cairn.host-memory/1\", \"bytes_per_second\": 12345}";
  EXPECT_EQ(ask("/./."), 12345);
  EXPECT_NE(ask("/././.", kRatesMeasure), 12345);
  for (const char* broken : {"", "{}", "{\"format\": \"cairn.host-memory/1\", \"bytes_per_second\": -1}"}) {
    std::ofstream(kept) << broken;
    static std::string again = "/./././.";
    EXPECT_GT(ask((again += "/.").c_str()), 1e8) << broken;
  }
  fs::remove_all(folder);
}

// What was measured while others had the processors would make every later plan think the memory slow.
TEST(HostMemory, IsNotKeptWhereThreadsWaited) {
  std::string path = (fs::temp_directory_path() / "cairn-host-XXXXXX").string();
  const fs::path folder = ::mkdtemp(path.data());
  EXPECT_GT(find_host_memory_rate({.threads = 1, .kept_in = folder.string(), .most_waiting = -1}), 1e8);
  for (const auto& file : fs::directory_iterator(folder))
    EXPECT_NE(file.path().filename().string().substr(0, 12), "host-memory-");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace cairn::costs
