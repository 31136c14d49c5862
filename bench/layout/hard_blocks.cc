#include "bench/layout/hard_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace cairn::bench {
namespace {

using plan::Block;

constexpr int64_t kUnit = 64;

struct Rectangle {
  int32_t begin, end;
  int64_t low, high;  // units
};

class Cutter {
 public:
  // flat: how much more often a cut separates addresses than times. pinwheels: of ten cuts.
  Cutter(uint32_t seed, double flat, uint32_t pinwheels)
      : random_(seed), flat_(flat), pinwheels_(pinwheels) {}

  std::vector<Block> run(int count) {
    std::vector<Rectangle> parts = {{0, 1024, 0, 16384}};
    while (static_cast<int>(parts.size()) < count) {
      const auto largest = std::max_element(parts.begin(), parts.end(),
                                            [&](const auto& a, const auto& b) { return area(a) < area(b); });
      // Now and then any part instead of the largest, so that sizes are mixed.
      auto chosen = random_() % 3 ? largest : parts.begin() + random_() % parts.size();
      if (chosen->end - chosen->begin < 4 || chosen->high - chosen->low < 4) chosen = largest;
      const Rectangle r = *chosen;
      if (r.end - r.begin < 4 && r.high - r.low < 4) break;
      parts.erase(chosen);
      cut(r, parts);
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    std::vector<Block> blocks;
    for (const Rectangle& r : parts) blocks.push_back({r.begin, r.end, (r.high - r.low) * kUnit});
    return blocks;
  }

 private:
  static double area(const Rectangle& r) {
    return static_cast<double>(r.end - r.begin) * static_cast<double>(r.high - r.low);
  }
  // Between a fifth and four fifths of the way.
  int64_t between(int64_t low, int64_t high) {
    const int64_t margin = std::max<int64_t>(1, (high - low) / 5);
    return low + margin +
           static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low - 2 * margin + 1));
  }

  void cut(const Rectangle& r, std::vector<Rectangle>& parts) {
    const bool narrow = r.end - r.begin < 4, low = r.high - r.low < 4;
    if (!narrow && !low && random_() % 10 < pinwheels_) {
      const auto middle = static_cast<int32_t>((r.begin + r.end) / 2);
      const int64_t half = (r.low + r.high) / 2;
      const auto left = static_cast<int32_t>(between(r.begin, middle));
      const auto right = static_cast<int32_t>(between(middle, r.end));
      const int64_t below = between(r.low, half), above = between(half, r.high);
      for (const Rectangle& part :
           {Rectangle{r.begin, right, r.low, below}, Rectangle{right, r.end, r.low, above},
            Rectangle{left, r.end, above, r.high}, Rectangle{r.begin, left, below, r.high},
            Rectangle{left, right, below, above}})
        if (part.begin < part.end && part.low < part.high) parts.push_back(part);
      return;
    }
    const double across = flat_ * static_cast<double>(r.high - r.low) / 16384;
    const double along = static_cast<double>(r.end - r.begin) / 1024;
    const double draw = static_cast<double>(random_() % 1000) / 1000;
    if (!low && (narrow || draw < across / (across + along))) {
      const int64_t at = between(r.low, r.high);
      parts.push_back({r.begin, r.end, r.low, at});
      parts.push_back({r.begin, r.end, at, r.high});
    } else {
      const auto at = static_cast<int32_t>(between(r.begin, r.end));
      parts.push_back({r.begin, at, r.low, r.high});
      parts.push_back({at, r.end, r.low, r.high});
    }
  }

  std::mt19937 random_;
  double flat_;
  uint32_t pinwheels_;
};

std::vector<Block> cut(int count, uint32_t seed) { return Cutter(seed, 1, 0).run(count); }
std::vector<Block> pinwheel(int count, uint32_t seed) { return Cutter(seed, 1, 5).run(count); }
std::vector<Block> tiles(int count, uint32_t seed) { return Cutter(seed, 0.2, 1).run(count); }
std::vector<Block> lengthy(int count, uint32_t seed) { return Cutter(seed, 6, 2).run(count); }

int64_t octaves(std::mt19937& random, int count) {
  return kUnit *
         ((int64_t{16} << (random() % static_cast<uint32_t>(count))) + static_cast<int64_t>(random() % 16));
}

std::vector<Block> lifetimes(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    const auto a = static_cast<int32_t>(random() % 1000), b = static_cast<int32_t>(random() % 1000);
    blocks.push_back({std::min(a, b), std::max(a, b) + 1, octaves(random, 4)});
  }
  return blocks;
}

std::vector<Block> skips(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  const int levels = count / 5, end = 8 * levels;
  for (int i = 0; i < levels; ++i) {
    const int forward = 4 * i;
    const int backward = end - 4 * i - 4 + static_cast<int>(random() % 24) - 12;
    const int last = std::clamp(backward + 2, forward + 2, end);
    blocks.push_back({forward, last, octaves(random, 4)});
    blocks.push_back({std::max(0, last - 2 - static_cast<int>(random() % 40)), last, octaves(random, 4)});
    for (int k = 0; k < 3; ++k) {
      const int at = static_cast<int>(random() % static_cast<uint32_t>(end - 1));
      blocks.push_back({at, std::min(end, at + 1 + static_cast<int>(random() % 60)), octaves(random, 5)});
    }
  }
  return blocks;
}

constexpr std::array<HardKind, 6> kKinds = {{{"cut", true, cut},
                                             {"pinwheel", true, pinwheel},
                                             {"long", true, lengthy},
                                             {"lifetimes", false, lifetimes},
                                             {"tiles", true, tiles},
                                             {"skips", false, skips}}};

}  // namespace

std::span<const HardKind> hard_kinds() { return kKinds; }

}  // namespace cairn::bench
