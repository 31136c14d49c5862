#include "runtime/base/text/edits.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

TEST(Edits, CountsWhatIsAddedLeftOutAndChanged) {
  EXPECT_EQ(edits("", ""), 0u);
  EXPECT_EQ(edits("", "abc"), 3u);
  EXPECT_EQ(edits("abc", ""), 3u);
  EXPECT_EQ(edits("attn", "atn"), 1u);
  EXPECT_EQ(edits("h*/attn", "h0/attn"), 1u);
  EXPECT_EQ(edits("kitten", "sitting"), 3u);
  EXPECT_EQ(edits("ab", "ba"), 2u) << "a swap is two changes";
}

TEST(Edits, IsADistance) {
  const std::string words[] = {"", "a", "attn", "h0/attn", "h10/mlp", "mlp"};
  for (const std::string& a : words)
    for (const std::string& b : words) {
      EXPECT_EQ(edits(a, b), edits(b, a));
      EXPECT_EQ(edits(a, b) == 0, a == b);
      for (const std::string& c : words) EXPECT_LE(edits(a, c), edits(a, b) + edits(b, c));
    }
}

}  // namespace
}  // namespace cairn
