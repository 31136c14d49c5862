#include "runtime/base/listing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/error.h"

namespace cairn {
namespace {
namespace fs = std::filesystem;

TEST(Listing, NamesWhatIsThere) {
  const fs::path folder = fs::temp_directory_path() / ("cairn-listing-" + std::to_string(::getpid()));
  fs::create_directories(folder / "b");
  std::ofstream(folder / ".a") << "x";
  std::vector<std::string> names = names_in(folder);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".a", "b"}));
  EXPECT_TRUE(names_in(folder / "b").empty());
  fs::remove_all(folder);
  try {
    names_in(folder);
    ADD_FAILURE() << "a folder that is not there was listed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
    EXPECT_NE(std::string(error.what()).find(folder.string()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cairn
