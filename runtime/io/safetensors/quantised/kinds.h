// The kinds of quantised matrices: what their tensors are called, and their readers. Private to this folder.
#pragma once
#include <functional>
#include <optional>

#include "runtime/io/safetensors/quantised/quantised.h"

namespace cairn::io::quantised {

// The tensors of one matrix.
class Group {
 public:
  // name: of the matrix. kind: for messages.
  Group(const ModelFiles& files, std::string name, std::string_view kind)
      : files_(files), name_(std::move(name)), kind_(kind) {}

  const std::string& name() const { return name_; }
  std::string stem() const { return name_.substr(0, name_.rfind('.') + 1); }  // "x." of "x.weight"
  const ModelFiles::Found* find(const std::string& tensor) const;
  // kCorruptFile: there is none, or its type is not one of `types` (as files spell them, with '|' between).
  const ModelFiles::Found& take(const std::string& tensor, std::string_view types);
  // An optional one.
  const ModelFiles::Found* take_if(const std::string& tensor, std::string_view types);
  // kCorruptFile: it has not so many bytes.
  void expect(const ModelFiles::Found& found, uint64_t bytes) const;
  template <class... Parts>
  [[noreturn]] void refuse(Code code, const Parts&... parts) const {
    fail(code, cat("'", name_, "' (", kind_, "): ", parts...));
  }
  // What a config.json next to the file says under quantization_config; empty: nothing.
  std::string config(std::string_view key) const;
  // Tells the matrix what it is made of.
  void finish(Quantised& made) const;

 private:
  const ModelFiles& files_;
  std::string name_, kind_;
  std::vector<const ModelFiles::Found*> taken_;
};

std::vector<int64_t> dims_of(const ModelFiles::Found& found);
std::string shown(const ModelFiles::Found& found);  // "I32[4, 8]"
template <class T>
std::vector<T> all_of(const ModelFiles::Found& found) {
  std::vector<T> values(found.tensor->bytes / sizeof(T));
  found.read(0, values.data(), values.size() * sizeof(T));
  return values;
}
// Numbers of a float type, F8_E8M0 (powers of 2) too.
std::vector<float> floats_of(const ModelFiles::Found& found);
inline constexpr std::string_view kScaleTypes = "F32|BF16|F16|F8_E8M0";

std::unique_ptr<Quantised> open_nf4(Group& group);
std::unique_ptr<Quantised> open_llm_int8(Group& group);
std::unique_ptr<Quantised> open_fp8(Group& group);
std::unique_ptr<Quantised> open_mxfp4(Group& group);
std::unique_ptr<Quantised> open_packed(Group& group);  // GPTQ and AWQ

}  // namespace cairn::io::quantised
