// Saving over what is there: what is ours is replaced, all else is kept or the save is refused.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/inspect.h"
#include "runtime/io/manifest.h"
#include "runtime/io/safetensors/names.h"
#include "runtime/io/safetensors/safetensors.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;

class Save : public testing::Test {
 protected:
  void save_with(const std::vector<fs::path>& files = {}) {
    save(*rig_.stepper, scratch_ / "saved", {{}, files});
  }
  Code refused(const std::vector<fs::path>& files = {}) {
    return test::failure([&] { save_with(files); }).code;
  }
  size_t entries(const std::string& name) const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(scratch_ / name), fs::directory_iterator()));
  }
  test::Scratch scratch_;
  test::Rig rig_;
};

TEST_F(Save, KeepsWhatOthersPutThere) {
  const auto tokenizer = scratch_.put("tokenizer.model", "abc");
  save_with({tokenizer});
  scratch_.put("real", "precious");
  scratch_.put("saved/notes", "mine");
  fs::create_symlink(scratch_ / "real", scratch_ / "saved" / "link");
  fs::create_directory_symlink("/nowhere", scratch_ / "saved" / "dangling");
  fs::create_directories(scratch_ / "saved" / "folder" / "deep");
  scratch_.put("saved/folder/deep/file", "mine, too");
  ASSERT_EQ(::mkfifo((scratch_ / "saved" / "pipe").c_str(), 0600), 0);
  for (int round = 0; round < 3; ++round) {
    rig_.train(static_cast<uint64_t>(round), static_cast<uint64_t>(round) + 1);
    save_with();  // the tokenizer is of the save that is replaced: it goes
    EXPECT_EQ(entries("saved"), 7u);
    EXPECT_FALSE(fs::exists(scratch_ / "saved" / "tokenizer.model"));
    EXPECT_EQ(test::slurp(scratch_ / "saved" / "notes"), "mine");
    EXPECT_EQ(fs::read_symlink(scratch_ / "saved" / "link"), scratch_ / "real");
    EXPECT_EQ(fs::read_symlink(scratch_ / "saved" / "dangling"), "/nowhere");
    EXPECT_EQ(test::slurp(scratch_ / "saved" / "folder" / "deep" / "file"), "mine, too");
    EXPECT_TRUE(fs::is_fifo(scratch_ / "saved" / "pipe"));
    test::Rig probe;
    Checkpoint(scratch_ / "saved").restore(*probe.stepper);
    EXPECT_EQ(probe.digest(), rig_.digest());
  }
  EXPECT_EQ(test::slurp(scratch_ / "real"), "precious");
  EXPECT_EQ(entries("."), 3u);  // saved, real, tokenizer.model
}

TEST_F(Save, DoesNotWriteOverFilesOfOthers) {
  const auto tokenizer = scratch_.put("tokenizer.model", "abc");
  save_with();
  const std::string before = test::slurp(scratch_ / "saved" / kManifestName);
  scratch_.put("saved/tokenizer.model", "mine");
  rig_.train(0, 1);
  EXPECT_EQ(refused({tokenizer}), Code::kInvalidArgument);
  EXPECT_EQ(test::slurp(scratch_ / "saved" / "tokenizer.model"), "mine");
  EXPECT_EQ(test::slurp(scratch_ / "saved" / kManifestName), before);
  fs::remove(scratch_ / "saved" / "tokenizer.model");
  save_with({tokenizer});
  save_with({tokenizer});
  // A link in the place of a file of ours is somebody's.
  fs::rename(scratch_ / "saved" / kTensorsName, scratch_ / "large");
  fs::create_symlink(scratch_ / "large", scratch_ / "saved" / kTensorsName);
  const std::string large = test::slurp(scratch_ / "large");
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  EXPECT_EQ(test::slurp(scratch_ / "large"), large);
  EXPECT_EQ(entries("."), 3u);
}

TEST_F(Save, ADamagedCheckpointIsReplacedAndOthersManifestsAreNot) {
  save_with();
  std::string manifest = test::slurp(scratch_ / "saved" / kManifestName);
  manifest[manifest.size() / 2] ^= 1;
  scratch_.put("saved/manifest.cairn", manifest);
  scratch_.put("saved/notes", "mine");
  save_with();
  Checkpoint(scratch_ / "saved").verify();
  EXPECT_EQ(test::slurp(scratch_ / "saved" / "notes"), "mine");
  scratch_.put("saved/manifest.cairn", "a list of goods");
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  EXPECT_EQ(test::slurp(scratch_ / "saved" / kManifestName), "a list of goods");
}

// 1.0 listed no files: those that the save brings are taken to be its own.
TEST_F(Save, OverACheckpointWithoutAListOfFiles) {
  const auto tokenizer = scratch_.put("tokenizer.model", "abc");
  const auto strip = [&](std::map<std::string, std::string> metadata) {
    Manifest manifest = decode_manifest(test::bytes_of(test::slurp(scratch_ / "saved" / kManifestName)));
    manifest.files.reset();
    manifest.metadata = std::move(metadata);
    scratch_.put("saved/manifest.cairn", test::text_of(encode_manifest(manifest)));
    Checkpoint(scratch_ / "saved").verify();
  };
  save_with({tokenizer});
  strip({});
  save_with({tokenizer});
  EXPECT_EQ(entries("saved"), 3u);
  strip({});
  save_with();  // nobody says whose the tokenizer is: it stays
  EXPECT_EQ(entries("saved"), 3u);
  fs::remove(scratch_ / "saved" / "tokenizer.model");
  save_with({tokenizer});
  strip({{"tokenizer.file", "tokenizer.model"}});  // as the command wrote it
  EXPECT_TRUE(remove_checkpoint(scratch_ / "saved"));
  EXPECT_FALSE(fs::exists(scratch_ / "saved"));
}

TEST_F(Save, FilesAreCheckedWhenACheckpointIsOpened) {
  save_with({scratch_.put("tokenizer.model", "abc")});
  EXPECT_NE(inspect(scratch_ / "saved").find("\"files\": {\"tokenizer.model\": {\"bytes\": 3"),
            std::string::npos);
  struct Damage {
    const char* content;
    Code code;
  };
  for (const auto& [content, code] : {Damage{"abd", Code::kCorruptFile},
                                      {"ab", Code::kCorruptFile},
                                      {"abcd", Code::kCorruptFile},
                                      {"abc", Code::kOk}}) {
    scratch_.put("saved/tokenizer.model", content);
    EXPECT_EQ(test::failure([&] { Checkpoint checkpoint(scratch_ / "saved"); }).code, code) << content;
  }
  fs::remove(scratch_ / "saved" / "tokenizer.model");
  EXPECT_EQ(test::failure([&] { Checkpoint checkpoint(scratch_ / "saved"); }).code, Code::kCorruptFile);
}

// Files that are cut short while they are open.
TEST_F(Save, AFileThatShrinksIsAnErrorAndNoSignal) {
  rig_.train(0, 2);
  save_with();
  export_safetensors(*rig_.session, {}, scratch_ / "weights");
  const Checkpoint checkpoint(scratch_ / "saved");
  const SafeTensors weights(scratch_ / "weights");
  fs::resize_file(scratch_ / "saved" / kTensorsName, 100);
  fs::resize_file(scratch_ / "weights", fs::file_size(scratch_ / "weights") / 2);
  test::Rig other(test::sample_graph(), 99);
  const std::string before = other.digest();
  for (const auto& result :
       {test::failure([&] { checkpoint.restore(*other.stepper); }),
        test::failure([&] { checkpoint.load_parameters(*other.session); }), test::failure([&] {
          std::vector<std::byte> to(4096);
          for (const SafeTensor& tensor : weights.tensors())
            weights.read(tensor, 0, to.data(), static_cast<uint64_t>(tensor.desc.bytes()));
        })}) {
    EXPECT_EQ(result.code, Code::kIo);
    EXPECT_NE(result.message.find("cut short while it was in use"), std::string::npos) << result.message;
  }
  EXPECT_EQ(other.digest(), before);
  EXPECT_FALSE(other.session->poisoned());
}

// An opened checkpoint is what it was when it was opened, whatever takes its place.
TEST_F(Save, AnOpenedCheckpointOutlivesItsDirectory) {
  rig_.train(0, 2);
  save_with();
  const std::string digest = rig_.digest();
  const Checkpoint opened(scratch_ / "saved");
  rig_.train(2, 3);
  save_with();
  remove_checkpoint(scratch_ / "saved");
  test::Rig probe;
  opened.restore(*probe.stepper);
  EXPECT_EQ(probe.digest(), digest);
}

}  // namespace
}  // namespace cairn::io
