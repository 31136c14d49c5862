// Removing checkpoints: what a manifest lists, and nothing else, whatever lies in the way.
#include <gtest/gtest.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

size_t entries(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

class Remove : public testing::Test {
 protected:
  void save_to(const std::string& name, const std::vector<fs::path>& files = {}) {
    save(*rig_.stepper, scratch_ / name, {{}, files});
  }
  test::Failure remove(const std::string& name) {
    return test::failure([&] { remove_checkpoint(scratch_ / name); });
  }
  test::Scratch scratch_;
  test::Rig rig_;
};

TEST_F(Remove, ACheckpointGoesWhole) {
  save_to("run/step-1", {scratch_.put("tokenizer.model", "abc")});
  save_to("run/step-2");
  EXPECT_EQ(remove("run/step-1/").code, Code::kOk);
  EXPECT_EQ(entries(scratch_ / "run"), 1u);
  EXPECT_EQ(newest_checkpoint(scratch_ / "run"), scratch_ / "run" / "step-2");
}

TEST_F(Remove, NothingGoesThroughALink) {
  save_to("precious");
  fs::create_directory(scratch_ / "run");
  fs::create_directory_symlink(scratch_ / "precious", scratch_ / "run" / "step-1");
  for (const char* name : {"run/step-1", "run/step-1/"}) {
    const auto result = remove(name);
    EXPECT_EQ(result.code, Code::kInvalidArgument) << name;
    EXPECT_NE(result.message.find("is a link"), std::string::npos) << result.message;
  }
  EXPECT_TRUE(fs::is_symlink(scratch_ / "run" / "step-1"));
  Checkpoint(scratch_ / "precious").verify();
  // A folder above may be a link: it is the caller's own word.
  fs::create_directory_symlink(scratch_ / "run", scratch_ / "way");
  save_to("run/step-2");
  EXPECT_EQ(remove("way/step-2").code, Code::kOk);
  EXPECT_FALSE(fs::exists(scratch_ / "run" / "step-2"));
}

TEST_F(Remove, LinksInsideStayAndSoDoesWhatTheyName) {
  save_to("step-1", {scratch_.put("tokenizer.model", "abc")});
  scratch_.put("real", "precious");
  fs::remove(scratch_ / "step-1" / "tokenizer.model");
  fs::create_symlink(scratch_ / "real", scratch_ / "step-1" / "tokenizer.model");
  EXPECT_FALSE(remove_checkpoint(scratch_ / "step-1"));
  EXPECT_EQ(test::slurp(scratch_ / "real"), "precious");
  EXPECT_TRUE(fs::is_symlink(scratch_ / "step-1" / "tokenizer.model"));
  EXPECT_EQ(entries(scratch_ / "step-1"), 1u);
}

TEST_F(Remove, FilesOfOthersStay) {
  save_to("step-1");
  scratch_.put("step-1/notes", "mine");
  fs::create_directories(scratch_ / "step-1" / "folder");
  scratch_.put("step-1/folder/deep", "mine");
  EXPECT_FALSE(remove_checkpoint(scratch_ / "step-1"));
  EXPECT_EQ(entries(scratch_ / "step-1"), 2u);
  EXPECT_EQ(test::slurp(scratch_ / "step-1" / "notes"), "mine");
  EXPECT_EQ(test::slurp(scratch_ / "step-1" / "folder" / "deep"), "mine");
  EXPECT_EQ(remove("step-1").code, Code::kNotFound);
}

TEST_F(Remove, WhatIsNotACheckpointIsLeftAlone) {
  EXPECT_EQ(remove("none").code, Code::kNotFound);
  EXPECT_EQ(remove("none/step-1").code, Code::kNotFound);
  fs::create_directory(scratch_ / "step-1");
  scratch_.put("step-1/tensors.bin", "mine");
  EXPECT_EQ(remove("step-1").code, Code::kNotFound);
  for (const std::string content : {"", "mine", "xxxxCMAN is all that is right about this one, and so on"}) {
    scratch_.put("step-1/manifest.cairn", content);
    EXPECT_EQ(remove("step-1").code, Code::kCorruptFile);
    EXPECT_EQ(entries(scratch_ / "step-1"), 2u);
  }
  scratch_.put("file", "x");
  EXPECT_EQ(remove("file").code, Code::kInvalidArgument);
  for (const char* name : {".", "..", "step-1/.", "step-1/.."})
    EXPECT_EQ(remove(name).code, Code::kInvalidArgument) << name;
  save_to("step-2");
  fs::remove(scratch_ / "step-2" / kManifestName);
  fs::create_symlink(scratch_ / "elsewhere", scratch_ / "step-2" / kManifestName);
  EXPECT_EQ(remove("step-2").code, Code::kIo);
  EXPECT_EQ(entries(scratch_ / "step-2"), 2u);
}

// A manifest that names files elsewhere is damaged.
TEST_F(Remove, NamesWithASlashAreNoNames) {
  save_to("step-1");
  scratch_.put("victim", "precious");
  for (const char* name : {"../victim", "/victim", ".", "..", "", "tensors.bin", "a/b"}) {
    Manifest manifest = decode_manifest(test::bytes_of(test::slurp(scratch_ / "step-1" / kManifestName)));
    manifest.files->push_back({name, 8, 0, 0});
    EXPECT_EQ(test::failure([&] { decode_manifest(encode_manifest(manifest)); }).code, Code::kCorruptFile)
        << name;
  }
  EXPECT_EQ(test::slurp(scratch_ / "victim"), "precious");
}

// Leftovers: only names of the pattern, only directories, and only what is ours in them.
TEST_F(Remove, LeftoversOfOthersStay) {
  fs::create_directory(scratch_ / "precious");
  scratch_.put("precious/tensors.bin", "mine");
  fs::create_directory_symlink(scratch_ / "precious", scratch_ / ".saved.tmp-1");
  for (const char* name : {".saved.tmp-2", ".saved.tmp-x", ".saved.tmp-3.y", ".saved.tmp-"})
    fs::create_directory(scratch_ / name);
  scratch_.put(".saved.tmp-2/letter", "mine");
  fs::create_directory(scratch_ / ".saved.tmp-2" / "tensors.bin");
  scratch_.put(".saved.tmp-4", "a file");
  save_to("saved");
  EXPECT_TRUE(fs::is_symlink(scratch_ / ".saved.tmp-1"));
  EXPECT_EQ(test::slurp(scratch_ / "precious" / "tensors.bin"), "mine");
  EXPECT_EQ(test::slurp(scratch_ / ".saved.tmp-2" / "letter"), "mine");
  EXPECT_TRUE(fs::is_directory(scratch_ / ".saved.tmp-2" / "tensors.bin"));
  for (const char* name : {".saved.tmp-x", ".saved.tmp-3.y", ".saved.tmp-", ".saved.tmp-4"})
    EXPECT_TRUE(fs::exists(scratch_ / name)) << name;
  // Now that there is a checkpoint, it gets back what is not ours.
  save_to("saved");
  EXPECT_EQ(test::slurp(scratch_ / "saved" / "letter"), "mine");
}

}  // namespace
}  // namespace cairn::io
