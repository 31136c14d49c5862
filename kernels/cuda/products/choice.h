// The parts of a kernel that measurements may choose, in the order in which the kernel makes them. A choice
// is "ROW|PART|PART...", as Signature::choice has it; a part that is empty or not known is the kernel's own.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cuda {

class Chooser {
 public:
  explicit Chooser(const Signature& s) : left_(s.choice), options_(s.options) { advance(); }
  std::string_view pick() const { return left_.substr(0, left_.find('|')); }  // of the part that is made now
  bool lists() const { return options_ != nullptr; }
  // The part is made; these were its options.
  void made(std::vector<std::string> options) {
    if (options_ != nullptr) options_->push_back(std::move(options));
    advance();
  }

 private:
  void advance() {
    const size_t end = left_.find('|');
    left_ = end == std::string_view::npos ? std::string_view() : left_.substr(end + 1);
  }
  std::string_view left_;
  Options* options_;
};

}  // namespace cairn::kernels::cuda
