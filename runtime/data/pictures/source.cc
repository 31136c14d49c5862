#include "runtime/data/pictures/source.h"

#include <xxhash.h>

#include <cinttypes>
#include <cstdio>

namespace cairn::data {

void PictureSource::mask(uint64_t item, int32_t*) const {
  fail(Code::kUnsupported, name(item), ": these data have no masks; data=drawings has");
}

std::unique_ptr<PictureSource> open_source(const SourceOptions& options) {
  if (options.data == "drawings") return drawings(options);
  static constexpr struct {
    std::string_view kind;
    OpenPictures* open;
  } kKinds[] = {{"mnist", open_mnist},   {"cifar10", open_cifar10}, {"cifar100", open_cifar100},
                {"folder", open_folder}, {"tar", open_tar},         {"pairs", open_pairs},
                {"file", open_file}};
  const size_t colon = options.data.find(':');
  for (const auto& row : kKinds)
    if (colon != std::string::npos && std::string_view(options.data).substr(0, colon) == row.kind)
      return row.open(options.data.substr(colon + 1), options.test);
  fail(Code::kInvalidArgument, "data is '", options.data,
       "'; wanted: drawings, mnist:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, tar:FILE,..., pairs:FILE or "
       "file:FILE");
}

std::string content_of(const PictureSource& source) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  require(state != nullptr, Code::kOutOfMemory, "no memory for a digest");
  XXH3_128bits_reset(state.get());
  const auto take = [&](const std::string& text) {  // with its end: "a", "bc" is not "ab", "c"
    XXH3_128bits_update(state.get(), text.c_str(), text.size() + 1);
  };
  for (const std::string& name : source.classes()) take(name);
  for (uint64_t item = 0; item < source.count(); ++item) {
    take(source.name(item));
    const int32_t label = source.label(item);
    XXH3_128bits_update(state.get(), &label, sizeof label);
    if (source.texts()) take(source.text(item));
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
  char digits[2 * sizeof digest + 1];
  std::snprintf(digits, sizeof digits, "%016" PRIx64 "%016" PRIx64, digest.high64, digest.low64);
  return cat(digits, '-', source.count());
}

}  // namespace cairn::data
