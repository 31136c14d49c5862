// What a JSON object says of a picture.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace cairn::data {

struct Said {
  std::optional<std::string> image, text;
  std::optional<int64_t> label;
};

// Members image; text or caption; label or cls. kCorruptFile, naming `where`: no JSON object, or one of these of another type.
Said read_said(std::string_view json, const std::string& where);
// A class's number, as a text says it. kCorruptFile.
int32_t checked_label(int64_t label, const std::string& where);
int32_t label_of_text(std::string_view text, const std::string& where);

}  // namespace cairn::data
