#include <turbojpeg.h>

#include <memory>

#include "runtime/data/pictures/codecs/begins.h"

namespace cairn::data {
namespace {

struct JpegReader {
  std::unique_ptr<void, void (*)(void*)> handle{tjInitDecompress(), [](void* h) { tjDestroy(h); }};
  std::string_view name;
  Coded coded;
  PictureSize size;
  int space = 0;

  JpegReader(Coded bytes, std::string_view of) : name(of), coded(bytes) {
    require(handle != nullptr, Code::kOutOfMemory, name,
            ": the system gave no memory for a bookkeeping object");
    int width = 0, height = 0, sampling = 0;
    const int result = tjDecompressHeader3(handle.get(), data(), static_cast<unsigned long>(coded.size()),
                                           &width, &height, &sampling, &space);
    // Of odd samplings and of warnings the header is there nevertheless.
    require(result == 0 || (width > 0 && height > 0), Code::kCorruptFile, name,
            ": no valid JPEG file: ", tjGetErrorStr2(handle.get()));
    size = checked_size(static_cast<uint64_t>(width), static_cast<uint64_t>(height), name);
  }
  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(coded.data()); }
};

PictureSize jpeg_size(Coded coded, std::string_view name) { return JpegReader(coded, name).size; }

Picture jpeg_decode(Coded coded, std::string_view name, int shrink) {
  const JpegReader reader(coded, name);
  const tjscalingfactor factor = {1, shrink};
  Picture picture(TJSCALED(reader.size.width, factor), TJSCALED(reader.size.height, factor));
  const bool ink = reader.space == TJCS_CMYK || reader.space == TJCS_YCCK;
  std::vector<uint8_t> four(ink ? picture.rgb.size() / kColours * 4 : 0);
  const int result =
      tjDecompress2(reader.handle.get(), reader.data(), static_cast<unsigned long>(coded.size()),
                    ink ? four.data() : picture.rgb.data(), picture.width, 0, picture.height,
                    ink ? TJPF_CMYK : TJPF_RGB, TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS);
  require(result == 0, Code::kCorruptFile, name,
          ": no valid JPEG file: ", tjGetErrorStr2(reader.handle.get()));
  for (size_t i = 0; i < four.size() / 4; ++i)  // Adobe's inverted inks
    for (size_t c = 0; c < kColours; ++c)
      picture.rgb[i * kColours + c] = static_cast<uint8_t>(four[i * 4 + c] * four[i * 4 + 3] / 255);
  return picture;
}

}  // namespace

const Codec kJpeg = {"JPEG", begins_as_jpeg, jpeg_size, jpeg_decode};

}  // namespace cairn::data
