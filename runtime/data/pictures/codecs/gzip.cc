#include <zlib.h>

#include <algorithm>

#include "runtime/data/pictures/codecs/codecs.h"

namespace cairn::data {

std::vector<std::byte> gunzip(Coded coded, std::string_view name, uint64_t limit) {
  constexpr size_t kStep = size_t{1} << 20;
  z_stream stream = {};
  require(inflateInit2(&stream, 15 + 16) == Z_OK, Code::kOutOfMemory, name, ": no memory to decompress it");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  std::vector<std::byte> out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(coded.data()));
  size_t left = coded.size();
  for (int result = Z_OK; result != Z_STREAM_END;) {
    const size_t had = out.size(), part = std::min(left, kStep);
    require(had < limit, Code::kCorruptFile, name, ": it holds more than ", limit, " bytes");
    out.resize(had + std::min<size_t>(kStep, limit - had));
    stream.avail_in = static_cast<uInt>(part);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    result = inflate(&stream, Z_NO_FLUSH);
    left -= part - stream.avail_in;
    out.resize(out.size() - stream.avail_out);
    require(result != Z_MEM_ERROR, Code::kOutOfMemory, name, ": no memory to decompress it");
    require(result == Z_STREAM_END || (result == Z_OK && (out.size() > had || part > stream.avail_in)),
            Code::kCorruptFile, name, ": no valid gzip file: it is truncated or changed");
  }
  return out;
}

}  // namespace cairn::data
