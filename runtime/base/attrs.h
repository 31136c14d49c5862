// Attributes of an op: a few named numbers, lists and words, checked against the op's row when the node is
// added.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/error.h"

namespace cairn {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> list) : items_(list) {}

  const AttrValue* find(std::string_view name) const {
    for (const auto& [key, value] : items_)
      if (key == name) return &value;
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string name, AttrValue value) {
    for (auto& [key, old] : items_)
      if (key == name) {
        old = std::move(value);
        return;
      }
    items_.emplace_back(std::move(name), std::move(value));
  }
  // Typed reads with a default. Integers are accepted where real numbers are wanted.
  int64_t integer(std::string_view name, int64_t otherwise = 0) const { return get(name, otherwise); }
  double real(std::string_view name, double otherwise = 0) const {
    if (const AttrValue* v = find(name))
      if (const auto* i = std::get_if<int64_t>(v)) return static_cast<double>(*i);
    return get(name, otherwise);
  }
  std::string word(std::string_view name, std::string otherwise = {}) const {
    return get(name, std::move(otherwise));
  }
  std::vector<int64_t> list(std::string_view name, std::vector<int64_t> otherwise = {}) const {
    return get(name, std::move(otherwise));
  }
  std::vector<double> reals(std::string_view name) const {
    if (const AttrValue* v = find(name))
      if (const auto* list = std::get_if<std::vector<int64_t>>(v)) return {list->begin(), list->end()};
    return get(name, std::vector<double>());
  }
  const auto& items() const { return items_; }
  bool operator==(const Attrs&) const = default;

 private:
  template <class T>
  T get(std::string_view name, T otherwise) const {
    const AttrValue* v = find(name);
    if (v == nullptr) return otherwise;
    const T* typed = std::get_if<T>(v);
    require(typed != nullptr, Code::kInvalidArgument, "attribute '", name, "' has the wrong type");
    return *typed;
  }
  std::vector<std::pair<std::string, AttrValue>> items_;
};

}  // namespace cairn
