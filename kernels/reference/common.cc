#include "kernels/reference/common.h"

#include "runtime/formats/codecs.h"

namespace cairn::kernels::reference {
namespace {

bool has_kernels(DType t) { return is_float(t); }

DType wide(DType t) { return t == DType::kF64 ? DType::kF64 : DType::kF32; }

bool fits_letter(char letter, DType d, DType t) {
  switch (letter) {
    case 'T':
      return d == t;
    case 'P':
      return d == wide(t);
    case 'W':
      return d == t || d == wide(t) || (in_blocks(d) && t != DType::kF64);
    case 'I':
      return d == DType::kI32;
    case 'D':
      return d == DType::kF64;
    case 'F':
      return has_kernels(d);
    case 'B':
      return has_kernels(d) || in_blocks(d);
    default:
      return d != DType::kOpaque;
  }
}

}  // namespace

float decoded(const Tensor& tensor, int64_t i) {
  float value = 0;
  formats::with_dequantised(tensor.desc.dtype, [&](auto codec) {
    using Of = decltype(codec);
    value = Of::decode(tensor.as<typename Of::Block>()[i / Of::kBlock], static_cast<int>(i % Of::kBlock));
  });
  return value;
}

double at(const Tensor& tensor, int64_t i) {
  if (in_blocks(tensor.desc.dtype)) return decoded(tensor, i);
  switch (tensor.desc.dtype) {
    case DType::kF32:
      return tensor.as<float>()[i];
    case DType::kBF16:
      return load(tensor.as<bf16>()[i]);
    case DType::kF16:
      return load(tensor.as<f16>()[i]);
    case DType::kF64:
      return tensor.as<double>()[i];
    default:
      return tensor.as<int32_t>()[i];
  }
}

void set(const Tensor& tensor, int64_t i, double v) {
  switch (tensor.desc.dtype) {
    case DType::kF32:
      tensor.as<float>()[i] = store<float>(v);
      break;
    case DType::kBF16:
      tensor.as<bf16>()[i] = store<bf16>(v);
      break;
    case DType::kF16:
      tensor.as<f16>()[i] = store<f16>(v);
      break;
    default:
      tensor.as<double>()[i] = v;
      break;
  }
}

bool fits(const Signature& s, std::string_view in, std::string_view out, DType* t) {
  if (s.in.size() > in.size() || s.out.size() > out.size()) return false;
  const auto find = [&](char letter) {
    for (size_t i = 0; i < s.in.size(); ++i)
      if (in[i] == letter && s.has_in(i)) return &s.in[i];
    for (size_t i = 0; i < s.out.size(); ++i)
      if (out[i] == letter && s.has_out(i)) return &s.out[i];
    return static_cast<const TensorDesc*>(nullptr);
  };
  if (const TensorDesc* d = find('T'))
    *t = d->dtype;
  else if (const TensorDesc* p = find('P'))
    *t = p->dtype;
  if (!has_kernels(*t)) return false;
  for (size_t i = 0; i < s.in.size(); ++i)
    if (s.has_in(i) && (s.in[i].packed_bytes > 0 || !fits_letter(in[i], s.in[i].dtype, *t))) return false;
  for (size_t i = 0; i < s.out.size(); ++i)
    if (s.has_out(i) && !fits_letter(out[i], s.out[i].dtype, *t)) return false;
  return true;
}

}  // namespace cairn::kernels::reference
