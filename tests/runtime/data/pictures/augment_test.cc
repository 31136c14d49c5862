// Against Pillow and torchvision (make_golden.py), and what is drawn.
#include "runtime/data/pictures/augment/augment.h"

#include "tests/runtime/data/pictures/sample.h"

namespace cairn::data {
namespace {

TEST(Augment, ResizesAsPillowToTheBit) {
  const Picture picture = test::sample_picture();
  const Box all = {0, 0, 41, 31};
  const struct {
    const char* name;
    PictureSize size;
    Box boxes[2];
  } cases[] = {{"resize_down", {17, 23}, {all, all}},
               {"resize_up", {90, 71}, {all, all}},
               {"resize_mixed", {100, 11}, {all, all}},
               {"resize_box", {24, 20}, {{3, 5, 30, 24}, {1.5, 2.25, 39.5, 29.75}}}};
  for (const auto& row : cases) {
    const Picture golden = test::golden_picture(row.name);
    for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
      const int number = static_cast<int>(filter);
      EXPECT_EQ(test::differing(resized(picture, row.boxes[number], row.size, filter), golden,
                                number * row.size.height),
                0u)
          << row.name << " " << number;
    }
  }
}

TEST(Augment, TakesTheMiddleAsTorchvision) {
  Augment augment;
  augment.width = augment.height = 16;
  augment.resize = 20.0 / 16;
  Draws draws(1, Purpose::kAugment, 0, 0);
  const Picture picture = test::sample_picture();
  const PictureSize size = {picture.width, picture.height};
  std::vector<float> out(16 * 16 * 3);
  apply(augment, take(augment, size, draws), size, picture, draws, out.data());
  const Picture golden = test::golden_picture("centre");
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(golden.rgb[i]) / 255.0f) << i;
}

TEST(Augment, ResizesAPartAsTorchvision) {
  Augment augment;
  augment.width = augment.height = 16;
  Draws draws(1, Purpose::kAugment, 0, 0);
  const Picture picture = test::sample_picture();
  std::vector<float> out(16 * 16 * 3);
  apply(augment, {{3, 5, 30, 24}, {16, 16}}, {picture.width, picture.height}, picture, draws, out.data());
  const Picture golden = test::golden_picture("resized_crop");
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(golden.rgb[i]) / 255.0f) << i;
}

TEST(Augment, AdjustsColoursAsTorchvision) {
  const Picture golden = test::golden_picture("colour");
  const struct {
    void (*adjust)(Picture&, double);
    double by;
  } cases[] = {{adjust_brightness, 0.55}, {adjust_brightness, 1.3},  {adjust_contrast, 0.55},
               {adjust_contrast, 1.3},    {adjust_saturation, 0.55}, {adjust_saturation, 1.3},
               {adjust_hue, -0.31},       {adjust_hue, 0.12}};
  int number = 0;
  for (const auto& row : cases) {
    Picture picture = test::sample_picture();
    row.adjust(picture, row.by);
    const int top = number * picture.height;
    EXPECT_EQ(test::differing(picture, golden, top, 1), 0u) << number;
    EXPECT_LE(test::differing(picture, golden, top), 10u)
        << number;  // of 3,813: rounded otherwise in float32
    ++number;
  }
}

TEST(Augment, RandAugmentsOpsAreTorchvisions) {
  const Picture golden = test::golden_picture("rand_augment");
  for (int number = 0; number < rand_augment_ops(); ++number)
    for (const bool negative : {false, true}) {
      Picture picture = test::sample_picture();
      rand_augment_op(number, 9, negative, picture);
      const int top = (2 * number + (negative ? 1 : 0)) * picture.height;
      EXPECT_LE(test::differing(picture, golden, top), 30u)
          << number << negative;  // ties of the nearest pixel
    }
}

TEST(Augment, IsAFunctionOfItsNumbersAlone) {
  Augment augment;
  augment.width = augment.height = 24;
  augment.crop = Crop::kRandomResized;
  augment.flip = 0.5;
  augment.ops = 2;
  augment.brightness = augment.contrast = augment.saturation = 0.4;
  augment.hue = 0.1;
  const Picture picture = test::sample_picture();
  const PictureSize size = {picture.width, picture.height};
  const auto made = [&](uint64_t seed, uint64_t epoch, uint64_t item) {
    Draws draws(seed, Purpose::kAugment, epoch, item);
    std::vector<float> out(24 * 24 * 3);
    apply(augment, take(augment, size, draws), size, picture, draws, out.data());
    return out;
  };
  EXPECT_EQ(made(1, 2, 3), made(1, 2, 3));
  EXPECT_NE(made(1, 2, 3), made(2, 2, 3));
  EXPECT_NE(made(1, 2, 3), made(1, 3, 3));
  EXPECT_NE(made(1, 2, 3), made(1, 2, 4));
}

TEST(Augment, RandomPartsHaveTheSharesAndRatiosAskedFor) {
  Augment augment;
  augment.width = augment.height = 8;
  augment.crop = Crop::kRandomResized;
  augment.scale = {0.2, 0.5};
  double least = 1, most = 0;
  for (uint64_t item = 0; item < 2000; ++item) {
    Draws draws(5, Purpose::kAugment, 0, item);
    const Box box = take(augment, {640, 480}, draws).box;
    ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.right <= 640 && box.bottom <= 480);
    const double w = box.right - box.left, h = box.bottom - box.top, share = w * h / (640 * 480);
    ASSERT_TRUE(w / h > 0.74 && w / h < 1.35) << w << " x " << h;
    least = std::min(least, share), most = std::max(most, share);
  }
  EXPECT_NEAR(least, 0.2, 0.01);
  EXPECT_NEAR(most, 0.5, 0.01);
}

TEST(Augment, PaddingIsBlackAndMovesThePicture) {
  Augment augment;
  augment.width = 41;
  augment.height = 31;
  augment.crop = Crop::kPadded;
  augment.padding = 4;
  const Picture picture = test::sample_picture();
  const PictureSize size = {41, 31};
  bool moved = false;
  for (uint64_t item = 0; item < 20; ++item) {
    Draws draws(5, Purpose::kAugment, 0, item);
    const Taken taken = take(augment, size, draws);
    ASSERT_TRUE(std::abs(taken.left) <= 4 && std::abs(taken.top) <= 4);
    moved = moved || taken.left != 0 || taken.top != 0;
    std::vector<float> out(41 * 31 * 3);
    apply(augment, taken, size, picture, draws, out.data());
    for (int y = 0; y < 31; ++y)
      for (int x = 0; x < 41; ++x) {
        const int from_x = x + taken.left, from_y = y + taken.top;
        const bool inside = from_x >= 0 && from_y >= 0 && from_x < 41 && from_y < 31;
        ASSERT_EQ(out[static_cast<size_t>((y * 41 + x) * 3)],
                  inside ? static_cast<float>(*picture.at(from_x, from_y)) / 255.0f : 0.0f);
      }
  }
  EXPECT_TRUE(moved);
}

TEST(Augment, ShrinksOnlyWhatKeepsEveryPixelAskedFor) {
  Augment augment;
  augment.width = augment.height = 224;
  Draws draws(1, Purpose::kAugment, 0, 0);
  const struct {
    PictureSize size;
    int shrink;
  } cases[] = {{{224, 224}, 1}, {{447, 500}, 1}, {{448, 500}, 2}, {{1000, 900}, 4}, {{4000, 3000}, 8}};
  for (const auto& row : cases)
    EXPECT_EQ(shrink_of(take(augment, row.size, draws)), row.shrink) << row.size.width;
}

}  // namespace
}  // namespace cairn::data
