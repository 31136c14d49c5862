// Handles of cairn.h as objects, and calls with them.
#ifndef CAIRN_CPP_HANDLE_HPP_
#define CAIRN_CPP_HANDLE_HPP_

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"
#include "span.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {
namespace detail {

// A reference to a handle: copying it retains, moving it leaves an empty one, and the destructor releases. References may be
// copied and dropped on any thread. const is of the reference, as with std::shared_ptr: which calls may overlap is said in
// cairn.h, where those that may take a const handle.
template <class T, void (*kRetain)(T*), void (*kRelease)(T*)>
class Handle {
 public:
  using Raw = T;
  Handle() noexcept = default;
  explicit Handle(T* owned) noexcept : handle_(owned) {}  // takes the caller's reference over
  Handle(const Handle& other) noexcept : handle_(other.handle_) { kRetain(handle_); }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { kRelease(handle_); }
  // For calls of cairn.h; borrowed.
  T* get() const noexcept { return handle_; }
  // Gives the reference to the caller, who releases it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(handle_, nullptr); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const Handle& a, const Handle& b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const Handle& a, const Handle& b) noexcept { return a.handle_ != b.handle_; }

 protected:
  T* handle_ = nullptr;
};

using ErrorHandle = Handle<cairn_error_t, cairn_error_retain, cairn_error_release>;
using TextHandle = Handle<cairn_text_t, cairn_text_retain, cairn_text_release>;

inline Error error_of(cairn_status_t status, const cairn_error_t* error) {
  // Without memory for an error object there is the status alone.
  if (error == nullptr || cairn_error_status(error) != status)
    return Error(status, cairn_status_name(status));
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  std::optional<cairn_memory_fault_t> found;
  if (cairn_error_memory_fault(error, &fault) == CAIRN_STATUS_OK) found = fault;
  return Error(status, cairn_error_message(error), found);
}

inline Error nul_error(const Text& text) {
  const std::string head = text.c_str();
  return Error(CAIRN_STATUS_INVALID_ARGUMENT, "the text '" + head + "\\x00...' has a NUL at byte " +
                                                  std::to_string(head.size()) +
                                                  ", where cairn's texts end; leave it out");
}

// Runs run(error), one or more calls of cairn.h that return a status, and returns what give() makes of what they gave. `texts`
// are those among the arguments.
template <class Run, class Give>
Outcome<std::invoke_result_t<const Give&>> call(std::initializer_list<Text> texts, const Run& run,
                                                const Give& give) {
  using Given = std::invoke_result_t<const Give&>;
  for (const Text& text : texts)
    if (text.has_nul()) return failed<Given>(nul_error(text));
  const ErrorHandle error(cairn_error_create());
  const cairn_status_t status = run(error.get());
  if (status != CAIRN_STATUS_OK) return failed<Given>(error_of(status, error.get()));
  if constexpr (std::is_void_v<Given>) {
    give();
    return Outcome<void>();
  } else {
    return give();
  }
}
template <class Run>
Outcome<void> call(std::initializer_list<Text> texts, const Run& run) {
  return call(texts, run, [] {});
}

// The Object of the handle that run(&handle, error) makes; the plain value or struct `out`, as run(&out, error) fills it.
template <class Object, class Run>
Outcome<Object> make(std::initializer_list<Text> texts, const Run& run) {
  typename Object::Raw* made = nullptr;
  return call(
      texts, [&](cairn_error_t* error) { return run(&made, error); }, [&] { return Object(made); });
}
template <class Out, class Run>
Outcome<Out> fill(std::initializer_list<Text> texts, Out out, const Run& run) {
  return call(
      texts, [&](cairn_error_t* error) { return run(&out, error); }, [&] { return out; });
}
// Objects of the `count` handles that run(first, error) makes.
template <class Object, class Run>
Outcome<std::vector<Object>> make_all(std::initializer_list<Text> texts, size_t count, const Run& run) {
  std::vector<typename Object::Raw*> handles(count);
  std::vector<Object> objects(count);
  return call(
      texts, [&](cairn_error_t* error) { return run(handles.data(), error); },
      [&] {
        for (size_t i = 0; i < count; ++i) objects[i] = Object(handles[i]);
        return std::move(objects);
      });
}
template <class Run>
Outcome<std::string> make_text(std::initializer_list<Text> texts, const Run& run) {
  cairn_text_t* made = nullptr;
  return call(
      texts, [&](cairn_error_t* error) { return run(&made, error); },
      [&] {
        const TextHandle text(made);
        return std::string(cairn_text_data(text.get()), cairn_text_size(text.get()));
      });
}

}  // namespace detail

// A handle of cairn.h's as an object: adopt takes the caller's reference over, share takes one of its own.
template <class Object>
Object adopt(typename Object::Raw* handle) noexcept {
  return Object(handle);
}
template <class Object>
Object share(typename Object::Raw* handle) noexcept {
  Object owner(handle);
  Object shared = owner;
  (void)!owner.detach();
  return shared;
}

// A handle that somebody else holds, with the methods of its object and no reference of its own: View<Session>(raw)->run().
// It must not outlive what it views.
template <class Object>
class View {
 public:
  explicit View(typename Object::Raw* borrowed) noexcept : object_(borrowed) {}
  View(const Object& object) noexcept : View(object.get()) {}
  View(const View& other) noexcept : View(other.object_.get()) {}
  View& operator=(const View& other) noexcept {
    (void)!object_.detach();
    object_ = Object(other.object_.get());
    return *this;
  }
  ~View() { (void)!object_.detach(); }
  Object* operator->() noexcept { return &object_; }
  const Object* operator->() const noexcept { return &object_; }
  operator const Object&() const noexcept { return object_; }

 private:
  Object object_;
};

// The rows of a table that `Owner` has, read one by one while one walks over them: for (const auto& row : plan.values()).
// Rows keep their owner, and the texts in them live as long as it does. Reading is const: any thread.
template <class Row, class Owner>
class Rows {
  using Read = cairn_status_t (*)(const Owner& owner, size_t index, Row* out);

 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using pointer = const Row*;
    using reference = const Row&;
    iterator() = default;
    iterator(const Rows* rows, size_t index) : rows_(rows), index_(index) { read(); }
    const Row& operator*() const noexcept { return row_; }
    const Row* operator->() const noexcept { return &row_; }
    iterator& operator++() {
      ++index_;
      read();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.rows_ == b.rows_ && (a.rows_ == nullptr || a.index_ == b.index_);
    }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return !(a == b); }

   private:
    void read() {
      row_ = rows_->blank_;
      if (rows_->read_(rows_->owner_, index_, &row_) != CAIRN_STATUS_OK) rows_ = nullptr;
    }
    const Rows* rows_ = nullptr;
    size_t index_ = 0;
    Row row_{};
  };
  using const_iterator = iterator;
  using value_type = Row;

  Rows(Owner owner, Row blank, Read read) : owner_(std::move(owner)), blank_(blank), read_(read) {}
  iterator begin() const { return iterator(this, 0); }
  iterator end() const { return iterator(); }
  size_t size() const { return static_cast<size_t>(std::distance(begin(), end())); }  // reads them all
  bool empty() const { return begin() == end(); }
  // Row number index, from 0: of as many as there are.
  Row operator[](size_t index) const { return *iterator(this, index); }
  operator std::vector<Row>() const { return {begin(), end()}; }

 private:
  Owner owner_;
  Row blank_;
  Read read_;
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_HANDLE_HPP_
