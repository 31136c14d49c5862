// Ops that read weights as they are stored: in blocks, in every format, or in the type that ops compute in.
#pragma once
#include <optional>

#include "runtime/formats/codecs.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/gradient_cases.h"
#include "tests/conformance/updates.h"

namespace cairn::conformance {

// Weights that are stored as what the ops compute in.
inline void add_narrow_weights(std::vector<Direct>& to) {
  const TensorDesc one{DType::kF64, Shape{}, 0};
  for (const DType t : {DType::kBF16, DType::kF16})
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{7, 33, 64}, {33, 129, 70}, {1, 40, 24}, {65, 512, 96}}) {
      const TensorDesc x{t, {m, k}, 0}, w{t, {n, k}, 0}, y{t, {m, n}, 0}, bias{DType::kF32, {n}, 0},
          ids{DType::kI32, {m}, 0}, dw{DType::kF32, {n, k}, 0};
      to.push_back({"linear", {x, w, bias}, {y}, {}});
      to.push_back({"linear", {x, w, bias}, {y, y}, word("activation", "gelu_tanh")});
      to.push_back({"linear_grad_input", {y, w, kAbsent}, {x}, {}});
      to.push_back({"linear_cross_entropy", {x, w, ids, kAbsent}, {one, one}, {}, {}, n});
      to.push_back({"linear_cross_entropy_grad",
                    {x, w, ids, kAbsent, kAbsent, kAbsent},
                    {one, one, x, dw},
                    {},
                    {},
                    n});
      to.push_back({"embedding", {w, ids}, {x}, {}, {}, n});
    }
}

inline void add_blocks(std::vector<Direct>& to) {
  const TensorDesc one{DType::kF64, Shape{}, 0};
  for (const DType stored : kDTypes) {
    if (format(stored).read != Read::kDequantised) continue;
    const int64_t row = format(stored).row;
    for (const DType t : kKernelTypes) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 33, row}, {7, 65, 3 * row}, {33, 64, 512}}) {
        const TensorDesc x{t, {m, k}, 0}, w{stored, {n, k}, 0}, y{t, {m, n}, 0}, bias{DType::kF32, {n}, 0},
            ids{DType::kI32, {m}, 0}, dw{DType::kF32, {n, k}, 0};
        to.push_back({"linear", {x, w, bias}, {y}, {}});
        to.push_back({"linear", {x, w, kAbsent}, {y, y}, {{"activation", std::string("gelu_tanh")}}});
        to.push_back({"linear_grad_input", {y, w, kAbsent}, {x}, {}});
        // Of moderate logits, whatever the width: an error of theirs in 16 bits grows with them.
        const double most = 2 / std::pow(static_cast<double>(k), 0.25);
        to.push_back({"linear_cross_entropy", {x, w, ids, kAbsent}, {one, one}, {}, {}, n, most});
        to.push_back({"linear_cross_entropy_grad",
                      {x, w, ids, kAbsent, kAbsent, kAbsent},
                      {one, one, x, dw},
                      {},
                      {},
                      n,
                      most});
        to.push_back({"embedding", {w, ids}, {x}, {{"dtype", std::string(dtype_name(t))}}, {}, n});
      }
    }
  }
}

// The operands of a call with its weight in blocks.
struct Blocks {
  std::vector<TensorDesc> descs;
  std::vector<Tensor> tensors;
  std::vector<Buffer> space;
};
// Of one of the formats that rows of the weight divide by, `turn` says which. Nothing: there is no such weight.
inline std::optional<Blocks> in_blocks(const kernels::Signature& s, std::span<const Tensor> in,
                                       size_t& turn) {
  // What parts of a loss hand on is of the weight that the case has.
  const auto handed_on = [](const ops::Operand& o) { return o.name == "seen"; };
  if (std::ranges::any_of(ops::find(s.op)->inputs, handed_on)) return {};
  const int operand = ops::find(s.op)->operand(ops::OperandRole::kWeight);
  if (operand < 0 || !s.has_in(static_cast<size_t>(operand))) return {};
  if (ops::find(s.op)->inputs[static_cast<size_t>(operand)].decoded) return {};
  const auto at = static_cast<size_t>(operand);
  const TensorDesc weight = in[at].desc;
  std::vector<DType> fitting;
  for (const DType type : kDTypes)
    if (format(type).read == Read::kDequantised && weight.shape.last() % format(type).row == 0)
      fitting.push_back(type);
  if (fitting.empty() || weight.packed_bytes > 0 || !formats::codec(weight.dtype)) return {};
  const TensorDesc stored{fitting[turn++ % fitting.size()], weight.shape, 0};
  const int64_t count = weight.shape.elements();
  std::vector<float> numbers(static_cast<size_t>(count));
  formats::codec(weight.dtype).decode(in[at].data, count, numbers.data());
  Blocks blocks{{s.in.begin(), s.in.end()}, {in.begin(), in.end()}, {}};
  blocks.space.emplace_back(stored.bytes());
  if (!formats::codec(stored.dtype).encode(numbers.data(), count, blocks.space[0].data())) return {};
  blocks.descs[at] = stored;
  blocks.tensors[at] = {stored, blocks.space[0].data()};
  return blocks;
}

}  // namespace cairn::conformance
