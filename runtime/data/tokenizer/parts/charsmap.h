// The rules in a `precompiled_charsmap`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tokenizer {

class Charsmap {
 public:
  // kCorruptFile naming `where`.
  Charsmap(std::string blob, const std::string& where);
  // The rule for the head of the text: the longest, or the shortest. False: there is none.
  bool find(std::string_view text, bool longest, size_t& size, std::string_view& replacement) const;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace cairn::tokenizer
