// Chapter 8: pictures.
#ifndef CAIRN_CPP_PICTURES_HPP_
#define CAIRN_CPP_PICTURES_HPP_

#include <string>

#include "instance.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Pictures, decoded and augmented on threads of the library. Used by one thread at a time.
class Pictures : public detail::Handle<cairn_pictures_t, cairn_pictures_retain, cairn_pictures_release> {
 public:
  using Handle::Handle;
  // options.data is copied. errors: NOT_FOUND, CORRUPT_FILE, UNSUPPORTED, IO.
  static Outcome<Pictures> open(const Instance& instance, const cairn_pictures_options_t& options) {
    return detail::make<Pictures>({}, [&](auto* out, auto* error) {
      return cairn_pictures_open(instance.get(), &options, out, error);
    });
  }
  Outcome<cairn_pictures_info_t> info() const {
    return detail::fill({}, cairn_pictures_info_t CAIRN_PICTURES_INFO_INIT,
                        [&](auto* out, auto* error) { return cairn_pictures_info(handle_, out, error); });
  }
  // The name of a class, and the text of a picture. errors: NOT_FOUND.
  Outcome<std::string> class_name(uint32_t number) const {
    return detail::make_text(
        {}, [&](auto* out, auto* error) { return cairn_pictures_class(handle_, number, out, error); });
  }
  Outcome<std::string> text(uint64_t item) const {
    return detail::make_text(
        {}, [&](auto* out, auto* error) { return cairn_pictures_text(handle_, item, out, error); });
  }
  // A digest of which pictures there are, of their names, classes and texts.
  Outcome<std::string> content() const {
    return detail::make_text(
        {}, [&](auto* out, auto* error) { return cairn_pictures_content(handle_, out, error); });
  }
  // Micro-batch number `index` since the start of training, into what `to` names; returns the rows that hold pictures. blocks:
  // until they are made.
  Outcome<uint32_t> batch(uint64_t index, uint32_t rows, const cairn_pictures_batch_t& to) const {
    return detail::fill({}, uint32_t{0}, [&](auto* out, auto* error) {
      return cairn_pictures_read(handle_, index, rows, &to, out, error);
    });
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_PICTURES_HPP_
