#include "runtime/base/os/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

namespace cairn {
namespace {
namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "cairn-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  static std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  static Code code(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kOk;
  }
  // Directories whose files are all ours.
  static OwnFiles all() {
    return [](int directory, const fs::path& path, bool) { return entries_of(directory, path); };
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
  fs::path root_;
};

TEST_F(File, ReadsWhatIsThere) {
  std::ofstream(root_ / "a") << "hello";
  EXPECT_EQ(FileContent(root_ / "a").bytes().size(), 5u);
  std::ofstream(root_ / "empty");
  EXPECT_TRUE(FileContent(root_ / "empty").bytes().empty());
  EXPECT_EQ(code([&] { FileContent file(root_ / "none"); }), Code::kNotFound);
  EXPECT_EQ(code([&] { FileContent file(root_ / "a" / "below"); }), Code::kNotFound);
  EXPECT_EQ(code([&] { FileContent file(root_); }), Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code([&] { FileContent file(root_ / "pipe"); }),
            Code::kInvalidArgument);  // and does not wait for a writer
}

TEST_F(File, WritesOneFileOrNothing) {
  write_file_durably(root_ / "deep" / "er" / "a", bytes("one"));
  EXPECT_EQ(slurp(root_ / "deep" / "er" / "a"), "one");
  write_file_durably(root_ / "deep" / "er" / "a", bytes("two"));
  EXPECT_EQ(slurp(root_ / "deep" / "er" / "a"), "two");
  { DurableFile dropped(root_ / "b"); }
  EXPECT_FALSE(fs::exists(root_ / "b"));
  EXPECT_EQ(entries(), 1u);
  DurableFile file(root_ / "c");
  file.append("0000abc", 7);
  file.write_at(0, "1234", 4);
  EXPECT_EQ(code([&] { file.write_at(4, "xxxx", 4); }), Code::kInvalidArgument);
  file.commit();
  EXPECT_EQ(slurp(root_ / "c"), "1234abc");
  EXPECT_EQ(code([&] { file.commit(); }), Code::kWrongState);
  EXPECT_EQ(code([&] { write_file_durably(root_ / "deep", {}); }), Code::kInvalidArgument);
  EXPECT_EQ(code([&] { write_file_durably(root_ / "c" / "x", {}); }), Code::kIo);
}

TEST_F(File, AWriterReplacesAThingAndNotTheLinkToIt) {
  write_file_durably(root_ / "real", bytes("one"));
  fs::create_symlink("real", root_ / "link");
  write_file_durably(root_ / "link", bytes("two"));
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(slurp(root_ / "real"), "two");
}

TEST_F(File, DirectoriesAreExchangedWhole) {
  for (const char* text : {"one", "two"}) {
    DurableDirectory directory(root_ / "d/", all());
    directory.write("a", bytes(text));
    const auto file = directory.create(std::string("only-") + text);
    file->append("x", 1);
    file->pad_to(64);
    EXPECT_EQ(file->size(), 64u);
    EXPECT_EQ(code([&] { directory.commit(); }), Code::kWrongState);
    file->close();
    directory.commit();
    EXPECT_EQ(slurp(root_ / "d" / "a"), text);
  }
  EXPECT_FALSE(fs::exists(root_ / "d" / "only-one"));
  EXPECT_EQ(fs::file_size(root_ / "d" / "only-two"), 64u);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, DirectoriesNotCommittedLeaveNothing) {
  {
    DurableDirectory directory(root_ / "d", all());
    directory.write("a", bytes("one"));
    for (const char* name : {"", ".", "..", "a/b", "/a"})
      EXPECT_EQ(code([&] { directory.create(name); }), Code::kInvalidArgument);
    EXPECT_EQ(code([&] { directory.create("a"); }), Code::kIo);  // there already
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
  std::ofstream(root_ / "file") << "x";
  EXPECT_EQ(code([&] { DurableDirectory directory(root_ / "file", all()); }), Code::kInvalidArgument);
}

TEST_F(File, LeftoversOfDeadWritersGoThoseOfLivingOnesStay) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // dies in the middle of two writes
    auto* directory = new DurableDirectory(root_ / "d", all());
    directory->write("a", bytes("half"));
    new DurableFile(root_ / "f");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(entries(), 2u);
  {
    DurableDirectory living(root_ / "d", all());
    living.write("a", bytes("first"));
    EXPECT_EQ(entries(), 2u);  // the dead directory is gone, the living one and the dead file are there
    DurableDirectory second(root_ / "d", all());
    second.write("a", bytes("second"));
    EXPECT_EQ(entries(), 3u);
    second.commit();
    living.commit();
    EXPECT_EQ(slurp(root_ / "d" / "a"), "first");
  }
  write_file_durably(root_ / "f", bytes("x"));
  EXPECT_EQ(entries(), 2u);
}

}  // namespace
}  // namespace cairn
