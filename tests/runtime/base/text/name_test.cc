#include "runtime/base/text/name.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/base/text/utf8.h"

namespace cairn {
namespace {

std::string refusal(std::string_view name) {
  try {
    check_name(name, "parameter");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Name, WhatIsTakenAndWhatIsNot) {
  for (const char* good : {"w", "h0/attn/qkv.weight", "a b", "\"\\", "\x7f", "\xc3\xa9", "\xe2\x82\xac",
                           "\xf0\x9f\x97\xbb", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(refusal(good), "") << good;
  struct Bad {
    std::string name;
    const char* says;
  };
  const Bad kBad[] = {
      {"", "has no name"},
      {"a\nb", "control character (byte 10 at 1)"},
      {std::string("a\0", 2), "control character (byte 0 at 1)"},
      {"__metadata__", "safetensors"},
      {"ab\xff", "not UTF-8 (at byte 2)"},
      {"\x80", "not UTF-8 (at byte 0)"},
      {"\xc0\xaf", "not UTF-8"},          // overlong
      {"\xe0\x80\xaf", "not UTF-8"},      // overlong
      {"\xed\xa0\x80", "not UTF-8"},      // a surrogate
      {"\xf4\x90\x80\x80", "not UTF-8"},  // above U+10FFFF
      {"\xe2\x82", "not UTF-8"},          // cut off
  };
  for (const Bad& bad : kBad)
    EXPECT_NE(refusal(bad.name).find(bad.says), std::string::npos) << refusal(bad.name);
}

TEST(Name, WhatIsNamedHasItsArticle) {
  for (const auto& [what, begins] : {std::pair("input", "an input has"), std::pair("region", "a region has")})
    try {
      check_name("", what);
      FAIL() << what;
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).find(begins), 0u) << error.what();
    }
}

TEST(Name, TheLongestIsCountedInBytes) {
  EXPECT_EQ(refusal(std::string(kMaxNameBytes, 'x')), "");
  EXPECT_NE(refusal(std::string(kMaxNameBytes + 1, 'x')).find("4097 bytes"), std::string::npos);
  std::string wide;
  while (wide.size() < kMaxNameBytes) wide += "\xc3\xa9";
  EXPECT_EQ(refusal(wide), "");
  EXPECT_NE(refusal(wide + "\xc3\xa9"), "");
}

TEST(Name, EveryRefusalIsTextItself) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string said = refusal(std::string(3, static_cast<char>(byte)));
    EXPECT_TRUE(is_utf8(said)) << byte;
    EXPECT_EQ(said.empty(), byte >= 0x20 && byte < 0x80) << byte;
  }
}

}  // namespace
}  // namespace cairn
