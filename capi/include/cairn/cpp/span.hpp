// Arguments that are borrowed for the time of a call: numbers in a row, and texts.
#ifndef CAIRN_CPP_SPAN_HPP_
#define CAIRN_CPP_SPAN_HPP_

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "config.hpp"
#if defined(__cpp_lib_ranges)
#include <ranges>
#endif

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Elements in a row that somebody else owns. It is made of arrays, of whatever has data() and size() (std::vector, std::array,
// std::span, another Span), and, where elements are const, of a list in braces; C++20's std::span takes it. One type in every
// version of C++, so that functions have the same names in all. A Span of a list in braces is for the call it is written in.
template <class T>
class Span {
  template <class Container>
  using Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>;

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using iterator = T*;

  constexpr Span() noexcept = default;
  constexpr Span(T* data, size_t size) noexcept : data_(data), size_(size) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}
  template <class Container,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<Container>, Span> &&
                                     std::is_convertible_v<Element<Container> (*)[], T (*)[]>>>
  constexpr Span(Container&& container) : data_(container.data()), size_(container.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<value_type> list) noexcept : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr T* data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T& operator[](size_t index) const noexcept { return data_[index]; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// A text that the library reads: UTF-8, ended by NUL. It is made of literals, and of what has c_str(): std::string,
// std::filesystem::path. nullptr is no text, where a call says what that means. Not of a std::string_view, which need not end
// with NUL. A text with a NUL inside is refused by the call (INVALID_ARGUMENT), as the library would see its beginning alone.
class Text {
 public:
  Text(std::nullptr_t) noexcept {}
  Text(const char* text) noexcept : text_(text), size_(text != nullptr ? std::strlen(text) : 0) {}
  template <class Source, class = std::enable_if_t<
                              std::is_same_v<decltype(std::declval<const Source&>().c_str()), const char*>>>
  Text(const Source& source) noexcept : text_(source.c_str()), size_(size_of(source, 0)) {}

  const char* c_str() const noexcept { return text_; }
  size_t size() const noexcept { return size_; }
  bool has_nul() const noexcept { return text_ != nullptr && std::strlen(text_) != size_; }

 private:
  template <class Path>
  static auto size_of(const Path& path, int) -> decltype(path.native().size()) {
    return path.native().size();
  }
  template <class String>
  static auto size_of(const String& text, long) -> decltype(text.size()) {
    return text.size();
  }

  const char* text_ = nullptr;
  size_t size_ = 0;
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn

#if defined(__cpp_lib_ranges)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<cairn::Span<T>> = true;
#endif

#endif  // CAIRN_CPP_SPAN_HPP_
