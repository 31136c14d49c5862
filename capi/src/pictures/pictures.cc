// Chapter 8: data, pictures.
#include "runtime/data/pictures/pictures.h"

#include <cmath>
#include <string_view>

#include "capi/src/instance.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace data = cairn::data;

struct cairn_pictures : cairn::capi::Handle<cairn_pictures> {
  std::unique_ptr<data::Pictures> pictures;
};

namespace {

static_assert(CAIRN_PICTURES_SKIP == static_cast<int>(data::BadPicture::kSkip) &&
              CAIRN_PICTURES_REPLACE == static_cast<int>(data::BadPicture::kReplace) &&
              CAIRN_CROP_RANDOM_RESIZED == static_cast<int>(data::Crop::kRandomResized) &&
              CAIRN_CROP_PADDED == static_cast<int>(data::Crop::kPadded));

void between(double value, double least, double most, std::string_view name) {
  require(value >= least && value <= most, Code::kInvalidArgument, "options.", name, " is ", value,
          "; wanted: ", least, " to ", most);
}

// A pair that is given, or what stands for two zeros.
std::array<double, 2> pair_or(const double (&given)[2], std::array<double, 2> otherwise, double most,
                              std::string_view name) {
  if (given[0] == 0 && given[1] == 0) return otherwise;
  require(given[0] > 0 && given[0] <= given[1] && given[1] <= most, Code::kInvalidArgument, "options.", name,
          " is ", given[0], " to ", given[1], "; wanted: two numbers above 0 and up to ", most,
          ", the smaller one first");
  return {given[0], given[1]};
}

data::PictureOptions options_of(const cairn_pictures_options_t& o) {
  not_null(o.data, "options.data");
  between(o.test, 0, 1, "test");
  between(o.width, 1, data::kMostPictureSide, "width");
  between(o.height, 1, data::kMostPictureSide, "height");
  require(o.channels == 0 || o.channels == 1 || o.channels == 3, Code::kInvalidArgument,
          "options.channels is ", o.channels, "; wanted: 1 or 3");
  between(o.held_out, 0, 1, "held_out");
  between(o.workers, 0, 64, "workers");
  between(o.ahead, 0, 16, "ahead");
  between(o.bad, 0, CAIRN_PICTURES_REPLACE, "bad");
  between(o.crop, 0, CAIRN_CROP_PADDED, "crop");
  between(o.padding, 0, data::kMostPictureSide, "padding");
  between(o.resize, 0, 16, "resize");
  between(o.flip, 0, 1, "flip");
  for (const auto& [value, name] : {std::pair{o.brightness, "brightness"}, std::pair{o.contrast, "contrast"},
                                    std::pair{o.saturation, "saturation"}})
    between(value, 0, 100, name);
  between(o.hue, 0, 0.5, "hue");
  between(o.randaugment, 0, 100, "randaugment");
  between(o.magnitude, 0, 30, "magnitude");
  between(o.mixup, 0, 1000, "mixup");
  between(o.cutmix, 0, 1000, "cutmix");
  data::PictureOptions made;
  made.source = {o.data, o.test != 0, o.seed, o.most, o.classes, 0, 0};
  made.held_out = o.held_out;
  made.most = o.most;
  made.mixup = o.mixup;
  made.cutmix = o.cutmix;
  made.shuffle = o.shuffle != 0;
  made.workers = static_cast<int>(o.workers);
  made.ahead = static_cast<int>(o.ahead);
  made.bad = static_cast<data::BadPicture>(o.bad);
  data::Augment& a = made.augment;
  a.width = static_cast<int>(o.width);
  a.height = static_cast<int>(o.height);
  a.channels = o.channels == 1 ? 1 : 3;
  a.crop = static_cast<data::Crop>(o.crop);
  a.filter = o.bicubic != 0 ? data::Filter::kBicubic : data::Filter::kBilinear;
  a.resize = o.resize == 0 ? 1 : o.resize;
  require(a.resize >= 1, Code::kInvalidArgument, "options.resize is ", o.resize, "; wanted: 0, or 1 to 16");
  a.scale = pair_or(o.scale, a.scale, 1, "scale");
  a.ratio = pair_or(o.ratio, a.ratio, 1000, "ratio");
  a.padding = static_cast<int>(o.padding);
  a.flip = o.flip;
  a.brightness = o.brightness, a.contrast = o.contrast, a.saturation = o.saturation, a.hue = o.hue;
  a.ops = static_cast<int>(o.randaugment);
  a.magnitude = static_cast<int>(o.magnitude);
  const bool plain = o.deviation[0] == 0 && o.deviation[1] == 0 && o.deviation[2] == 0;
  for (size_t c = 0; c < 3; ++c) {
    a.mean[c] = o.mean[c];
    a.deviation[c] = plain ? 1 : o.deviation[c];
    require(std::isfinite(a.mean[c]) && std::isfinite(a.deviation[c]) && a.deviation[c] > 0,
            Code::kInvalidArgument, "options.mean and options.deviation of colour ", c, " are ", a.mean[c],
            " and ", a.deviation[c], "; wanted: finite numbers, deviations above 0");
  }
  return made;
}

}  // namespace

cairn_status_t cairn_pictures_open(cairn_instance_t* instance, const cairn_pictures_options_t* options,
                                   cairn_pictures_t** out_pictures, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(out_pictures, "out_pictures");
    const data::PictureOptions given = options_of(read_struct(options, "options"));
    auto made = std::make_unique<cairn_pictures>();
    made->pictures = data::Pictures::open(given);
    *out_pictures = made.release();
  });
}
void cairn_pictures_retain(cairn_pictures_t* pictures) { retain(pictures); }
void cairn_pictures_release(cairn_pictures_t* pictures) { release(pictures); }

cairn_status_t cairn_pictures_info(cairn_pictures_t* pictures, cairn_pictures_info_t* out_info,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(pictures, "pictures");
    const OutStruct out(out_info, "out_info");
    cairn_pictures_info_t info = CAIRN_PICTURES_INFO_INIT;
    info.count = pictures->pictures->count();
    info.bad = pictures->pictures->bad();
    info.classes = static_cast<uint32_t>(pictures->pictures->source().classes().size());
    info.texts = pictures->pictures->source().texts() ? 1 : 0;
    out.write(info);
  });
}

cairn_status_t cairn_pictures_class(const cairn_pictures_t* pictures, uint32_t number,
                                    cairn_text_t** out_name, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(pictures, "pictures");
    not_null(out_name, "out_name");
    const auto& classes = pictures->pictures->source().classes();
    require(number < classes.size(), Code::kNotFound, "there is no class ", number, "; the data have ",
            classes.size());
    *out_name = std::make_unique<cairn_text>(classes[number]).release();
  });
}

cairn_status_t cairn_pictures_content(const cairn_pictures_t* pictures, cairn_text_t** out_digest,
                                      cairn_error_t* error) {
  return guard(error, [&] {
    not_null(pictures, "pictures");
    not_null(out_digest, "out_digest");
    *out_digest = std::make_unique<cairn_text>(data::content_of(pictures->pictures->source())).release();
  });
}

cairn_status_t cairn_pictures_read(cairn_pictures_t* pictures, uint64_t index, uint32_t batch,
                                   const cairn_pictures_batch_t* to, uint32_t* out_rows,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(pictures, "pictures");
    not_null(out_rows, "out_rows");
    require(batch >= 1 && batch <= 1u << 24, Code::kInvalidArgument, "argument 'batch' is ", batch,
            "; it must be in 1..2^24");
    const cairn_pictures_batch_t where = read_struct(to, "to");
    *out_rows = static_cast<uint32_t>(pictures->pictures->batch(
        index, batch, {where.pixels, where.labels, where.others, where.shares, where.items, where.masks}));
  });
}

cairn_status_t cairn_pictures_text(const cairn_pictures_t* pictures, uint64_t item, cairn_text_t** out_text,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(pictures, "pictures");
    not_null(out_text, "out_text");
    const data::PictureSource& source = pictures->pictures->source();
    require(item < source.count() && source.texts(), Code::kNotFound, "there is no text of picture ", item,
            "; the data have ", source.count(), " pictures", source.texts() ? "" : " and no texts");
    *out_text = std::make_unique<cairn_text>(source.text(item)).release();
  });
}
