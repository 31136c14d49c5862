// The library's attention with plain loops, addressed as the library is: by strides.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/attention/library.h"
#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda {
namespace {

// Rows of one head of one sequence.
template <class T>
struct Rows {
  T* first;
  int64_t ld;
  Rows(T* p, const AttentionSizes& a, int b, int h, int ld_)
      : first(p + int64_t{b} * a.length * ld_ + int64_t{h} * a.dim), ld(ld_) {}
  T* row(int t) const { return first + t * ld; }
};

double dot(const bf16* x, const bf16* y, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double{to_float(x[i])} * double{to_float(y[i])};
  return sum;
}
void add(std::vector<double>& to, int row, double factor, const bf16* x, int n) {
  for (int i = 0; i < n; ++i) to[static_cast<size_t>(row * n + i)] += factor * double{to_float(x[i])};
}
void store(const std::vector<double>& from, const Rows<bf16>& to, int rows, int n) {
  for (int t = 0; t < rows; ++t)
    for (int i = 0; i < n; ++i)
      to.row(t)[i] = to_bf16(static_cast<float>(from[static_cast<size_t>(t * n + i)]));
}

void forward(const AttentionSizes& a, const AttentionCall& call) {
  for (int b = 0; b < a.batch; ++b)
    for (int h = 0; h < a.heads; ++h) {
      const int g = h / (a.heads / a.kv_heads);
      const Rows q(call.q, a, b, h, a.q_ld), k(call.k, a, b, g, a.kv_ld), v(call.v, a, b, g, a.kv_ld);
      std::vector<double> y(static_cast<size_t>(a.length * a.dim)), s(static_cast<size_t>(a.length));
      for (int t = 0; t < a.length; ++t) {
        const int seen = a.causal ? t + 1 : a.length;
        double most = -HUGE_VAL, sum = 0;
        for (int i = 0; i < seen; ++i) {
          s[static_cast<size_t>(i)] = double{a.scale} * dot(q.row(t), k.row(i), a.dim);
          most = std::max(most, s[static_cast<size_t>(i)]);
        }
        for (int i = 0; i < seen; ++i) sum += std::exp(s[static_cast<size_t>(i)] - most);
        for (int i = 0; i < seen; ++i)
          add(y, t, std::exp(s[static_cast<size_t>(i)] - most) / sum, v.row(i), a.dim);
        call.lse[(int64_t{b} * a.heads + h) * a.length + t] = static_cast<float>(most + std::log(sum));
      }
      store(y, Rows(call.y, a, b, h, a.y_ld), a.length, a.dim);
    }
}

void backward(const AttentionSizes& a, const AttentionCall& call) {
  const auto size = static_cast<size_t>(a.length * a.dim);
  const int group = a.heads / a.kv_heads;
  for (int b = 0; b < a.batch; ++b)
    for (int g = 0; g < a.kv_heads; ++g) {
      const Rows k(call.k, a, b, g, a.kv_ld), v(call.v, a, b, g, a.kv_ld);
      std::vector<double> dk(size), dv(size);
      for (int h = g * group; h < (g + 1) * group; ++h) {
        const Rows q(call.q, a, b, h, a.q_ld), dy(call.dy, a, b, h, a.y_ld);
        const Rows<const bf16> y(call.y, a, b, h, a.y_ld);
        std::vector<double> dq(size);
        for (int t = 0; t < a.length; ++t) {
          const double delta = dot(dy.row(t), y.row(t), a.dim);
          const double lse = double{call.lse[(int64_t{b} * a.heads + h) * a.length + t]};
          for (int i = 0; i < (a.causal ? t + 1 : a.length); ++i) {
            const double p = std::exp(double{a.scale} * dot(q.row(t), k.row(i), a.dim) - lse);
            const double ds = p * (dot(dy.row(t), v.row(i), a.dim) - delta) * double{a.scale};
            add(dq, t, ds, k.row(i), a.dim);
            add(dk, i, ds, q.row(t), a.dim);
            add(dv, i, p, dy.row(t), a.dim);
          }
        }
        store(dq, Rows(call.dq, a, b, h, a.q_ld), a.length, a.dim);
      }
      store(dk, Rows(call.dk, a, b, g, a.kv_ld), a.length, a.dim);
      store(dv, Rows(call.dv, a, b, g, a.kv_ld), a.length, a.dim);
    }
}

class Loops final : public LibraryAttention {
 public:
  Loops(const AttentionSizes& a, bool gradient) : a_(a), gradient_(gradient) {}
  int64_t workspace_bytes() const override {
    const int64_t rows = int64_t{a_.batch} * a_.heads * a_.length;
    const bool quadratic = gradient_ && emulated::libraries().attention < kLinearGradient;
    return gradient_ ? 4 * rows * (quadratic ? a_.length : a_.dim) : 0;
  }
  void run(const AttentionCall& call) const override {
    emulated::submit(static_cast<cudaStream_t>(call.stream),
                     [a = a_, call, gradient = gradient_, space = workspace_bytes()] {
                       std::fill_n(static_cast<char*>(call.workspace), space, '\x5a');
                       gradient ? backward(a, call) : forward(a, call);
                     });
  }

 private:
  AttentionSizes a_;
  bool gradient_;
};

}  // namespace

std::unique_ptr<LibraryAttention> try_library_attention(const AttentionSizes& a, bool gradient) {
  if (emulated::libraries().attention == 0) return nullptr;
  return std::make_unique<Loops>(a, gradient);
}

LibraryVersion attention_library_version() {
  const int number = emulated::libraries().attention;
  return {number, number == 0 ? "libcudnn.so.9 cannot be opened" : ""};
}

}  // namespace cairn::kernels::cuda
