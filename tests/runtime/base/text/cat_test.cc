#include "runtime/base/text/cat.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <sstream>

namespace cairn {
namespace {

enum Plain : uint32_t { kSeven = 7 };

// Messages and digests were made by streams once, and digests are in files.
TEST(Cat, PrintsAsAStreamOfTheCLocaleDoes) {
  const auto streamed = [](const auto& part) {
    std::ostringstream out;
    out << part;
    return out.str();
  };
  for (const double number :
       {0.0, -0.0, 1.0, -1.5, 1e6, 123456.0, 1234567.0, 1e-4, 1e-5, 0.1, 1.0 / 3, 1e300, -1e-300, 5e-324,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(cat(number), streamed(number));
    EXPECT_EQ(cat(static_cast<float>(number)), streamed(static_cast<float>(number)));
  }
  for (const int64_t number : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(cat(number), streamed(number));
    EXPECT_EQ(cat(static_cast<uint64_t>(number)), streamed(static_cast<uint64_t>(number)));
    EXPECT_EQ(cat(static_cast<int32_t>(number)), streamed(static_cast<int32_t>(number)));
    EXPECT_EQ(cat(static_cast<uint16_t>(number)), streamed(static_cast<uint16_t>(number)));
  }
  EXPECT_EQ(cat(true, false), "10");
  EXPECT_EQ(cat('c', "literal", std::string("string"), std::string_view("view"), kSeven),
            "cliteralstringview7");
  EXPECT_EQ(cat(), "");
  const void* const place = &streamed;
  EXPECT_EQ(cat(place), streamed(place));
}

TEST(Cat, GivesSeventeenDigitsThatReadBack) {
  for (const double number : {0.1, 1.0 / 3, 2.5e-310, 1.7976931348623157e308}) {
    std::string text;
    append_text(text, number, 17);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
  }
}

TEST(Cat, DoesNotFollowTheHostsLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  struct Restore {
    std::string name;
    ~Restore() { std::setlocale(LC_ALL, name.c_str()); }
  } restore{before};
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new Comma));
  EXPECT_EQ(cat(1.5, ' ', 1234567), "1.5 1234567");
  std::locale::global(old);
}

}  // namespace
}  // namespace cairn
