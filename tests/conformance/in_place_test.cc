// Inputs marked '=' in ops.def: output 0 may lie on them, and every backend's kernels then make the same
// bits.
#include <cstring>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "tests/conformance/gradient_cases.h"

namespace cairn::conformance {
namespace {

std::vector<Attrs> attributes(const ops::OpRow& row, DType dtype) {
  using enum ops::OpCode;
  std::vector<Attrs> list;
  for (const ops::Function& f : ops::functions())
    if (f.op == row.code || f.gradient == row.code) list.push_back(choice_of(f));
  if (!list.empty()) return list;
  switch (row.code) {
    case k_pow:
    case k_pow_grad:
      return {{{"exponent", 3.0}}, {{"exponent", 0.7}}};
    case k_clamp:
    case k_clamp_grad:
      return {{{"min", -0.5}, {"max", 0.8}}};
    case k_normalize:  // variances are drawn above -2
      return {{{"eps", 3.0}}};
    case k_batchnorm_grad:
      return {{{"eps", 3.0}}, {{"eps", 3.0}, {"fixed", int64_t{1}}}};
    case k_scale:
      return {{{"factor", 0.37}}};
    case k_dropout:
      return {{{"rate", 0.3}, {"rng", int64_t{5}}}};
    case k_grouped_linear_part:
    case k_grouped_linear_grad_input:
      return {{{"first", int64_t{1}}}};
    case k_cast:
      return {{{"dtype", std::string(dtype_name(dtype))}}};
    default:
      return {{}};
  }
}

struct Shapes {
  std::vector<TensorDesc> in, out;
};

// Of one element count; for sums and products also with an operand that is repeated.
std::vector<Shapes> shapes(const ops::OpRow& row, DType dtype, int64_t n) {
  const TensorDesc whole{dtype, {4, n}, 0}, row_of{wide(dtype), {4}, 0}, column{wide(dtype), {n}, 0};
  if (row.code == ops::OpCode::k_layernorm_grad)
    return {{{whole, whole, column, row_of, row_of, whole}, {whole, column, column}}};
  if (row.code == ops::OpCode::k_rmsnorm_grad)
    return {{{whole, whole, column, row_of, whole}, {whole, column}}};
  if (row.code == ops::OpCode::k_batchnorm_grad)
    return {{{whole, whole, column, column, column}, {whole, column, column}}};
  if (row.code == ops::OpCode::k_normalize) return {{{whole, column, column, column, column}, {whole}}};
  // Two of three experts, each of which has a row.
  const TensorDesc y{dtype, {3, n}, 0}, x{dtype, {3, 8}, 0}, starts{DType::kI32, {4}, 0};
  if (row.code == ops::OpCode::k_grouped_linear_part)
    return {{{x, {dtype, {2, n, 8}, 0}, starts, {wide(dtype), {3, n}, 0}, y}, {y}}};
  if (row.code == ops::OpCode::k_grouped_linear_grad_input)
    return {{{x, {dtype, {2, 8, n}, 0}, starts, y}, {y}}};
  std::vector<Shapes> list = {{std::vector<TensorDesc>(row.inputs.size(), whole),
                               std::vector<TensorDesc>(row.outputs.size(), whole)}};
  if (row.code != ops::OpCode::k_add && row.code != ops::OpCode::k_mul) return list;
  list.push_back({{whole, {dtype, {n}, 0}}, {whole}});
  if (dtype == DType::kBF16 || dtype == DType::kF16)
    list.push_back({{whole, {DType::kF32, {n}, 0}}, {whole}});
  return list;
}

// All outputs. over: the input that output 0 lies on, -1: none.
std::vector<std::vector<char>> run(const kernels::Kernel& kernel, const Shapes& s, int over) {
  std::vector<Buffer> in_buffers, out_buffers;
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < s.in.size(); ++i) {
    in_buffers.emplace_back(s.in[i].bytes());
    in.push_back({s.in[i], in_buffers[i].data()});
    fill(in[i], 70 + i, {'T', {}, -2, 2});
    for (int32_t j = 0; s.in[i].dtype == DType::kI32 && j < s.in[i].shape.elements(); ++j)
      in[i].as<int32_t>()[j] = j;
  }
  for (size_t i = 0; i < s.out.size(); ++i) {
    out_buffers.emplace_back(s.out[i].bytes());
    out.push_back(
        {s.out[i], i == 0 && over >= 0 ? in[static_cast<size_t>(over)].data : out_buffers[i].data()});
  }
  Buffer workspace(kernel.workspace_bytes());
  kernels::Call call;
  call.in = in;
  call.out = out;
  call.workspace = workspace.data();
  call.in_place = over >= 0 ? 1u << over : 0;
  call.key = {11, 3, 1, 5};
  kernel.run(call);
  std::vector<std::vector<char>> bytes;
  for (size_t i = 0; i < s.out.size(); ++i) {
    const auto* p = static_cast<const char*>(out[i].data);
    bytes.emplace_back(p, p + s.out[i].bytes());
  }
  return bytes;
}

TEST(InPlace, MarkedInputsMayBeWrittenOver) {
  int marked = 0;
  for (const ops::OpRow& row : ops::all())
    for (size_t over = 0; over < row.inputs.size(); ++over) {
      if (!row.inputs[over].in_place) continue;
      ++marked;
      for (const kernels::Registry* registry : {&kernels::cpu_registry(), &kernels::reference_registry()}) {
        int ran = 0;
        for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64})
          for (const int64_t n : {1, 7, 64, 250, 20000})
            for (const Attrs& attrs : attributes(row, dtype))
              for (const Shapes& s : shapes(row, dtype, n)) {
                if (s.in[over] != s.out[0]) continue;  // a repeated operand is read more than once
                for (const int threads : {1, 2}) {
                  const kernels::Signature signature{
                      row.name, s.in,   s.out, (1u << s.in.size()) - 1, (1u << s.out.size()) - 1,
                      &attrs,   threads};
                  const auto kernel = registry->find(signature);
                  if (kernel == nullptr) continue;
                  ++ran;
                  set_thread_count(threads);
                  EXPECT_EQ(run(*kernel, s, static_cast<int>(over)), run(*kernel, s, -1))
                      << registry->backend << ' ' << row.name << " over " << row.inputs[over].name << ", "
                      << to_string(s.out[0]) << ", threads " << threads;
                  set_thread_count(1);
                }
              }
        EXPECT_GE(ran, 10) << registry->backend << " has no kernels of " << row.name;
      }
    }
  EXPECT_GE(marked, 17);
}

}  // namespace
}  // namespace cairn::conformance
