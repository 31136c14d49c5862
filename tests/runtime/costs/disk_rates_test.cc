#include "runtime/costs/disk_rates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cairn::costs {
namespace {

namespace fs = std::filesystem;

struct DiskRates : testing::Test {
  DiskRates() {
    std::string path = (fs::temp_directory_path() / "cairn-disk-XXXXXX").string();
    folder = ::mkdtemp(path.data());
    fs::create_directory(folder / "disk");
  }
  ~DiskRates() override { fs::remove_all(folder); }

  // Each name of the directory that keeps is asked as by a process that was not there before.
  DiskRequest request(const std::string& again = "", std::string_view how = kRatesCache) const {
    return {.directory = (folder / "disk").string(),
            .how = std::string(how),
            .kept_in = (folder / "made" / "cairn").string() + again};
  }
  fs::path kept() const {
    const fs::directory_iterator files(folder / "made" / "cairn");
    for (const auto& file : files) return file.path();
    return {};
  }

  fs::path folder;
};

TEST_F(DiskRates, MeasuredOnceAndKept) {
  const auto first = find_disk_link(request());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->tier, "disk");
  EXPECT_EQ(first->capacity_bytes, 0);
  EXPECT_TRUE(fs::is_empty(folder / "disk"));
  EXPECT_EQ(kept().filename().string().substr(0, 5), "disk-");
  EXPECT_EQ(find_disk_link(request()), first);
  EXPECT_EQ(find_disk_link(request("/.")), first) << "another process measured again";
  EXPECT_EQ(find_disk_link(request("/./.", "/rates/of/the/processor.json")), first);
}

TEST_F(DiskRates, DirectoriesOfOneFileSystemShareWhatWasMeasured) {
  const auto first = find_disk_link(request());
  ASSERT_TRUE(first);
  fs::create_directory(folder / "another");
  DiskRequest asked = request();
  asked.directory = (folder / "another").string();
  EXPECT_EQ(find_disk_link(asked), first);
  const fs::directory_iterator files(folder / "made" / "cairn");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(DiskRates, MeasuredAnewOnRequestAndWhereWhatWasKeptIsBroken) {
  ASSERT_TRUE(find_disk_link(request()));
  const fs::path file = kept();
  std::string sound((std::istreambuf_iterator<char>(std::ifstream(file).rdbuf())), {});
  const size_t at = sound.find("\"out_bytes_per_second\": ");
  ASSERT_NE(at, std::string::npos);
  const size_t number = sound.find(' ', at) + 1;
  const std::string marked = sound.substr(0, number) + "12345" + sound.substr(sound.find(',', number));
  std::ofstream(file) << marked;
  EXPECT_EQ(find_disk_link(request("/."))->out_bytes_per_second, 12345);
  EXPECT_NE(find_disk_link(request("/./.", kRatesMeasure))->out_bytes_per_second, 12345);
  int times = 0;
  for (const std::string& broken : {std::string("{"), marked.substr(0, marked.size() / 2), std::string("[]"),
                                    std::string("{\"format\": \"cairn.rates/1\"}")}) {
    std::ofstream(file) << broken;
    const auto link = find_disk_link(request("/././" + std::string(static_cast<size_t>(++times), '/')));
    ASSERT_TRUE(link) << broken;
    EXPECT_NE(link->out_bytes_per_second, 12345);
  }
}

TEST_F(DiskRates, NothingIsMeasuredForTheModelOrWhereNoFileCanBe) {
  EXPECT_FALSE(find_disk_link(request("", kRatesModel)));
  EXPECT_FALSE(fs::exists(folder / "made"));
  DiskRequest nowhere = request();
  nowhere.directory = (folder / "nothing").string();
  EXPECT_FALSE(find_disk_link(nowhere));
  fs::create_directory(folder / "nothing");
  EXPECT_TRUE(find_disk_link(nowhere)) << "room was made";
}

TEST_F(DiskRates, GoodForTheProcessWhereNothingCanBeKept) {
  std::ofstream(folder / "file") << "no directory";
  DiskRequest asked = request();
  asked.kept_in = (folder / "file").string();
  const auto link = find_disk_link(asked);
  ASSERT_TRUE(link);
  EXPECT_EQ(find_disk_link(asked), link);
}

}  // namespace
}  // namespace cairn::costs
