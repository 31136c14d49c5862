// Rows that are one sweep over elements: activations, add, mul, scale, cast, accumulate, fill.
#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

std::unique_ptr<Kernel> make_map(const Signature& s, Map map, float factor = 1.0f) {
  if (!uniform_fast(s)) return nullptr;
  const bool half = is_bf16(s.in[0]);
  const int64_t count = s.in[0].shape.elements();
  const size_t inputs = std::min<size_t>(3, s.in.size()), outputs = std::min<size_t>(2, s.out.size());
  return make_kernel([=](const Call& call) {
    const void* in[3] = {};
    void* out[2] = {};
    for (size_t i = 0; i < inputs; ++i) in[i] = data_of(call.in, i);
    for (size_t i = 0; i < outputs; ++i) out[i] = data_of(call.out, i);
    parallel_for(count, kGrain,
                 [&](int64_t b, int64_t e, int) { map_elements(map, half, in, out, b, e, factor); });
  });
}

bool is_erf(const Signature& s) {
  return s.attrs != nullptr && s.attrs->word("approximate", "tanh") == "erf";
}

std::unique_ptr<Kernel> make_combine(const Signature& s, Map map) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype) return nullptr;
  if (s.in[1].dtype != s.in[0].dtype && !plain_f32(s.in[1])) return nullptr;
  const int64_t count = s.in[0].shape.elements(), row = s.in[1].shape.elements();
  const bool half_a = is_bf16(s.in[0]), half_b = is_bf16(s.in[1]);
  const int64_t bytes_a = dtype_bytes(s.in[0].dtype), bytes_b = dtype_bytes(s.in[1].dtype);
  return make_kernel([=](const Call& call) {
    const char *a = input<const char>(call, 0), *b = input<const char>(call, 1);
    char* y = output<char>(call, 0);
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end;) {
        const int64_t at = i % row, n = std::min(row - at, end - i);
        combine_row(map, half_a, half_b, a + i * bytes_a, b + at * bytes_b, y + i * bytes_a, n);
        i += n;
      }
    });
  });
}

std::unique_ptr<Kernel> make_convert(const Signature& s, bool may_add) {
  if (!fast_float(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const bool half_x = is_bf16(s.in[0]), half_y = is_bf16(s.out[0]);
  const int64_t bytes_x = dtype_bytes(s.in[0].dtype), bytes_y = dtype_bytes(s.out[0].dtype);
  return make_kernel([=](const Call& call) {
    const char* x = input<const char>(call, 0);
    char* y = output<char>(call, 0);
    const bool add = may_add && accumulates(call, 0);
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      convert(half_x, half_y, add, x + b * bytes_x, y + b * bytes_y, e - b);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_gelu(const Signature& s) {
  return make_map(s, is_erf(s) ? Map::kGeluErf : Map::kGeluTanh);
}
std::unique_ptr<Kernel> make_gelu_grad(const Signature& s) {
  return make_map(s, is_erf(s) ? Map::kGeluErfGrad : Map::kGeluTanhGrad);
}
std::unique_ptr<Kernel> make_silu(const Signature& s) { return make_map(s, Map::kSilu); }
std::unique_ptr<Kernel> make_silu_grad(const Signature& s) { return make_map(s, Map::kSiluGrad); }
std::unique_ptr<Kernel> make_relu(const Signature& s) { return make_map(s, Map::kRelu); }
std::unique_ptr<Kernel> make_relu_grad(const Signature& s) { return make_map(s, Map::kReluGrad); }
std::unique_ptr<Kernel> make_swiglu(const Signature& s) { return make_map(s, Map::kSwiglu); }
std::unique_ptr<Kernel> make_swiglu_grad(const Signature& s) { return make_map(s, Map::kSwigluGrad); }
std::unique_ptr<Kernel> make_scale(const Signature& s) {
  return make_map(s, Map::kScale, static_cast<float>(s.attrs->real("factor", 1.0)));
}
std::unique_ptr<Kernel> make_add(const Signature& s) { return make_combine(s, Map::kAdd); }
std::unique_ptr<Kernel> make_mul(const Signature& s) { return make_combine(s, Map::kMul); }
std::unique_ptr<Kernel> make_cast(const Signature& s) { return make_convert(s, false); }
std::unique_ptr<Kernel> make_accumulate(const Signature& s) {
  return plain_f32(s.out[0]) ? make_convert(s, true) : nullptr;
}

std::unique_ptr<Kernel> make_fill(const Signature& s) {
  if (!fast_float(s.out[0])) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  const bool half = is_bf16(s.out[0]);
  const float value = static_cast<float>(s.attrs != nullptr ? s.attrs->real("value", 0) : 0);
  return make_kernel([=](const Call& call) {
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      if (half)
        std::fill(output<bf16>(call, 0) + b, output<bf16>(call, 0) + e, to_bf16(value));
      else
        std::fill(output<float>(call, 0) + b, output<float>(call, 0) + e, value);
    });
  });
}

}  // namespace cairn::kernels::cpu
