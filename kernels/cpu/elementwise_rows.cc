// Rows that are elementwise: activations, add, mul, scale, cast, dequantise, accumulate, average, fill.
#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/support.h"
#include "runtime/base/broadcast.h"
#include "runtime/formats/split.h"

namespace cairn::kernels::cpu {
namespace {

std::unique_ptr<Kernel> make_map(const Signature& s, Map map, float factor = 1.0f) {
  if (!uniform_fast(s)) return nullptr;
  const DType type = s.in[0].dtype;
  const int64_t count = s.in[0].shape.elements();
  const size_t inputs = std::min<size_t>(3, s.in.size()), outputs = std::min<size_t>(2, s.out.size());
  return make_kernel([=](const Call& call) {
    const void* in[3] = {};
    void* out[2] = {};
    for (size_t i = 0; i < inputs; ++i) in[i] = data_of(call.in, i);
    for (size_t i = 0; i < outputs; ++i) out[i] = data_of(call.out, i);
    parallel_for(count, kGrain,
                 [&](int64_t b, int64_t e, int) { map_elements(map, type, in, out, b, e, factor); });
  });
}

// A function of an op, and its gradient.
struct Function {
  std::string_view op, choice;
  Map map, gradient;
};
constexpr Function kFunctions[] = {
#define FUNCTION(name, op, choice) {#op, choice, Map::k_##name, Map::k_##name##_grad},
#define PLAIN(name, op) FUNCTION(name, op, "")
#include "runtime/base/elementwise.def"
};

// As kGlus.
struct GluMaps {
  Map map, gradient;
};
#define GLU(word, ...) {Map::kGlu_##word, Map::kGlu_##word##_grad},
constexpr GluMaps kGluMaps[] = {CAIRN_GLUS(GLU, GLU)};
#undef GLU

// What the attribute names, else the op's first.
const Function& function_of(const Signature& s, std::string_view op) {
  const std::string word = s.attrs != nullptr ? s.attrs->word("approximate") : "";
  const Function* chosen = nullptr;
  for (const Function& f : kFunctions)
    if (f.op == op && (chosen == nullptr || f.choice == word)) chosen = &f;
  return *chosen;
}

std::unique_ptr<Kernel> make_combine(const Signature& s, Map map) {
  if (!fast_float(s.in[0]) || s.out[0].dtype != s.in[0].dtype || !are_suffixes(s.in)) return nullptr;
  if (s.in[1].dtype != s.in[0].dtype && !plain_f32(s.in[1])) return nullptr;
  const int64_t count = s.in[0].shape.elements(), row = s.in[1].shape.elements();
  const DType type_a = s.in[0].dtype, type_b = s.in[1].dtype;
  const int64_t bytes_a = dtype_bytes(type_a), bytes_b = dtype_bytes(type_b);
  return make_kernel([=](const Call& call) {
    const char *a = input<const char>(call, 0), *b = input<const char>(call, 1);
    char* y = output<char>(call, 0);
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end;) {
        const int64_t at = i % row, n = std::min(row - at, end - i);
        combine_row(map, type_a, type_b, a + i * bytes_a, b + at * bytes_b, y + i * bytes_a, n);
        i += n;
      }
    });
  });
}

std::unique_ptr<Kernel> make_convert(const Signature& s, bool may_add) {
  if (!fast_float(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  const int64_t count = s.in[0].shape.elements();
  const DType type_x = s.in[0].dtype, type_y = s.out[0].dtype;
  const int64_t bytes_x = dtype_bytes(type_x), bytes_y = dtype_bytes(type_y);
  return make_kernel([=](const Call& call) {
    const char* x = input<const char>(call, 0);
    char* y = output<char>(call, 0);
    const bool add = may_add && accumulates(call, 0);
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      convert(type_x, type_y, add, x + b * bytes_x, y + b * bytes_y, e - b);
    });
  });
}

}  // namespace

#define UNARY(op, ...)                                                                                   \
  std::unique_ptr<Kernel> make_##op(const Signature& s) { return make_map(s, function_of(s, #op).map); } \
  std::unique_ptr<Kernel> make_##op##_grad(const Signature& s) {                                         \
    return make_map(s, function_of(s, #op).gradient);                                                    \
  }
#include "runtime/base/elementwise.def"

std::unique_ptr<Kernel> make_swiglu(const Signature& s) { return make_map(s, Map::kGlu_silu); }
std::unique_ptr<Kernel> make_swiglu_grad(const Signature& s) { return make_map(s, Map::kGlu_silu_grad); }
std::unique_ptr<Kernel> make_glu(const Signature& s) {
  return make_map(s, kGluMaps[glu_of(s.attrs)].map, static_cast<float>(glu_limit(s.attrs)));
}
std::unique_ptr<Kernel> make_glu_grad(const Signature& s) {
  return make_map(s, kGluMaps[glu_of(s.attrs)].gradient, static_cast<float>(glu_limit(s.attrs)));
}
std::unique_ptr<Kernel> make_scale(const Signature& s) {
  return make_map(s, Map::kScale, static_cast<float>(s.attrs->real("factor", 1.0)));
}
std::unique_ptr<Kernel> make_add(const Signature& s) { return make_combine(s, Map::kAdd); }
std::unique_ptr<Kernel> make_mul(const Signature& s) { return make_combine(s, Map::kMul); }
std::unique_ptr<Kernel> make_cast(const Signature& s) { return make_convert(s, false); }
std::unique_ptr<Kernel> make_dequantise(const Signature& s) {
  if (!in_blocks(s.in[0]) || !fast_float(s.out[0])) return nullptr;
  const DType from = s.in[0].dtype, to = s.out[0].dtype;
  const int64_t count = s.in[0].shape.elements(), bytes = dtype_bytes(to);
  return make_kernel([=](const Call& call) {
    char* y = output<char>(call, 0);
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      decode_values(from, data_of(call.in, 0), b, e - b, to, y + b * bytes);
    });
  });
}
std::unique_ptr<Kernel> make_accumulate(const Signature& s) {
  return plain_f32(s.out[0]) ? make_convert(s, true) : nullptr;
}

std::unique_ptr<Kernel> make_average(const Signature& s) {
  if (!fast_float(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  const auto share = static_cast<float>(1 - s.attrs->real("decay"));
  const auto with = [=](auto number) {  // number(operands, i)
    return make_kernel([=](const Call& call) {
      float* ema = output<float>(call, 0);
      parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
        for (int64_t i = b; i < e; ++i) ema[i] += share * (number(call, i) - ema[i]);
      });
    });
  };
  if (s.has_in(1))
    return with([](const Call& call, int64_t i) {
      return join_halves(input<const bf16>(call, 0)[i], input<const uint16_t>(call, 1)[i]);
    });
  return with_float(s.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return with([](const Call& call, int64_t i) { return to_float(input<const T>(call, 0)[i]); });
  });
}

std::unique_ptr<Kernel> make_fill(const Signature& s) {
  if (!fast_float(s.out[0])) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  const DType type = s.out[0].dtype;
  const float value = static_cast<float>(s.attrs != nullptr ? s.attrs->real("value", 0) : 0);
  return make_kernel([=](const Call& call) {
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      with_float(type, [&](auto zero) {
        using T = decltype(zero);
        std::fill(output<T>(call, 0) + b, output<T>(call, 0) + e, round_to<T>(value));
      });
    });
  });
}

}  // namespace cairn::kernels::cpu
