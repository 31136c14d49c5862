// The ABI boundary: no exception crosses it, and the host's floating-point environment does not come in. Every
// fallible function is one guard() around its work; inside, errors are exceptions, and report() turns the one in
// flight into a status and fills the caller's error object.
#pragma once
#include <string_view>

#include "cairn/cairn.h"
#include "capi/src/handle.h"
#include "runtime/base/error.h"
#include "runtime/base/os/float_environment.h"

namespace cairn::capi {

// Status of the exception in flight; fills `error` if it is there. Allocates nothing.
cairn_status_t report(cairn_error_t* error) noexcept;

template <class Work>
cairn_status_t guard(cairn_error_t* error, Work&& work) noexcept {
  const DefaultFloatEnvironment numbers;
  try {
    work();
    return CAIRN_STATUS_OK;
  } catch (...) {
    return report(error);
  }
}

// A handle must be this process's own, too.
template <class T>
void not_null(const T* argument, std::string_view name) {
  require(argument != nullptr, Code::kInvalidArgument, "argument '", name, "' is NULL");
  if constexpr (std::is_base_of_v<BoundHandle, T>)
    require(!argument->foreign(), Code::kWrongState, "argument '", name, "' was made in process ",
            argument->process, " and does not survive fork(): make it in the child, or call exec there");
}

// An array of `count` elements: NULL is fine for none.
template <class T>
void array_not_null(const T* array, size_t count, std::string_view name) {
  require(array != nullptr || count == 0, Code::kInvalidArgument, "argument '", name, "' is NULL, but ",
          count, " elements are announced");
}

// An enumerator in 0..last, a flag that is 0 or 1, a number that is finite and not negative.
inline void in_enum(uint32_t value, uint32_t last, std::string_view name) {
  require(value <= last, Code::kInvalidArgument, "'", name, "' is ", value, "; values 0 to ", last,
          " are known");
}
inline void flag(uint32_t value, std::string_view name) {
  require(value <= 1, Code::kInvalidArgument, "'", name, "' is ", value, "; it is a flag, 0 or 1");
}
inline void not_negative(double value, std::string_view name) {
  require(value >= 0 && value <= 1.7976931348623157e308, Code::kInvalidArgument, "'", name, "' is ", value,
          "; it must be finite and not negative");
}
inline void reserved_zero(uint32_t value, std::string_view name) {
  require(value == 0, Code::kUnsupported, "reserved field of ", name, " is ", value,
          ", not 0: this library is older than the caller's header");
}

}  // namespace cairn::capi
