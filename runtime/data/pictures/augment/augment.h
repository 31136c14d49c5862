// Augmentation as torchvision's v2 transforms define it, on bytes: what is drawn is a pure function of the numbers given.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/data/pictures/draws.h"
#include "runtime/data/pictures/picture.h"

namespace cairn::data {

enum class Filter : uint32_t { kBilinear = 0, kBicubic = 1 };

// A part of a picture, in pixels of it.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

enum class Crop : uint32_t {
  kCentre = 0,         // the shorter side resized, the middle taken
  kRandomResized = 1,  // a random part, of a share `scale` of the pixels and an aspect `ratio`, resized
  kPadded = 2,         // as kCentre, then `padding` black pixels on each side, and a random part
};

struct Augment {
  int width = 0, height = 0;
  int channels = kColours;  // or 1: grey
  Crop crop = Crop::kCentre;
  Filter filter = Filter::kBilinear;
  double resize = 1;  // kCentre: the shorter side, of the output's; the rest is cut off
  std::array<double, 2> scale = {0.08, 1}, ratio = {3.0 / 4, 4.0 / 3};
  int padding = 0;
  double flip = 0;  // probability
  double brightness = 0, contrast = 0, saturation = 0,
         hue = 0;              // 0: left alone; else factors of 1 - x to 1 + x
  int ops = 0, magnitude = 9;  // RandAugment; 0 ops: none
  std::array<float, kColours> mean = {}, deviation = {1, 1, 1};  // of pixels in 0..1
};

// What to take of a picture, drawn from the size that its header claims, and to what size it is resized.
struct Taken {
  Box box;
  PictureSize resized;
  int left = 0, top = 0;  // of the output in what was resized, which may stick out: black
};
Taken take(const Augment& augment, PictureSize size, Draws& draws);

// By how much a picture may be decoded smaller and still have all pixels that `taken` asks for: 1, 2, 4 or 8.
int shrink_of(const Taken& taken);

// Of the picture, decoded from `size` perhaps smaller: [height, width, channels] normalised.
void apply(const Augment& augment, const Taken& taken, PictureSize size, const Picture& picture, Draws& draws,
           float* out);

// As Pillow resizes bytes: the box of a picture, with antialias, to the bit.
Picture resized(const Picture& picture, Box box, PictureSize to, Filter filter);

// In place, as torchvision's functional does on tensors of bytes.
void adjust_brightness(Picture& picture, double factor);
void adjust_contrast(Picture& picture, double factor);
void adjust_saturation(Picture& picture, double factor);
void adjust_hue(Picture& picture, double shift);  // -0.5..0.5
void flip(Picture& picture);
void jitter(const Augment& augment, Picture& picture, Draws& draws);
void rand_augment(int ops, int magnitude, Picture& picture, Draws& draws);
int rand_augment_ops();
void rand_augment_op(int number, int bin, bool negative, Picture& picture);  // one of them; bin: 0..30

}  // namespace cairn::data
