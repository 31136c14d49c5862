#include "runtime/compile/regions/region_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::engine {
namespace {

struct Row {
  const char *pattern, *path;
  bool matches;
};

TEST(RegionPattern, Matches) {
  const Row rows[] = {
      {"h0", "h0", true},
      {"h0", "h01", false},
      {"h0", "h0/attn", false},
      {"h*", "h0", true},
      {"h*", "h", true},
      {"h*", "h0/attn", false},  // a star ends at a '/'
      {"*", "h0/attn", false},
      {"*/attn", "h0/attn", true},
      {"*/*", "h0/attn", true},
      {"h*/attn", "h12/attn", true},
      {"h*/attn", "h12/mlp", false},
      {"h*/attn", "s0/h12/attn", false},
      {"h?", "h1", true},
      {"h?", "h12", false},
      {"h?", "h", false},
      {"h?attn", "h/attn", false},
      {"*1*2", "h1x2", true},
      {"*1*2", "h1x3", false},
      {"a*b*c", "abbbcbc", true},
      {"**", "h0", true},
      {"**", "h0/attn", true},
      {"**/attn", "attn", true},
      {"**/attn", "h0/attn", true},
      {"**/attn", "s0/h0/attn", true},
      {"**/attn", "h0/attn/qkv", false},
      {"s0/**", "s0", true},
      {"s0/**", "s0/h0/attn", true},
      {"s0/**", "s1/h0", false},
      {"s*/**/attn", "s0/h0/attn", true},
      {"s*/**/attn", "s0/attn", true},
      {"**/h1/**", "s0/h1/attn", true},
      {"**/h1/**", "s0/h2/attn", false},
      {"h**", "h0/attn", false},  // as one star: it is no name of its own
      {"h**", "h0", true},
      {"h[0-3]", "h2", true},
      {"h[0-3]", "h4", false},
      {"h[!0-3]", "h4", true},
      {"h[!0-3]", "h2", false},
      {"h[13]", "h3", true},
      {"h[13]", "h2", false},
      {"h[]]", "h]", true},
      {"h[", "h[", true},
      {"h[0", "h0", false},
      {"h[a-]", "h-", true},
      {"[!/]", "/", false},
      {"a[/]b", "a/b", false},
      {"", "h0", false},
      {"h0/", "h0", false},
      {"/h0", "h0", false},
      {"h0//attn", "h0/attn", false},
      {"*[x]*", "*[x]*", true},                 // a path matches itself
      {"\xc3\xa9?", "\xc3\xa9\xc3\xa8", true},  // '?' is a character, not a byte
      {"??", "\xc3\xa9", false},
      {"[\xc3\xa0-\xc3\xbc]", "\xc3\xa9", true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(matches_region(row.pattern, row.path), row.matches) << row.pattern << " " << row.path;
}

// Time grows with the product of both lengths, not with its power.
TEST(RegionPattern, ManyStarsOnLongPathsEnd) {
  std::string pattern, path(3000, 'a');
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches_region(pattern + "b", path));
  EXPECT_TRUE(matches_region(pattern, path));
  std::string deep, stars;
  for (int i = 0; i < 500; ++i) deep += "x/", stars += "**/";
  EXPECT_TRUE(matches_region(stars + "y", deep + "y"));
  EXPECT_FALSE(matches_region(stars + "z", deep + "y"));
}

}  // namespace
}  // namespace cairn::engine
