// The kinds of data: what they hold, and what they refuse by name.
#include "tests/runtime/data/pictures/rig.h"

namespace cairn::data {
namespace {

std::unique_ptr<PictureSource> opened(const std::string& data, bool test = false) {
  SourceOptions options;
  options.data = data;
  options.test = test;
  options.samples = 20;
  options.width = options.height = 16;
  return open_source(options);
}

test::Failure refused(const std::string& data, bool test = false) {
  return test::failure([&] { opened(data, test); });
}

void expect_names(const test::Failure& failed, Code code, const std::string& word) {
  EXPECT_EQ(failed.code, code) << failed.message;
  EXPECT_NE(failed.message.find(word), std::string::npos) << failed.message;
}

TEST(Sources, Mnist) {
  const test::Scratch scratch;
  std::string pixels;
  for (int i = 0; i < 3 * 4 * 5; ++i) pixels += static_cast<char>(i * 4);
  const std::string images = test::idx_of({3, 4, 5}, pixels), labels = test::idx_of({3}, "\x01\x09\x04");
  scratch.put("train-images-idx3-ubyte", images);
  scratch.put("train-labels-idx1-ubyte.gz", test::gzip_of(labels));
  const auto source = opened("mnist:" + scratch.path().string());
  EXPECT_EQ(source->count(), 3u);
  EXPECT_EQ(source->classes().size(), 10u);
  EXPECT_EQ(source->label(1), 9);
  RawPicture raw;
  source->read(2, raw);
  EXPECT_TRUE(raw.picture.width == 5 && raw.picture.height == 4);
  EXPECT_EQ(raw.picture.at(1, 0)[2], 41 * 4);
  expect_names(refused("mnist:" + scratch.path().string(), true), Code::kNotFound, "t10k-images-idx3-ubyte");
  const struct {
    std::string images, word;
  } bad[] = {{images.substr(0, images.size() - 1), "promises"},
             {images + "x", "promises"},
             {"short", "fewer than its header"},
             {test::idx_of({3}, "abc") + std::string(9, 'x'), "not an IDX file"},
             {test::idx_of({2, 4, 5}, pixels.substr(0, 40)), "labels"},
             {test::idx_of({3, 60000, 60000}, pixels), "60000 x 60000"}};
  for (const auto& row : bad) {
    scratch.put("train-images-idx3-ubyte", row.images);
    const auto failed = refused("mnist:" + scratch.path().string());
    EXPECT_TRUE(failed.code == Code::kCorruptFile || failed.code == Code::kUnsupported) << failed.message;
    EXPECT_NE(failed.message.find(row.word), std::string::npos) << failed.message;
    EXPECT_NE(failed.message.find("idx3-ubyte"), std::string::npos) << failed.message;
  }
}

TEST(Sources, Cifar) {
  const test::Scratch scratch;
  std::string record(1, '\x07');
  for (int i = 0; i < 3072; ++i) record += static_cast<char>(i / 1024 * 50 + i % 32);
  for (int i = 1; i <= 5; ++i) scratch.put(cat("data_batch_", i, ".bin"), record + record);
  scratch.put("test_batch.bin", record);
  scratch.put("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nhorse\ni\nj\n\n");
  scratch.put("train.bin", "\x03" + record);
  const std::string folder = scratch.path().string();
  const auto source = opened("cifar10:" + folder);
  EXPECT_EQ(source->count(), 10u);
  EXPECT_EQ(source->label(9), 7);
  EXPECT_EQ(source->classes()[7], "horse");
  RawPicture raw;
  source->read(9, raw);
  EXPECT_EQ(raw.picture.at(5, 3)[0], 5);
  EXPECT_EQ(raw.picture.at(5, 3)[2], 105);
  EXPECT_EQ(opened("cifar10:" + folder, true)->count(), 1u);
  const auto hundred = opened("cifar100:" + folder);
  EXPECT_EQ(hundred->label(0), 7);  // fine, after coarse
  EXPECT_EQ(hundred->classes().size(), 100u);
  scratch.put("data_batch_3.bin", record + "x");
  expect_names(refused("cifar10:" + folder), Code::kCorruptFile, "data_batch_3.bin' has 3074 bytes");
  scratch.put("data_batch_3.bin", std::string(1, '\x0A') + record.substr(1));
  expect_names(refused("cifar10:" + folder), Code::kCorruptFile, "its label is 10");
  scratch.put("data_batch_3.bin", "");
  expect_names(refused("cifar10:" + folder), Code::kCorruptFile, "data_batch_3.bin");
}

TEST(Sources, Folder) {
  const test::Scratch scratch;
  test::fill_folder(scratch);
  scratch.put("a/notes.txt", "no picture");
  const std::string folder = "folder:" + scratch.path().string();
  const auto source = opened(folder);
  ASSERT_EQ(source->count(), 5u);
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(source->label(2), 0);
  EXPECT_EQ(source->label(3), 1);
  EXPECT_NE(source->name(4).find("b/1.webp"), std::string::npos);
  expect_names(refused(folder, true), Code::kNotFound, "val/");
  std::filesystem::create_directory(scratch / "empty");
  expect_names(refused(folder), Code::kCorruptFile, "empty' is empty");
  expect_names(refused("folder:" + (scratch / "a").string()), Code::kCorruptFile, "has no folders");
  expect_names(refused("folder:" + (scratch / "nowhere").string()), Code::kNotFound, "nowhere");
}

TEST(Sources, FolderWithParts) {
  const test::Scratch scratch;
  test::fill_folder(scratch, "train/");
  std::filesystem::create_directories(scratch / "val/b");
  scratch.put("val/b/x.png", test::png_of(test::sample_picture()));
  const std::string folder = "folder:" + scratch.path().string();
  EXPECT_EQ(opened(folder)->count(), 5u);
  const auto source = opened(folder, true);
  EXPECT_EQ(source->count(), 1u);
  EXPECT_EQ(source->label(0), 1);  // a class's number is that of the data to train with
  std::filesystem::create_directories(scratch / "val/c");
  expect_names(refused(folder, true), Code::kCorruptFile, "'c'");
}

TEST(Sources, Tar) {
  const test::Scratch scratch;
  const std::string picture = test::png_of(test::sample_picture());
  const std::string pax = "31 path=a/very/long/name/2.png\n";
  const std::string shard = test::tar_member("a/", "", '5') + test::tar_member("a/0.png", picture) +
                            test::tar_member("a/0.cls", "3\n") + test::tar_member("a/0.txt", "a thing") +
                            test::tar_member("a/1.json", R"({"label": 1, "caption": "one"})") +
                            test::tar_member("a/1.png", picture) + test::tar_member("x", pax, 'x') +
                            test::tar_member("2.png", picture) +
                            test::tar_member("a/very/long/name/2.json", R"({"label": 0, "text": "two"})");
  const auto path = scratch.put("a.tar", shard + std::string(1024, '\0')),
             second = scratch.put("b.tar", shard);
  const auto source = opened("tar:" + path.string() + "," + second.string());
  ASSERT_EQ(source->count(), 6u);
  EXPECT_EQ(source->label(0), 3);
  EXPECT_EQ(source->label(4), 1);
  EXPECT_EQ(source->text(0), "a thing");
  EXPECT_EQ(source->text(5), "two");
  EXPECT_TRUE(source->texts());
  EXPECT_EQ(source->classes().size(), 4u);
  RawPicture raw;
  source->read(5, raw);
  EXPECT_EQ(raw.coded.size(), picture.size());
  const struct {
    std::string file, word;
  } bad[] = {{shard.substr(0, 1124), "truncated"},
             {shard + "x", "in the middle of a header"},
             {"foreign" + shard, "no tar header"},
             {"", "in the middle of a header"},
             {test::tar_member("a.txt", "no picture"), "no member"},
             {test::tar_member("a.png", picture) + test::tar_member("a.cls", "cat"),
              "'cat' is not a class's number"},
             {test::tar_member("a.png", picture) + test::tar_member("a.json", "{"), "a.json"},
             {test::tar_member("a.png", picture) + test::tar_member("a.cls", "1") +
                  test::tar_member("b.png", picture),
              "b.png' has no class"}};
  for (const auto& row : bad)
    expect_names(refused("tar:" + scratch.put("bad.tar", row.file).string()), Code::kCorruptFile, row.word);
}

TEST(Sources, Pairs) {
  const test::Scratch scratch;
  test::fill_folder(scratch);
  const auto path = scratch.put("pairs.jsonl",
                                "{\"image\": \"a/0.png\", \"text\": \"first\"}\n\n"
                                "{\"text\": \"second\", \"image\": \"b/0.JPG\"}\n");
  const auto source = opened("pairs:" + path.string());
  ASSERT_EQ(source->count(), 2u);
  EXPECT_TRUE(source->texts() && source->classes().empty());
  EXPECT_EQ(source->text(1), "second");
  RawPicture raw;
  source->read(1, raw);
  EXPECT_FALSE(raw.coded.empty());
  expect_names(refused("pairs:" + scratch.put("bad", "{\"text\": \"x\"}").string()), Code::kCorruptFile,
               "line 1");
  expect_names(refused("pairs:" + scratch.put("bad", "[1]").string()), Code::kCorruptFile, "line 1");
  expect_names(refused("pairs:" + scratch.put("bad", "{\"image\": 3}").string()), Code::kCorruptFile,
               "'image'");
  expect_names(refused("pairs:" + scratch.put("bad", "\n").string()), Code::kCorruptFile, "no lines");
  expect_names(refused("paris:x"), Code::kInvalidArgument, "wanted: drawings");
}

TEST(Sources, ContentTellsOtherPicturesApart) {
  const test::Scratch scratch;
  test::fill_folder(scratch);
  const std::string folder = "folder:" + scratch.path().string();
  const std::string was = content_of(*opened(folder));
  EXPECT_EQ(was.size(), 34u) << was;
  EXPECT_EQ(was.substr(32), "-5");
  EXPECT_EQ(content_of(*opened(folder)), was);
  std::filesystem::rename(scratch / "a/0.png", scratch / "a/00.png");
  EXPECT_NE(content_of(*opened(folder)), was);
  const auto pairs = [&](const std::string& text) {
    const auto path = scratch.put("pairs.jsonl", "{\"image\": \"a/1.png\", \"text\": \"" + text + "\"}\n");
    return content_of(*opened("pairs:" + path.string()));
  };
  EXPECT_NE(pairs("one"), pairs("two"));
}

TEST(Sources, Drawings) {
  const auto source = opened("drawings"), held_out = opened("drawings", true);
  RawPicture a, b, c;
  source->read(3, a);
  source->read(3, b);
  held_out->read(3, c);
  EXPECT_EQ(a.picture.rgb, b.picture.rgb);
  EXPECT_NE(a.picture.rgb, c.picture.rgb);
  EXPECT_EQ(source->classes().size(), 10u);
  EXPECT_NE(source->text(3).find(source->classes()[static_cast<size_t>(source->label(3))]),
            std::string::npos);
  std::vector<int32_t> mask(16 * 16);
  source->mask(3, mask.data());
  for (const int32_t pixel : mask) ASSERT_TRUE(pixel == 0 || pixel == source->label(3) + 1);
  EXPECT_NE(std::count(mask.begin(), mask.end(), 0), 256);
}

}  // namespace
}  // namespace cairn::data
