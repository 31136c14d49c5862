// Files of pictures, encoded by the libraries that read them; IDX, CIFAR and tar files by hand.
#pragma once
#include <spng.h>
#include <turbojpeg.h>
#include <webp/encode.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/pictures/picture.h"

namespace cairn::test {

inline std::string png_of(const data::Picture& picture) {
  std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context{spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free};
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header = {static_cast<uint32_t>(picture.width),
                      static_cast<uint32_t>(picture.height),
                      8,
                      SPNG_COLOR_TYPE_TRUECOLOR,
                      0,
                      0,
                      0};
  spng_set_ihdr(context.get(), &header);
  spng_encode_image(context.get(), picture.rgb.data(), picture.rgb.size(), SPNG_FMT_PNG,
                    SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  int error = 0;
  void* bytes = spng_get_png_buffer(context.get(), &size, &error);
  std::string file(static_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

inline std::string jpeg_of(const data::Picture& picture, int quality = 90) {
  void* handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjCompress2(handle, picture.rgb.data(), picture.width, 0, picture.height, TJPF_RGB, &bytes, &size,
              TJSAMP_444, quality, 0);
  std::string file(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(handle);
  return file;
}

inline std::string webp_of(const data::Picture& picture) {  // without loss
  uint8_t* bytes = nullptr;
  const size_t size =
      WebPEncodeLosslessRGB(picture.rgb.data(), picture.width, picture.height, picture.width * 3, &bytes);
  std::string file(reinterpret_cast<char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

inline std::string gzip_of(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string idx_of(const std::vector<uint32_t>& dims, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) file += big_endian(dim);
  return file + bytes;
}

// A PNG file whose header says another size; its checksum is right.
inline std::string png_claiming(uint32_t width, uint32_t height, std::string file) {
  file.replace(16, 8, big_endian(width) + big_endian(height));
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(file.data()) + 12, 17));
  return file.replace(29, 4, big_endian(sum));
}

inline std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[13];
  std::snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(content.size()));
  header.replace(124, 11, size);
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(size, sizeof size, "%06o", sum);
  header.replace(148, 7, std::string(size, 7));
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512);
  return header + padded;
}

}  // namespace cairn::test
