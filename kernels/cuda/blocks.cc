// Products with a weight in blocks: it is decoded in the workspace, to what the op would read of `dequantise`, and the op's
// own kernel reads that.
#include "kernels/cuda/blocks.h"

#include <vector>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/rows.h"
#include "kernels/registry.h"

namespace cairn::kernels::cuda {
namespace {

constexpr size_t kWeight = 1;  // the operand

}  // namespace

std::unique_ptr<Kernel> make_product_of_blocks(const Signature& s) {
  const TensorDesc stored = s.in[kWeight];
  if (!in_blocks(stored)) return nullptr;
  const TensorDesc decoded{s.in[0].dtype == DType::kBF16 ? DType::kBF16 : DType::kF32, stored.shape, 0};
  std::vector<TensorDesc> in(s.in.begin(), s.in.end());
  in[kWeight] = decoded;
  Signature plain = s;
  plain.in = in;
  const std::shared_ptr<Kernel> product = cuda_registry().find(plain);
  if (product == nullptr) return nullptr;
  Workspace space;
  const int64_t decoded_at = space.add(decoded.bytes()), product_at = space.add(product->workspace_bytes());
  return make_kernel(
      [=](const Call& call) {
        void* const weight = Workspace::at(call, decoded_at);
        decode_blocks(stream_of(call), stored, data_of(call.in, kWeight), decoded.dtype, weight);
        constexpr size_t kMost = 16;
        Tensor operands[kMost];
        std::copy(call.in.begin(), call.in.end(), operands);
        operands[kWeight] = {decoded, weight};
        Call changed = call;
        changed.in = {operands, call.in.size()};
        changed.workspace = Workspace::at(call, product_at);
        product->run(changed);
      },
      space.bytes());
}

std::unique_ptr<Kernel> make_pack_of_blocks(const Signature& s) {
  const DType type = dtype_from_name(s.attrs->word("dtype"));
  if (!in_blocks(s.in[0]) || !is_half(type) || s.out[0].packed_bytes != 2 * s.in[0].shape.elements())
    return nullptr;
  return make_kernel([from = s.in[0], type](const Call& call) {
    decode_blocks(stream_of(call), from, data_of(call.in, 0), type, data_of(call.out, 0));
  });
}

}  // namespace cairn::kernels::cuda
