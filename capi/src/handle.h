// Reference counts of handles. A handle starts with one reference, the caller's; retain and release come from
// any thread. Handles own runtime objects through shared_ptr, so what one handle needs of another outlives
// both.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace cairn::capi {

// Of data alone: good in a child process, too.
struct PlainHandle {
  std::atomic<uint32_t> references{1};
};

// Of what may have threads and locks, which fork() does not carry into a child process.
struct BoundHandle : PlainHandle {
  const pid_t process = getpid();
  bool foreign() const noexcept { return process != getpid(); }
};

template <class Derived>
struct Handle : BoundHandle {};

template <class T>
void retain(T* handle) noexcept {
  if (handle != nullptr) handle->references.fetch_add(1, std::memory_order_relaxed);
}

// The last release sees everything that other threads did with the handle before theirs. In a child process
// the object is left as it is: its threads are not there to be waited for, and its locks may be taken for
// ever.
template <class T>
void release(T* handle) noexcept {
  if (handle == nullptr) return;
  if constexpr (std::is_base_of_v<BoundHandle, T>)
    if (handle->foreign()) return;
  if (handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handle;
}

// A reference that one handle holds on another.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* handle) : handle_(handle) { retain(handle_); }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { release(handle_); }
  T* operator->() const { return handle_; }
  T* get() const { return handle_; }

 private:
  T* handle_ = nullptr;
};

}  // namespace cairn::capi
