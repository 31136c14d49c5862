// What a call that failed says: thrown, or in a Result.
#ifndef CAIRN_CPP_ERROR_HPP_
#define CAIRN_CPP_ERROR_HPP_

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "../cairn.h"
#include "config.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// A call that failed. what(): the library's message. fault(): the bytes, with OUT_OF_MEMORY and OVER_BUDGET.
class Error : public std::runtime_error {
 public:
  explicit Error(cairn_status_t status, const std::string& message,
                 std::optional<cairn_memory_fault_t> fault = std::nullopt)
      : std::runtime_error(message), status_(status), fault_(std::move(fault)) {}
  cairn_status_t status() const noexcept { return status_; }
  const char* status_name() const noexcept { return cairn_status_name(status_); }
  const std::optional<cairn_memory_fault_t>& fault() const noexcept { return fault_; }

 private:
  cairn_status_t status_;
  std::optional<cairn_memory_fault_t> fault_;
};

// A T, or the Error that it could not be made for. With C++23's library it is a std::expected<T, Error>; before, it has what
// that has in C++23: has_value, bool, *, ->, value, value_or, error. * and -> of an error, and error of a value, are
// undefined; value() of an error throws, or ends a program that was compiled without exceptions.
inline namespace CAIRN_HPP_RESULT {
#if defined(__cpp_lib_expected)
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(const Error& error) : std::expected<T, Error>(std::unexpect, error) {}
  Result(Error&& error) : std::expected<T, Error>(std::unexpect, std::move(error)) {}
};
#else
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;
  Result() = default;
  template <class U = T, class = std::enable_if_t<std::is_constructible_v<T, U&&> &&
                                                  !std::is_same_v<std::decay_t<U>, Result> &&
                                                  !std::is_base_of_v<Error, std::decay_t<U>>>>
  Result(U&& value) : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(const Error& error) : held_(std::in_place_index<1>, error) {}
  Result(Error&& error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  T& operator*() & noexcept { return *std::get_if<0>(&held_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&held_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&held_)); }
  T* operator->() noexcept { return std::get_if<0>(&held_); }
  const T* operator->() const noexcept { return std::get_if<0>(&held_); }
  T& value() & { return require(), **this; }
  const T& value() const& { return require(), **this; }
  T&& value() && { return require(), std::move(**this); }
  template <class U>
  T value_or(U&& otherwise) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(otherwise));
  }
  template <class U>
  T value_or(U&& otherwise) && {
    return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(otherwise));
  }
  const Error& error() const& noexcept { return *std::get_if<1>(&held_); }
  Error&& error() && noexcept { return std::move(*std::get_if<1>(&held_)); }

 private:
  void require() const {
    if (has_value()) return;
#if defined(__cpp_exceptions)
    throw error();
#else
    std::abort();
#endif
  }
  std::variant<T, Error> held_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;
  Result() noexcept = default;
  Result(const Error& error) : error_(error) {}
  Result(Error&& error) : error_(std::move(error)) {}
  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  void operator*() const noexcept {}
  void value() const {
    if (has_value()) return;
#if defined(__cpp_exceptions)
    throw error();
#else
    std::abort();
#endif
  }
  const Error& error() const& noexcept { return *error_; }
  Error&& error() && noexcept { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};
#endif
}  // namespace CAIRN_HPP_RESULT

// What calls return: T itself where they throw, else Result<T>.
#if CAIRN_HPP_THROWS
template <class T>
using Outcome = T;
#else
template <class T>
using Outcome = Result<T>;
#endif

namespace detail {

template <class T>
struct Unwrapped {
  using type = T;
};
template <class T>
struct Unwrapped<Result<T>> {
  using type = T;
};

// Ends a call that failed.
template <class T>
Outcome<T> failed(Error error) {
#if CAIRN_HPP_THROWS
  throw error;
#else
  return Result<T>(std::move(error));
#endif
}

}  // namespace detail

#if CAIRN_HPP_THROWS
// What work() returns, or the cairn::Error that it throws: for single calls whose failure is expected, such as a plan under a
// budget that may be too small.
template <class Work>
Result<std::invoke_result_t<const Work&>> attempt(const Work& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Work&>>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const Error& error) {
    return error;
  }
}
#endif

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_ERROR_HPP_
