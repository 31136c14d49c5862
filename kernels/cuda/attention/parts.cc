// The library's attention over parts of the batch, or of the heads of one sample, so that its workspace is small.
// Sizes alone decide the parts, so that the bits depend on nothing else.
#include <vector>

#include "kernels/cuda/attention/library.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int64_t kBlockRows = 128;    // queries of a block of the library's kernels
constexpr int64_t kLeastBlocks = 128;  // of a part: about as many as a large GPU has multiprocessors

struct Part {
  int batch, kv_heads;
};

// Smaller and smaller ones that all parts can be like.
std::vector<Part> parts_of(const AttentionSizes& a) {
  std::vector<Part> parts;
  for (int batch = a.batch - 1; batch > 0; --batch)
    if (a.batch % batch == 0) parts.push_back({batch, a.kv_heads});
  for (int heads = a.kv_heads - 1; heads > 0; --heads)
    if (a.kv_heads % heads == 0) parts.push_back({1, heads});
  return parts;
}

class InParts final : public LibraryAttention {
 public:
  InParts(const AttentionSizes& all, const AttentionSizes& part, std::unique_ptr<LibraryAttention> each)
      : all_(all), part_(part), each_(std::move(each)) {}
  int64_t workspace_bytes() const override { return each_->workspace_bytes(); }
  void run(const AttentionCall& call) const override {
    const int64_t group = all_.heads / all_.kv_heads;
    for (int64_t b = 0; b < all_.batch; b += part_.batch)
      for (int64_t g = 0; g < all_.kv_heads; g += part_.kv_heads) {
        const int64_t rows = b * all_.length, head = g * group;
        const int64_t q = rows * all_.q_ld + head * all_.dim, kv = rows * all_.kv_ld + g * all_.dim,
                      y = rows * all_.y_ld + head * all_.dim;
        AttentionCall here = call;
        here.q += q, here.k += kv, here.v += kv, here.y += y;
        here.lse += (b * all_.heads + head) * all_.length;
        if (call.dy != nullptr) here.dy += y, here.dq += q, here.dk += kv, here.dv += kv;
        each_->run(here);
      }
  }

 private:
  const AttentionSizes all_, part_;
  const std::unique_ptr<LibraryAttention> each_;
};

}  // namespace

std::shared_ptr<const LibraryAttention> library_in_parts(const AttentionSizes& a, bool gradient) {
  std::shared_ptr<const LibraryAttention> whole = try_library_attention(a, gradient);
  const int64_t most = max_library_workspace(a, gradient);
  if (whole == nullptr || whole->workspace_bytes() <= most) return whole;
  const double fits = static_cast<double>(most) / static_cast<double>(whole->workspace_bytes()) *
                      static_cast<double>(a.batch) * static_cast<double>(a.kv_heads);
  for (const Part part : parts_of(a)) {
    if (static_cast<double>(part.batch) * static_cast<double>(part.kv_heads) > fits) continue;
    AttentionSizes sizes = a;
    sizes.batch = part.batch, sizes.kv_heads = part.kv_heads;
    sizes.heads = a.heads / a.kv_heads * part.kv_heads;
    const int64_t blocks = (a.length + kBlockRows - 1) / kBlockRows;
    if (blocks * sizes.batch * sizes.heads < kLeastBlocks) return nullptr;
    std::unique_ptr<LibraryAttention> each = try_library_attention(sizes, gradient);
    if (each == nullptr) return nullptr;
    if (each->workspace_bytes() <= most) return std::make_shared<InParts>(a, sizes, std::move(each));
  }
  return nullptr;
}

}  // namespace cairn::kernels::cuda
