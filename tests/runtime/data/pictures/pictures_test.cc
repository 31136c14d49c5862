// Micro-batches: pure functions of options and number, whatever the workers; bad pictures; mixing; held-out shares.
#include "runtime/data/pictures/pictures.h"

#include <set>

#include "tests/runtime/data/pictures/rig.h"

namespace cairn::data {
namespace {

PictureOptions everything(const std::string& data) {
  PictureOptions options = test::picture_options(data);
  options.augment.crop = Crop::kRandomResized;
  options.augment.flip = 0.5;
  options.augment.ops = 2;
  options.augment.brightness = 0.4;
  options.mixup = options.cutmix = 1;
  return options;
}

TEST(Pictures, SameBitsForAnyNumberOfWorkers) {
  const test::Scratch scratch;
  test::fill_folder(scratch);
  for (const std::string& data : {std::string("drawings"), "folder:" + scratch.path().string()}) {
    PictureOptions options = everything(data);
    options.workers = 0;
    const auto alone = Pictures::open(options);
    options.workers = 1;
    const auto one = Pictures::open(options);
    options.workers = 4;
    options.ahead = 3;
    const auto four = Pictures::open(options);
    for (uint64_t number = 0; number < 25; ++number) {
      const auto wanted = test::batch_of(*alone, number, 4);
      EXPECT_EQ(test::batch_of(*one, number, 4), wanted) << data << number;
      EXPECT_EQ(test::batch_of(*four, number, 4), wanted) << data << number;
    }
  }
}

TEST(Pictures, ResumeInTheMiddleOfAnEpoch) {
  const PictureOptions options = everything("drawings");
  const auto first = Pictures::open(options);
  std::vector<test::MadeBatch> made;
  for (uint64_t number = 0; number < 20; ++number) made.push_back(test::batch_of(*first, number, 8));
  const auto again = Pictures::open(options);
  for (const uint64_t number : {9, 10, 17, 3})
    EXPECT_EQ(test::batch_of(*again, number, 8), made[number]) << number;
}

TEST(Pictures, AnEpochHasEachPictureOnce) {
  const auto pictures = Pictures::open(test::picture_options("drawings"));
  for (const uint64_t epoch : {0, 1}) {
    std::multiset<uint64_t> items;
    for (uint64_t i = 0; i < 7; ++i) {
      const auto made = test::batch_of(*pictures, epoch * 7 + i, 8);
      EXPECT_EQ(made.rows, i == 6 ? 2 : 8);
      items.insert(made.items.begin(), made.items.begin() + made.rows);
      for (size_t row = static_cast<size_t>(made.rows); row < 8; ++row) EXPECT_EQ(made.labels[row], kNoClass);
    }
    EXPECT_EQ(items.size(), 50u);
    EXPECT_EQ(std::set<uint64_t>(items.begin(), items.end()).size(), 50u);
  }
  EXPECT_NE(test::batch_of(*pictures, 0, 8).items, test::batch_of(*pictures, 7, 8).items);
}

TEST(Pictures, WhatIsHeldOutIsNotTrainedWith) {
  PictureOptions options = test::picture_options("drawings");
  options.held_out = 0.3;
  const auto train = Pictures::open(options);
  options.source.test = true;
  options.shuffle = false;
  const auto test_part = Pictures::open(options);
  EXPECT_EQ(train->count(), 35u);
  EXPECT_EQ(test_part->count(), 15u);
  auto items = test::batch_of(*train, 0, 35).items;
  const auto held = test::batch_of(*test_part, 0, 15).items;
  items.insert(items.end(), held.begin(), held.end());
  EXPECT_EQ(std::set<uint64_t>(items.begin(), items.end()).size(), 50u);
}

TEST(Pictures, BadOnesAreNamedOrSkippedAndCounted) {
  const test::Scratch scratch;
  test::fill_folder(scratch);
  scratch.put("a/1.png", "not a picture at all");
  scratch.put("b/0.JPG", test::png_claiming(60000, 60000, test::png_of(test::sample_picture())));
  PictureOptions options = test::picture_options("folder:" + scratch.path().string());
  options.shuffle = false;
  for (const int workers : {0, 4}) {
    options.workers = workers;
    options.bad = BadPicture::kError;
    const auto strict = Pictures::open(options);
    for (int again = 0; again < 2; ++again) {
      const auto failed = test::failure([&] { test::batch_of(*strict, 0, 5); });
      EXPECT_EQ(failed.code, Code::kCorruptFile);
      EXPECT_NE(failed.message.find("a/1.png"), std::string::npos)
          << failed.message;  // the first, whoever is faster
    }
    options.bad = BadPicture::kSkip;
    const auto skipping = Pictures::open(options);
    EXPECT_EQ(test::batch_of(*skipping, 0, 5).labels, (std::vector<int32_t>{0, kNoClass, 0, kNoClass, 1}));
    EXPECT_EQ(test::batch_of(*skipping, 1, 5).rows, 5);
    EXPECT_EQ(skipping->bad(), 2u);
    options.bad = BadPicture::kReplace;
    const auto replacing = Pictures::open(options);
    EXPECT_EQ(test::batch_of(*replacing, 0, 5).items, (std::vector<uint64_t>{0, 2, 2, 4, 4}));
  }
}

TEST(Pictures, MixesEachRowWithTheOneBefore) {
  PictureOptions options = test::picture_options("drawings");
  const auto plain = Pictures::open(options);
  for (const bool cuts : {false, true}) {
    (cuts ? options.cutmix : options.mixup) = 1;
    const auto mixing = Pictures::open(options);
    (cuts ? options.cutmix : options.mixup) = 0;
    for (uint64_t number = 0; number < 14; ++number) {
      const auto was = test::batch_of(*plain, number, 8), made = test::batch_of(*mixing, number, 8);
      for (size_t row = 0; row < 8; ++row) {
        const auto real = static_cast<size_t>(made.rows), other = (row + real - 1) % real;
        EXPECT_EQ(made.labels[row], was.labels[row]);
        if (row >= real) continue;
        EXPECT_EQ(made.others[row], was.labels[other]);
        const float share = made.shares[row];
        ASSERT_TRUE(share >= 0 && share <= 1);
        size_t own = 0;
        for (size_t i = 0; i < 768; ++i) {
          const float mine = was.pixels[row * 768 + i], theirs = was.pixels[other * 768 + i],
                      got = made.pixels[row * 768 + i];
          own += got == mine;
          const float wanted = !cuts ? share * mine + (1 - share) * theirs : got == mine ? mine : theirs;
          ASSERT_NEAR(got, wanted, cuts ? 0 : 1e-6);
        }
        EXPECT_TRUE(!cuts || static_cast<float>(own) / 768 + 1e-6f >= share);
      }
    }
  }
}

TEST(Pictures, GreyAndMasks) {
  PictureOptions options = test::picture_options("drawings");
  options.augment.channels = 1;
  options.augment.mean = {0.5f, 0.5f, 0.5f};
  options.augment.deviation = {0.25f, 0.25f, 0.25f};
  const auto grey = Pictures::open(options);
  const auto made = test::batch_of(*grey, 0, 4, 16, true);
  EXPECT_EQ(std::set<int32_t>(made.masks.begin(), made.masks.begin() + 256),
            (std::set<int32_t>{0, made.labels[0] + 1}));
  for (size_t i = 0; i < 4 * 256; ++i) ASSERT_LE(std::abs(made.pixels[i]), 2.0f);
  for (size_t i = 4 * 256; i < 4 * 768; ++i) ASSERT_EQ(made.pixels[i], 0.0f);  // one number a pixel
}

TEST(Pictures, RefusesWhatLeavesNothing) {
  PictureOptions options = test::picture_options("drawings");
  options.held_out = 0.001;
  options.source.test = true;
  EXPECT_EQ(test::failure([&] { Pictures::open(options); }).code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::data
