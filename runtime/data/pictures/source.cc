#include "runtime/data/pictures/source.h"

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
                {"folder", open_folder}, {"tar", open_tar},         {"pairs", open_pairs}};
  const size_t colon = options.data.find(':');
  for (const auto& row : kKinds)
    if (colon != std::string::npos && std::string_view(options.data).substr(0, colon) == row.kind)
      return row.open(options.data.substr(colon + 1), options.test);
  fail(Code::kInvalidArgument, "data is '", options.data,
       "'; wanted: drawings, mnist:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, tar:FILE,... or pairs:FILE");
}

}  // namespace cairn::data
