// Files of pictures: read as they were written, or refused by name.
#include "runtime/data/pictures/codecs/codecs.h"

#include <sys/resource.h>

#include "tests/runtime/data/pictures/encode.h"
#include "tests/runtime/data/pictures/sample.h"

namespace cairn::data {
namespace {

Picture decoded(const std::string& file, int shrink = 1) {
  const auto coded = test::bytes_of_text(file);
  const Codec& codec = codec_of(coded, "'x'");
  codec.size(coded, "'x'");
  return codec.decode(coded, "'x'", shrink);
}

const struct {
  const char* name;
  std::string (*encode)(const Picture&);
} kEncoders[] = {{"PNG", test::png_of},
                 {"JPEG", [](const Picture& p) { return test::jpeg_of(p); }},
                 {"WebP", test::webp_of}};

TEST(Codecs, ReadWhatWasWritten) {
  const Picture picture = test::sample_picture();
  for (const auto& row : kEncoders) {
    const std::string file = row.encode(picture);
    const auto coded = test::bytes_of_text(file);
    EXPECT_EQ(codec_of(coded, "").name, row.name);
    const PictureSize size = codec_of(coded, "").size(coded, "");
    EXPECT_TRUE(size.width == picture.width && size.height == picture.height) << row.name;
    const Picture back = decoded(file);
    if (std::string(row.name) == "JPEG")
      EXPECT_EQ(test::differing(back, picture, 0, 60), 0u);
    else
      EXPECT_EQ(back.rgb, picture.rgb) << row.name;
  }
}

TEST(Codecs, DecodeJpegSmaller) {
  Picture flat(160, 100);
  std::fill(flat.rgb.begin(), flat.rgb.end(), uint8_t{200});
  const std::string file = test::jpeg_of(flat);
  for (const int shrink : {1, 2, 4, 8}) {
    const Picture small = decoded(file, shrink);
    EXPECT_EQ(small.width, 160 / shrink);
    EXPECT_EQ(small.height, (100 + shrink - 1) / shrink);
    for (const uint8_t byte : small.rgb) ASSERT_NEAR(byte, 200, 2);
  }
}

TEST(Codecs, RefuseWhatIsTruncatedOrForeign) {
  const Picture picture = test::sample_picture();
  for (const auto& row : kEncoders) {
    const std::string file = row.encode(picture);
    for (const size_t size : {file.size() - 1, file.size() / 2, size_t{13}}) {
      if (std::string(row.name) != "WebP" && size == file.size() - 1)
        continue;  // an end mark may lack a byte
      const auto failed = test::failure([&] { decoded(file.substr(0, size)); });
      EXPECT_EQ(failed.code, Code::kCorruptFile) << row.name << " " << size;
      EXPECT_NE(failed.message.find("'x'"), std::string::npos) << failed.message;
    }
  }
  for (const char* text : {"", "hello", "GIF89a and more"}) {
    const auto failed = test::failure([&] { decoded(text); });
    EXPECT_EQ(failed.code, Code::kCorruptFile);
    EXPECT_NE(failed.message.find("not a picture"), std::string::npos) << failed.message;
  }
}

TEST(Codecs, RefuseClaimsBeforeTheyTakeMemory) {
  const Picture picture = test::sample_picture();
  std::string jpeg = test::jpeg_of(picture);
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xEA\x60\xEA\x60");  // 60,000 each
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (const std::string& file : {test::png_claiming(60000, 60000, test::png_of(picture)), jpeg,
                                  test::png_claiming(16384, 16384, test::png_of(picture))}) {
    const auto failed = test::failure([&] { decoded(file); });
    EXPECT_EQ(failed.code, Code::kUnsupported) << failed.message;
    EXPECT_NE(failed.message.find(file[1] == 'P' && failed.message.find("60000") == std::string::npos
                                      ? "16384 x 16384"
                                      : "60000 x 60000"),
              std::string::npos)
        << failed.message;
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "KiB";
}

TEST(Codecs, Gunzip) {
  const std::string text(100000, 'x'), packed = test::gzip_of(text);
  const auto back = gunzip(test::bytes_of_text(packed), "'x'", text.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(back.data()), back.size()), text);
  const auto refused = [&](const std::string& file, uint64_t limit) {
    return test::failure([&] { gunzip(test::bytes_of_text(file), "'x'", limit); }).code;
  };
  EXPECT_EQ(refused(packed, text.size() - 1), Code::kCorruptFile);
  EXPECT_EQ(refused(packed.substr(0, packed.size() / 2), text.size()), Code::kCorruptFile);
  EXPECT_EQ(refused("no gzip", 100), Code::kCorruptFile);
  EXPECT_EQ(refused("", 100), Code::kCorruptFile);
}

}  // namespace
}  // namespace cairn::data
