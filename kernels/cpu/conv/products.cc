// Convolutions as float32 products with patches, on every processor: blocks of patches are made in the workspace
// of a thread, or, for the gradient of a weight, in one that the threads share.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_f32.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kPixels = 128;        // patches of a block
constexpr int64_t kSummedPixels = 512;  // that are added to the gradient of a weight at once

// Bytes are 64 at least, so that a pass without taps has a workspace, too.
int64_t floats(int64_t count) { return std::max<int64_t>(count, 1) * 4; }

class PatchProducts {
 public:
  PatchProducts(const ConvShape& shape, const Signature& s)
      : shape_(shape), passes_(shape.passes()), type_(s.in[0].dtype), weight_(s.in[1], &space_) {
    k_ = shape_.transposed ? shape_.group_outputs() : shape_.group_inputs();
    n_ = shape_.transposed ? shape_.group_inputs() : shape_.group_outputs();
    const int64_t taps = shape_.windows.taps();
    if (shape_.transposed) turned_at_ = space_.add(floats(weight_.count));
    pack_a_ = gemm_packs_rows(n_);
    patches_at_ = space_.add(s.threads * (patches_each_ = align_up(floats(kPixels * taps * k_), kAlignment)));
    sums_at_ = space_.add(s.threads * (sums_each_ = align_up(floats(kPixels * n_), kAlignment)));
    for (const Pass& pass : passes_)
      scratch_each_ =
          std::max(scratch_each_,
                   align_up(gemm_scratch_bytes(kPixels, static_cast<int64_t>(pass.taps.size()) * k_, pack_a_),
                            kAlignment));
    scratch_at_ = space_.add(s.threads * scratch_each_);
  }
  int64_t workspace_bytes() const { return space_.bytes(); }

  void run(const Call& call) const {
    void* const ws = call.workspace;
    const float* weight = weight_.read(data_of(call.in, 1), ws);
    if (shape_.transposed) weight = turned(weight, ws);
    for (const Pass& pass : passes_) {
      const int64_t steps = static_cast<int64_t>(pass.taps.size()) * k_,
                    pixels = shape_.windows.n * pass.y.count * pass.x.count;
      parallel_for(pixels, kPixels, [&](int64_t begin, int64_t end, int t) {
        for (int64_t p = begin; p < end; p += kPixels)
          for (int64_t g = 0; g < shape_.groups; ++g)
            block(call, pass, weight + g * (shape_.transposed ? steps * n_ : n_ * steps), g, p,
                  std::min(end, p + kPixels), t);
      });
      if (shape_.transposed) weight += shape_.groups * steps * n_;
    }
  }

 private:
  // For each pass and group [tap, output of the group][input of the group].
  const float* turned(const float* weight, void* ws) const {
    float* const turned = Workspace::at<float>(ws, turned_at_);
    const int64_t taps = shape_.windows.taps();
    float* to = turned;
    for (const Pass& pass : passes_) {
      const auto count = static_cast<int64_t>(pass.taps.size());
      parallel_for(shape_.groups * count, 1, [&](int64_t b, int64_t e, int) {
        for (int64_t i = b; i < e; ++i)
          for (int64_t o = 0; o < k_; ++o)
            std::memcpy(
                to + (i * k_ + o) * n_,
                weight + ((i / count * k_ + o) * taps + pass.taps[static_cast<size_t>(i % count)].index) * n_,
                static_cast<size_t>(n_) * 4);
      });
      to += shape_.groups * count * k_ * n_;
    }
    return turned;
  }

  void block(const Call& call, const Pass& pass, const float* weight, int64_t g, int64_t begin, int64_t end,
             int thread) const {
    void* const ws = call.workspace;
    float* const patches = Workspace::at<float>(ws, patches_at_ + thread * patches_each_);
    const int64_t channels = shape_.target_channels(), bytes = dtype_bytes(type_);
    char* const y = output<char>(call, 0);
    // A convolution's pixels are neighbours.
    const bool direct = type_ == DType::kF32 && !shape_.transposed;
    GemmBlock b{};
    b.m1 = end - begin, b.n1 = n_;
    b.k = b.whole_k = static_cast<int64_t>(pass.taps.size()) * k_;
    b.c = direct ? reinterpret_cast<float*>(y) + begin * channels + g * n_
                 : Workspace::at<float>(ws, sums_at_ + thread * sums_each_);
    b.ldc = direct ? channels : n_;
    if (b.k > 0) {
      read_patches({type_, data_of(call.in, 0), shape_.source_rows(), shape_.source_columns(),
                    shape_.source_channels(), g * k_, k_},
                   pass, begin, end, patches);
      b.a = patches, b.a_row = b.k, b.a_step = 1;
      b.b = weight, b.b_step = shape_.transposed ? n_ : 1, b.b_column = shape_.transposed ? 1 : b.k;
      const float* bias = shape_.transposed ? nullptr : input<const float>(call, 2);
      b.bias = bias != nullptr ? bias + g * n_ : nullptr;
      b.pack_a = pack_a_;
      b.scratch = Workspace::at<float>(ws, scratch_at_ + thread * scratch_each_);
      gemm_block(b);
    } else {
      std::fill_n(b.c, b.m1 * n_, 0.0f);
    }
    if (direct) return;
    PassPixels at(pass, begin);
    for (int64_t p = 0; p < b.m1; ++p, at.next()) {
      const int64_t pixel = at.target(shape_.target_rows(), shape_.target_columns());
      convert(DType::kF32, type_, false, b.c + p * n_, y + (pixel * channels + g * n_) * bytes, n_);
    }
  }

  ConvShape shape_;
  std::vector<Pass> passes_;
  DType type_;
  Workspace space_;
  Widened weight_;
  int64_t k_, n_;  // channels of a group
  bool pack_a_;
  int64_t turned_at_ = 0, patches_at_, patches_each_, sums_at_, sums_each_, scratch_at_, scratch_each_ = 0;
};

std::unique_ptr<Kernel> make_patch_products(const ConvShape& shape, const Signature& s) {
  auto products = std::make_shared<PatchProducts>(shape, s);
  return make_kernel([=](const Call& call) { products->run(call); }, products->workspace_bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_conv_f32(const Signature& s) {
  return conv_fits(s) ? make_patch_products(conv_shape(s), s) : nullptr;
}
std::unique_ptr<Kernel> make_conv_transpose_f32(const Signature& s) {
  return conv_fits(s) ? make_patch_products(conv_transpose_shape(s), s) : nullptr;
}

std::unique_ptr<Kernel> make_conv_grad_weight_f32(const Signature& s) {
  if (!conv_weight_fits(s)) return nullptr;
  const ConvShape shape = conv_weight_shape(s);
  const Pass pass = shape.passes()[0];
  const DType type = s.in[0].dtype;
  const int64_t pixels = shape.windows.pixels_out(), outputs = shape.outputs,
                steps = shape.windows.taps() * shape.group_inputs(), chunk = std::min(pixels, kSummedPixels);
  ProductShape sum{.m = shape.group_outputs(),
                   .n = steps,
                   .k = chunk,
                   .transpose_a = true,
                   .lda = outputs,
                   .add = true,
                   .whole_k = chunk};
  auto full = std::make_shared<Product>(sum, s.threads);
  sum.k = std::max<int64_t>(1, pixels % chunk);
  auto rest = std::make_shared<Product>(sum, s.threads);
  Workspace space;
  const int64_t patches_at = space.add(floats(chunk * steps)), dy_at = space.add(floats(chunk * outputs)),
                scratch_at = space.add(std::max(full->scratch_bytes(), rest->scratch_bytes()));
  return make_kernel(
      [=](const Call& call) {
        void* const ws = call.workspace;
        const char* const dy = input<const char>(call, 1);
        conv_bias_gradient(call, type, pixels, outputs);
        float* const dw = output<float>(call, 0);
        if (dw == nullptr) return;
        if (!accumulates(call, 0)) std::fill_n(dw, outputs * steps, 0.0f);
        float *const patches = Workspace::at<float>(ws, patches_at), *wide = Workspace::at<float>(ws, dy_at);
        for (int64_t p = 0; p < pixels; p += chunk) {
          const int64_t count = std::min(chunk, pixels - p);
          parallel_for(count, row_grain(outputs), [&](int64_t b, int64_t e, int) {
            convert(type, DType::kF32, false, dy + (p + b) * outputs * dtype_bytes(type), wide + b * outputs,
                    (e - b) * outputs);
          });
          for (int64_t g = 0; g < shape.groups; ++g) {
            parallel_for(count, row_grain(steps), [&](int64_t b, int64_t e, int) {
              read_patches({type, data_of(call.in, 0), shape.source_rows(), shape.source_columns(),
                            shape.inputs, g * shape.group_inputs(), shape.group_inputs()},
                           pass, p + b, p + e, patches + b * steps);
            });
            (count == chunk ? full : rest)
                ->run(wide + g * shape.group_outputs(), patches, dw + g * shape.group_outputs() * steps,
                      Workspace::at<char>(ws, scratch_at));
          }
        }
      },
      space.bytes());
}

}  // namespace cairn::kernels::cpu
