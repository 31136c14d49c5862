// The fused loss over a vocabulary: logits exist for one chunk of rows at a time, become their own gradient
// in place, and are multiplied into dx and dw before the next chunk.
#include <algorithm>

#include "kernels/cuda/losses.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// dw is read and written, and the weight read, once per chunk, so chunks are large; but no more than an
// eighth of all logits where those are many.
constexpr int64_t kMinChunkBytes = 64 << 20, kMaxChunkBytes = 256 << 20;
// A narrow dx has few tiles: its chunks are larger, so that these are about as many as a large GPU has multiprocessors.
constexpr int64_t kNarrowChunkBytes = 512 << 20, kTileRows = 128, kTileColumns = 256, kTiles = 120;

int64_t chunk_rows(int64_t rows, int64_t width, int64_t row_bytes) {
  const int64_t wanted = checked_mul(rows, row_bytes) / 8,
                columns = (width + kTileColumns - 1) / kTileColumns;
  const int64_t for_tiles = (kTiles + columns - 1) / columns * kTileRows * row_bytes;
  const int64_t most_bytes = std::clamp(for_tiles, kMaxChunkBytes, kNarrowChunkBytes);
  const int64_t limit = std::min(std::max(wanted, kMinChunkBytes), most_bytes);
  const int64_t most = std::max(kTileRows, limit / row_bytes / kTileRows * kTileRows);
  const int64_t chunks = (rows + most - 1) / most;
  return align_up((rows + chunks - 1) / chunks, kTileRows);
}

struct Sizes {
  int64_t rows, width, vocab, ignore, chunk;
  int64_t ld;  // elements from one row of logits to the next: rows begin at multiples of 128 bytes

  explicit Sizes(const Signature& s)
      : rows(s.in[0].shape.rows()), width(s.in[0].shape.last()), vocab(s.in[1].shape[0]) {
    const int64_t bytes = dtype_bytes(s.in[0].dtype);
    ld = align_up(vocab, 128 / bytes);
    ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
    chunk = s.attrs != nullptr ? s.attrs->integer("chunk", 0) : 0;
    if (chunk <= 0) chunk = chunk_rows(rows, width, ld * bytes);
    chunk = std::min(chunk, rows);
  }
};

// The products over `m` rows.
struct ChunkProducts {
  std::shared_ptr<Product> logits, dx, dw;

  // `offset`: bytes of x and dx between chunks, which tells how their addresses are aligned.
  ChunkProducts(const Sizes& z, int64_t m, DType t, int64_t offset, bool has_dx, bool has_dw,
                Chooser& chooser) {
    int64_t aligned = 64;
    while (offset % aligned != 0) aligned /= 2;
    ProductShape shape;
    shape.in = shape.out = t;
    shape.m = m, shape.n = z.vocab, shape.k = z.width;
    shape.transpose_b = true;
    shape.ldc = z.ld;
    shape.alignment_a = aligned;
    logits = make_product(shape, chooser);
    if (has_dx) {
      ProductShape d;
      d.in = d.out = t;
      d.m = m, d.n = z.width, d.k = z.vocab;
      d.lda = z.ld;
      d.alignment_c = aligned;
      dx = make_product(d, chooser);
    }
    if (has_dw) {
      ProductShape d;
      d.in = t;
      d.m = z.vocab, d.n = z.width, d.k = m;
      d.transpose_a = true;
      d.lda = z.ld;
      d.alignment_b = aligned;
      dw = make_product(d, chooser);
    }
  }
  int64_t workspace_bytes() const {
    int64_t most = 0;
    for (const auto& p : {logits, dx, dw})
      if (p != nullptr) most = std::max(most, p->workspace_bytes());
    return most;
  }
};

struct FusedLoss {
  Sizes z;
  DType t;
  Workspace space;
  WeightReader weight;
  bool own_grad_weight;  // dx reads the weight from operand 4
  Chooser chooser;       // of use while it is made
  ChunkProducts whole, rest;
  LossRows loss_rows;
  size_t hits;  // the output that hits are; their count is behind it
  int64_t logits_at, losses_at, product_at, hits_at = -1;

  FusedLoss(const Signature& s, bool gradient)
      : z(s),
        t(s.in[0].dtype),
        weight(s.in[1], t, &space),
        own_grad_weight(s.has_in(4) && s.in[4].packed_bytes > 0),
        chooser(s),
        whole(z, z.chunk, t, offset(), gradient && s.has_out(2), gradient && s.has_out(3), chooser),
        rest(whole),
        loss_rows(make_loss_rows(t, z.ld, t, z.ld, z.vocab)),
        hits(gradient ? 4 : 2) {
    if (const int64_t left = z.rows % z.chunk; left != 0)
      rest = ChunkProducts(z, left, t, offset(), gradient && s.has_out(2), gradient && s.has_out(3), chooser);
    logits_at = space.add(z.chunk * z.ld * dtype_bytes(t));
    losses_at = space.add(z.rows * 8);
    product_at = space.add(std::max(whole.workspace_bytes(), rest.workspace_bytes()));
    if (s.has_out(hits) || s.has_out(hits + 1)) hits_at = space.add(z.rows);
  }
  // Between the rows of two chunks of x.
  int64_t offset() const { return z.chunk < z.rows ? z.chunk * z.width * dtype_bytes(t) : 64; }

  void run(const Call& call) const {
    const cudaStream_t stream = stream_of(call);
    const Targets targets = targets_of(call, 2, z.vocab, z.ignore, 5);
    const char* x = input<const char>(call, 0);
    const void* w = weight.read(call, 1);
    const void* grad_w = own_grad_weight ? data_of(call.in, 4) : w;
    void *logits = Workspace::at(call, logits_at), *space_of_products = Workspace::at(call, product_at);
    double* losses = Workspace::at<double>(call, losses_at);
    Hit* of = hits_at >= 0 ? Workspace::at<Hit>(call, hits_at) : nullptr;
    char* dx = whole.dx != nullptr ? output<char>(call, 2) : nullptr;
    float* dw = whole.dw != nullptr ? output<float>(call, 3) : nullptr;
    void* gradients = dx != nullptr || dw != nullptr ? logits : nullptr;
    for (int64_t r = 0; r < z.rows; r += z.chunk) {
      const int64_t count = std::min(z.chunk, z.rows - r), at = r * z.width * dtype_bytes(t);
      const ChunkProducts& products = count == z.chunk ? whole : rest;
      products.logits->run(
          {.stream = stream, .a = x + at, .b = w, .c = logits, .workspace = space_of_products});
      if (of != nullptr) hit_rows(stream, t, logits, z.ld, targets, r, count, of);
      cross_entropy_rows(stream, loss_rows, logits, gradients, targets, r, count, losses);
      if (dx != nullptr)
        products.dx->run(
            {.stream = stream, .a = logits, .b = grad_w, .c = dx + at, .workspace = space_of_products});
      if (dw != nullptr)
        products.dw->run({.stream = stream,
                          .a = logits,
                          .b = x + at,
                          .c = dw,
                          .workspace = space_of_products,
                          .accumulate = r > 0 || accumulates(call, 3)});
    }
    sum_cross_entropy(stream, targets, z.rows, losses, output<double>(call, 0), output<double>(call, 1));
    if (of != nullptr)
      sum_hits(stream, of, z.rows, output<double>(call, hits), output<double>(call, hits + 1));
  }
};

std::unique_ptr<Kernel> make_fused_loss(const Signature& s, bool gradient) {
  const DType t = s.in[0].dtype;
  if (!fast_float(s.in[0]) || !WeightReader::takes(s.in[1], t) || s.in[2].dtype != DType::kI32)
    return nullptr;
  if (s.has_in(3) && !plain_f32(s.in[3])) return nullptr;
  if (s.has_in(4) && s.in[4].packed_bytes > 0 && !WeightReader::takes(s.in[4], t)) return nullptr;
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
