// Labelled shapes drawn from the seed: a pure function of seed and number. Held-out ones have numbers that training never
// uses.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/data/pictures/draws.h"
#include "runtime/data/pictures/source.h"

namespace cairn::data {
namespace {

constexpr uint64_t kHeldOutDrawings = uint64_t{1} << 40;
constexpr double kPi = 3.14159265358979323846;
constexpr double kMostTurn = kPi / 12;  // of a shape, either way
constexpr double kMostShift = 0.5;      // from the middle, of the way to the edge

struct Point {
  double x, y;
};

// Distances to the outline in units of the shape's radius, negative inside.
double disc(const Point& p, double x, double y, double radius) {
  return std::sqrt((p.x - x) * (p.x - x) + (p.y - y) * (p.y - y)) - radius;
}
double circle(const Point& p) { return disc(p, 0, 0, 0.9); }
double ring(const Point& p) { return std::abs(disc(p, 0, 0, 0.75)) - 0.2; }
double crescent(const Point& p) { return std::max(disc(p, 0, 0, 0.95), -disc(p, 0.55, 0, 0.75)); }

double polygon(const Point& p, const std::vector<Point>& corners) {
  double least = 1e9, sign = 1;
  for (size_t i = 0, j = corners.size() - 1; i < corners.size(); j = i++) {
    const Point &a = corners[i], &b = corners[j];
    const double ex = b.x - a.x, ey = b.y - a.y, wx = p.x - a.x, wy = p.y - a.y;
    const double along = std::clamp((wx * ex + wy * ey) / (ex * ex + ey * ey), 0.0, 1.0);
    const double dx = wx - ex * along, dy = wy - ey * along;
    least = std::min(least, dx * dx + dy * dy);
    const bool above = p.y >= a.y, below = p.y<b.y, left = ex * wy> ey * wx;
    if ((above && below && left) || (!above && !below && !left)) sign = -sign;
  }
  return sign * std::sqrt(least);
}

std::vector<Point> star_corners() {
  std::vector<Point> corners;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? 1 : 0.42, angle = kPi * i / 5;
    corners.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return corners;
}

std::vector<Point> heart_corners() {
  std::vector<Point> corners;
  for (int i = 0; i < 28; ++i) {
    const double t = 2 * kPi * i / 28, s = std::sin(t);
    corners.push_back(
        {s * s * s * 0.95,
         -(13 * std::cos(t) - 5 * std::cos(2 * t) - 2 * std::cos(3 * t) - std::cos(4 * t)) / 17});
  }
  return corners;
}

struct Shape {
  const char* name;
  double (*distance)(const Point&);  // null: the polygon of these corners
  std::vector<Point> corners;
};

using ShapeTable = std::array<Shape, kDrawnShapes>;
const ShapeTable& shapes() {
  static const ShapeTable all = {{
      {"circle", circle, {}},
      {"square", nullptr, {{-0.75, -0.75}, {0.75, -0.75}, {0.75, 0.75}, {-0.75, 0.75}}},
      {"triangle", nullptr, {{0, -1}, {0.87, 0.5}, {-0.87, 0.5}}},
      {"cross",
       nullptr,
       {{-0.3, -1},
        {0.3, -1},
        {0.3, -0.3},
        {1, -0.3},
        {1, 0.3},
        {0.3, 0.3},
        {0.3, 1},
        {-0.3, 1},
        {-0.3, 0.3},
        {-1, 0.3},
        {-1, -0.3},
        {-0.3, -0.3}}},
      {"ring", ring, {}},
      {"star", nullptr, star_corners()},
      {"crescent", crescent, {}},
      {"bar", nullptr, {{-1, -0.25}, {1, -0.25}, {1, 0.25}, {-1, 0.25}}},
      {"heart", nullptr, heart_corners()},
      {"arrow",
       nullptr,
       {{1, 0}, {0.15, 0.85}, {0.15, 0.3}, {-1, 0.3}, {-1, -0.3}, {0.15, -0.3}, {0.15, -0.85}}},
  }};
  return all;
}

struct Colour {
  const char* name;
  std::array<double, kColours> rgb;
};
// From dark to bright. A shape is brighter than what it is drawn on.
constexpr std::array<Colour, 8> kColourNames = {{
    {"black", {20, 20, 20}},
    {"blue", {35, 55, 165}},
    {"purple", {120, 35, 145}},
    {"red", {215, 45, 40}},
    {"green", {60, 175, 75}},
    {"orange", {245, 150, 40}},
    {"yellow", {240, 220, 60}},
    {"white", {240, 240, 240}},
}};

struct Size {
  const char* name;
  double least, most;  // radius, of the shorter side
};
constexpr std::array<Size, 3> kSizes = {
    {{"small", 0.28, 0.32}, {"middle-sized", 0.33, 0.38}, {"large", 0.39, 0.45}}};

// What is drawn, before any pixel is.
struct Drawing {
  int shape, colour, ground, size;
  double radius, x, y, cosine, sine, noise;
  std::array<double, kColours> ink, paper, slope;

  Drawing(uint64_t seed, uint64_t number, int classes, int width, int height) {
    Draws draws(seed, Purpose::kDrawing, 0, number);
    shape = draws.below(classes);
    const int colours = static_cast<int>(kColourNames.size());
    colour = 1 + draws.below(colours - 1);
    ground = draws.below(colour);
    size = draws.below(static_cast<int>(kSizes.size()));
    const double side = std::min(width, height);
    radius =
        side * draws.between(kSizes[static_cast<size_t>(size)].least, kSizes[static_cast<size_t>(size)].most);
    x = width / 2.0 + draws.between(-kMostShift, kMostShift) * (width / 2.0 - radius);
    y = height / 2.0 + draws.between(-kMostShift, kMostShift) * (height / 2.0 - radius);
    const double angle = draws.between(-kMostTurn, kMostTurn);
    cosine = std::cos(angle) / radius;
    sine = std::sin(angle) / radius;
    noise = draws.between(0, 16);
    for (size_t c = 0; c < kColours; ++c) {
      ink[c] = kColourNames[static_cast<size_t>(colour)].rgb[c] + draws.between(-15, 15);
      paper[c] = kColourNames[static_cast<size_t>(ground)].rgb[c] + draws.between(-15, 15);
      slope[c] = draws.between(-25, 25) / height;
    }
  }

  // How much of a pixel the shape covers.
  double cover(int column, int row) const {
    const double dx = column + 0.5 - x, dy = row + 0.5 - y;
    if (dx * dx + dy * dy > (radius + 1) * (radius + 1) * 1.05) return 0;
    const Point p = {dx * cosine + dy * sine, dy * cosine - dx * sine};
    const Shape& drawn = shapes()[static_cast<size_t>(shape)];
    const double distance = drawn.distance != nullptr ? drawn.distance(p) : polygon(p, drawn.corners);
    return std::clamp(0.5 - distance * radius, 0.0, 1.0);
  }
};

class DrawingSource final : public PictureSource {
 public:
  explicit DrawingSource(const SourceOptions& o)
      : count_(o.samples),
        first_(o.test ? kHeldOutDrawings : 0),
        seed_(o.seed),
        width_(o.width),
        height_(o.height) {
    require(o.classes <= kDrawnShapes && o.classes != 1, Code::kInvalidArgument, "classes is ", o.classes,
            "; drawings have 2 to ", kDrawnShapes, " classes");
    require(o.samples >= 1 && o.samples < kHeldOutDrawings, Code::kInvalidArgument, "samples is ", o.samples,
            "; wanted: 1 to ", kHeldOutDrawings - 1, " drawings");
    require(std::min(o.width, o.height) >= 8, Code::kInvalidArgument, "drawings of ", o.width, " x ",
            o.height, " pixels; at least 8 a side are needed to tell shapes apart");
    for (uint32_t i = 0; i < (o.classes == 0 ? kDrawnShapes : o.classes); ++i)
      classes_.emplace_back(shapes()[i].name);
  }
  uint64_t count() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  bool texts() const override { return true; }
  std::string name(uint64_t item) const override { return cat("drawing ", item); }
  int32_t label(uint64_t item) const override { return drawing(item).shape; }
  std::string text(uint64_t item) const override {
    const Drawing d = drawing(item);
    return cat("a ", kSizes[static_cast<size_t>(d.size)].name, " ",
               kColourNames[static_cast<size_t>(d.colour)].name, " ", classes_[static_cast<size_t>(d.shape)],
               " on ", kColourNames[static_cast<size_t>(d.ground)].name);
  }
  void read(uint64_t item, RawPicture& raw) const override {
    const Drawing d = drawing(item);
    raw.coded.clear();
    raw.picture = Picture(width_, height_);
    Draws noise(seed_, Purpose::kNoise, 0, first_ + item);
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) {
        const double cover = d.cover(x, y);
        const PhiloxBlock bits = noise.block();
        uint8_t* pixel = raw.picture.at(x, y);
        for (size_t c = 0; c < kColours; ++c) {
          const double paper = d.paper[c] + d.slope[c] * (y - height_ / 2);
          const double value = paper + (d.ink[c] - paper) * cover + (bits[c] * 0x1p-32 - 0.5) * 2 * d.noise;
          pixel[c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0) + 0.5);
        }
      }
  }
  void mask(uint64_t item, int32_t* pixels) const override {
    const Drawing d = drawing(item);
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) *pixels++ = d.cover(x, y) >= 0.5 ? d.shape + 1 : 0;
  }

 private:
  Drawing drawing(uint64_t item) const {
    return Drawing(seed_, first_ + item, static_cast<int>(classes_.size()), width_, height_);
  }
  uint64_t count_, first_, seed_;
  int width_, height_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<PictureSource> drawings(const SourceOptions& options) {
  return std::make_unique<DrawingSource>(options);
}

}  // namespace cairn::data
