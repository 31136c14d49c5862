// Reference counts of handles. A handle starts with one reference, the caller's; retain and release come from
// any thread. Handles own runtime objects through shared_ptr, so what one handle needs of another outlives
// both.
#pragma once
#include <atomic>
#include <cstdint>

namespace cairn::capi {

template <class Derived>
struct Handle {
  std::atomic<uint32_t> references{1};
};

template <class T>
void retain(T* handle) noexcept {
  if (handle != nullptr) handle->references.fetch_add(1, std::memory_order_relaxed);
}

// The last release sees everything that other threads did with the handle before theirs.
template <class T>
void release(T* handle) noexcept {
  if (handle != nullptr && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handle;
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
