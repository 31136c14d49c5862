#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/library.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

// Rows of full vectors, up to 128 numbers: what the library is fast for. It is asked for no masks but the causal one.
bool fits(const Signature& s, size_t first, const AttentionShape& a) {
  return !a.masked && is_bf16(s.in[first]) && a.dim % 8 == 0 && a.dim <= 128;
}

}  // namespace

std::string attention_row() {
  const LibraryVersion library = attention_library_version();
  if (library.number == 0) return cat("attention by cairn's own kernels: ", library.why);
  const std::string name = cat("attention by cuDNN ", library.number / 10000, '.', library.number / 100 % 100,
                               '.', library.number % 100);
  return library.number < kLinearGradient
             ? cat(name, ", gradients of very long sequences by cairn (before 9.25)")
             : name;
}

std::unique_ptr<Kernel> make_attention_library(const Signature& s) {
  const auto shape = attention_shape(s, 0);
  if (!shape || !fits(s, 0, *shape) || !s.has_out(1)) return nullptr;
  const AttentionShape a = *shape;
  const std::shared_ptr<const LibraryAttention> library = library_in_parts(a, false);
  if (library == nullptr) return nullptr;
  return make_kernel(
      [=](const Call& call) {
        const auto in = heads_of<const bf16>(call.in, 0, a);
        library->run({.stream = stream_of(call),
                      .q = in.q,
                      .k = in.k,
                      .v = in.v,
                      .y = output<bf16>(call, 0),
                      .lse = output<float>(call, 1),
                      .workspace = call.workspace});
      },
      library->workspace_bytes());
}

std::unique_ptr<Kernel> make_attention_grad_library(const Signature& s) {
  const auto shape = attention_shape(s, 1);
  if (!shape || !fits(s, 1, *shape) || !s.has_out(0)) return nullptr;
  const AttentionShape a = *shape;
  if (!a.packed && !(s.has_out(1) && s.has_out(2))) return nullptr;  // the library makes all three
  const std::shared_ptr<const LibraryAttention> library = library_in_parts(a, true);
  if (library == nullptr) return nullptr;
  return make_kernel(
      [=](const Call& call) {
        const auto in = heads_of<const bf16>(call.in, 1, a);
        const auto out = heads_of<bf16>(call.out, 0, a);
        library->run({.stream = stream_of(call),
                      .q = in.q,
                      .k = in.k,
                      .v = in.v,
                      .y = input<bf16>(call, 4),
                      .lse = input<float>(call, 5),
                      .dy = input<const bf16>(call, 0),
                      .dq = out.q,
                      .dk = out.k,
                      .dv = out.v,
                      .workspace = call.workspace});
      },
      library->workspace_bytes());
}

}  // namespace cairn::kernels::cuda
