#include "bench/layout/minimalloc_csv.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"

namespace cairn::bench {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_minimalloc_csv(text, "x.csv");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.what();
  }
  return "accepted";
}

void expect_refused(const std::string& text, const std::string& says) {
  EXPECT_NE(refusal(text).find(says), std::string::npos) << refusal(text);
}

TEST(MiniMallocCsv, ReadsBuffers) {
  const Instance instance = parse_minimalloc_csv("id,lower,upper,size\nb1,0,3,4\r\nb2,3,9,6\n\n", "x.csv");
  ASSERT_EQ(instance.blocks.size(), 2u);
  EXPECT_EQ(instance.blocks[1].begin, 3);
  EXPECT_EQ(instance.blocks[1].end, 9);
  EXPECT_EQ(instance.blocks[1].bytes, 6);
  EXPECT_EQ(instance.blocks[0].bytes, 4);
}

TEST(MiniMallocCsv, ColumnsInAnyOrderAndOthersIgnored) {
  const Instance instance = parse_minimalloc_csv("size,id,upper,offset,lower\n7,a,5,0,2", "x.csv");
  ASSERT_EQ(instance.blocks.size(), 1u);
  EXPECT_EQ(instance.blocks[0].bytes, 7);
  EXPECT_EQ(instance.blocks[0].begin, 2);
}

TEST(MiniMallocCsv, NamesThePlaceOfWhatIsWrong) {
  expect_refused("", "x.csv:1: no column 'lower'");
  expect_refused("id,lower,upper\n", "x.csv:1: no column 'size'");
  expect_refused("id,lower,upper,size\na,0,3\n", "x.csv:2: 3 cells, the header has 4");
  expect_refused("id,lower,upper,size\na,0,3,4\n\nb,0,x,4\n", "x.csv:4: upper 'x' is no whole number");
  expect_refused("id,lower,upper,size\na,0,3,4.5\n", "size '4.5'");
  expect_refused("id,lower,upper,size\na,0,3,99999999999999999999\n", "size '99999999999999999999'");
  expect_refused("id,lower,upper,size\na,3,3,4\n", "x.csv:2: alive from 3 up to 3");
  expect_refused("id,lower,upper,size\na,-1,3,4\n", "alive from -1");
  expect_refused("id,lower,upper,size\na,0,2147483648,4\n", "up to 2147483648");
  expect_refused("id,lower,upper,size\na,0,3,-4\n", "size -4 is negative");
}

TEST(MiniMallocCsv, CapacityIsInTheNameOfTheFile) {
  const std::filesystem::path folder = std::filesystem::path(CAIRN_BINARY_DIR) / "minimalloc_csv_test";
  std::filesystem::create_directories(folder);
  for (const auto& [name, capacity] : std::vector<std::pair<std::string, int64_t>>{
           {"A.1048576.csv", 1048576}, {"A.csv", 0}, {"A.b.csv", 0}}) {
    const std::string path = folder / name;
    std::ofstream(path) << "id,lower,upper,size\na,0,1,64\n";
    EXPECT_EQ(read_minimalloc_csv(path).capacity, capacity) << name;
  }
  EXPECT_THROW(read_minimalloc_csv(folder / "none.csv"), Error);
}

}  // namespace
}  // namespace cairn::bench
