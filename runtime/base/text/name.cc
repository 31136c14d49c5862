#include "runtime/base/text/name.h"

#include "runtime/base/error.h"
#include "runtime/base/text/utf8.h"

namespace cairn {

namespace {

// "a region", "an input".
std::string one(std::string_view what) {
  const bool vowel = std::string_view("aeiou").find(what.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(what);
}

}  // namespace

// Messages do not repeat the name: it may be what no terminal and no JSON reader takes.
void check_name(std::string_view name, std::string_view what) {
  require(!name.empty(), Code::kInvalidArgument, one(what), " has no name: give it one of 1 to ",
          kMaxNameBytes, " bytes");
  require(name.size() <= kMaxNameBytes, Code::kInvalidArgument, "the name of ", one(what), " has ",
          name.size(), " bytes: give it one of at most ", kMaxNameBytes);
  for (size_t at = 0; at < name.size();) {
    require(static_cast<unsigned char>(name[at]) >= 0x20, Code::kInvalidArgument, "the name of ", one(what),
            " holds a control character (byte ", static_cast<int>(name[at]), " at ", at,
            "): names are printed and stored as text");
    const size_t size = utf8_size(name.substr(at));
    require(size > 0, Code::kInvalidArgument, "the name of ", one(what), " is not UTF-8 (at byte ", at,
            "): names are stored as UTF-8");
    at += size;
  }
  require(name != "__metadata__", Code::kInvalidArgument, one(what),
          " cannot be named '__metadata__': safetensors files keep this name for themselves");
}

}  // namespace cairn
