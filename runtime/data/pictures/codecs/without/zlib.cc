// Stands in for gzip's files where CAIRN_ZLIB is off.
#include "runtime/data/pictures/codecs/codecs.h"

namespace cairn::data {

std::vector<std::byte> gunzip(Coded, std::string_view name, uint64_t) {
  codec_left_out(name, "a compressed file", "CAIRN_ZLIB");
}

}  // namespace cairn::data
