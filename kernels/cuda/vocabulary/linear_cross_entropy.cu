// The fused loss over a vocabulary: logits exist for one chunk of rows at a time, become their own gradient
// in place, and are multiplied into dx and dw before the next chunk.
#include "kernels/cuda/losses.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/vocabulary/logits.h"
#include "kernels/cuda/vocabulary/products.h"

namespace cairn::kernels::cuda {
namespace {

struct FusedLoss {
  Workspace space;
  WeightReader weight;
  bool own_grad_weight;  // dx reads the weight from operand 4
  bool has_dx, has_dw;
  HeadProducts products;
  LogitRows shape;
  LossRows loss_rows;
  size_t hits;  // the output with the hits; their count is the next output
  int64_t losses_at, hits_at = -1, means_at = -1;
  size_t class_weights;  // the operand
  float smoothing;

  FusedLoss(const Signature& s, bool gradient)
      : weight(s.in[1], s.in[0].dtype, &space),
        own_grad_weight(gradient && s.has_in(4) && s.in[4].packed_bytes > 0),
        has_dx(gradient && s.has_out(2)),
        has_dw(gradient && s.has_out(3)),
        products(s, has_dx, true, has_dw, &space),
        shape(s, products.z, has_dx || has_dw, &space),
        loss_rows(make_loss_rows(z().type, z().ld, z().type, z().ld, z().vocab, true)),
        hits(gradient ? 4 : 2),
        losses_at(space.add(z().rows * 8)),
        class_weights(gradient ? 6 : 4),
        smoothing(s.attrs != nullptr ? static_cast<float>(s.attrs->real("smoothing")) : 0.0f) {
    if (s.has_out(hits) || s.has_out(hits + 1)) hits_at = space.add(z().rows);
    if (smoothing > 0) means_at = space.add(z().chunk * 4);
  }
  const HeadSizes& z() const { return products.z; }

  void run(const Call& call) const {
    const cudaStream_t stream = stream_of(call);
    Targets targets = targets_of(call, 2, z().vocab, z().ignore, 5, class_weights);
    targets.smoothing = smoothing;
    float* const means = means_at >= 0 ? Workspace::at<float>(call, means_at) : nullptr;
    targets.means = means;
    const char* x = input<const char>(call, 0);
    const void* w = weight.read(call, 1);
    const void* grad_w = own_grad_weight ? data_of(call.in, 4) : w;
    double* losses = Workspace::at<double>(call, losses_at);
    Hit* of = hits_at >= 0 ? Workspace::at<Hit>(call, hits_at) : nullptr;
    const bool gradients = has_dx || has_dw;
    for (int64_t r = 0; r < z().rows; r += z().chunk) {
      const int64_t count = z().count(r), at = z().x_bytes(r);
      products.make_logits(call, r, x + at, w);
      char* const logits = shape.make(call, z(), count, products.logits(call));
      if (of != nullptr) hit_rows(stream, z().type, logits, z().ld, targets, r, count, of);
      if (means != nullptr) mean_rows(stream, z().type, logits, z().ld, z().vocab, count, means);
      cross_entropy_rows(stream, loss_rows, logits, gradients ? logits : nullptr, targets, r, count, losses);
      if (gradients) shape.slope(call, z(), count, logits, products.logits(call));
      if (has_dx) products.input_gradient(call, r, grad_w, nullptr, output<char>(call, 2) + at);
      if (has_dw)
        products.weight_gradient(call, r, x + at, output<float>(call, 3), r > 0 || accumulates(call, 3));
    }
    sum_cross_entropy(stream, targets, z().rows, losses, output<double>(call, 0), output<double>(call, 1));
    if (of != nullptr)
      sum_hits(stream, of, z().rows, output<double>(call, hits), output<double>(call, hits + 1));
  }
};

std::unique_ptr<Kernel> make_fused_loss(const Signature& s, bool gradient) {
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || !WeightReader::takes(s.in[1], t) || s.in[2].dtype != DType::kI32)
    return nullptr;
  if (s.has_in(3) && !plain_f32(s.in[3])) return nullptr;
  if (const size_t i = gradient ? 6 : 4; s.has_in(i) && !plain_f32(s.in[i])) return nullptr;
  if (gradient && s.has_in(4) && s.in[4].packed_bytes > 0 && !WeightReader::takes(s.in[4], t)) return nullptr;
  if (gradient && ((s.has_out(2) && s.out[2].dtype != t) || (s.has_out(3) && !plain_f32(s.out[3]))))
    return nullptr;
  const auto loss = std::make_shared<const FusedLoss>(s, gradient);
  return make_kernel([loss](const Call& call) { loss->run(call); }, loss->space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cross_entropy(const Signature& s) { return make_fused_loss(s, false); }
std::unique_ptr<Kernel> make_linear_cross_entropy_grad(const Signature& s) {
  return make_fused_loss(s, true);
}

}  // namespace cairn::kernels::cuda
