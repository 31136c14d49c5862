// Norms by channel: batchnorm (Ioffe and Szegedy, 2015), normalize, groupnorm (Wu and He, 2018) and their gradients. A batchnorm is
// the groupnorm of one sample with groups of one channel. Rows are cut into chunks by the shape alone; a chunk is summed in
// float32, chunks are added up in order in float64.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/pictures/channel_passes.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kChunkRows = 512, kChunkElements = 128 << 10;

class ChannelNorm {
 public:
  // groups: of a sample; 0: the rows of all samples are one, and each channel is a group. parts: rows of C that sums of a chunk are.
  ChannelNorm(const Signature& s, const TensorDesc& x, int64_t groups, int64_t parts)
      : z_{x.dtype, x.shape.last()},
        samples_(groups > 0 ? x.shape[0] : 1),
        rows_(x.shape.rows() / samples_),
        c_(x.shape.last()),
        groups_(groups > 0 ? groups : c_),
        size_(c_ / groups_),
        chunk_(std::clamp<int64_t>(kChunkElements / c_ / 8 * 8, 8, kChunkRows)),
        chunks_((rows_ + chunk_ - 1) / chunk_),
        parts_(parts),
        eps_(s.attrs->real("eps", 1e-5)),
        fixed_(s.attrs->integer("fixed") != 0),
        rstd_(groups > 0) {
    factors_at_ = space_.add(samples_ * ChannelFactors::kCount * c_ * 4);
    parts_at_ = space_.add(samples_ * chunks_ * parts * c_ * 4);
    totals_at_ = space_.add(parts > 0 ? samples_ * 2 * c_ * 8 : 0);
  }
  int64_t workspace_bytes() const { return space_.bytes(); }

  void forward(const Call& call) const {
    const char* const x = input<const char>(call, 0);
    const auto *const gamma = input<const float>(call, 1), *const beta = input<const float>(call, 2);
    float *const mean = output<float>(call, 1), *const second = output<float>(call, 2);
    each_chunk([&](int64_t chunk, int64_t, int64_t from, int64_t rows) {
      channel_statistics(z_, x + from, rows, part(call, chunk));
    });
    each_sample([&](int64_t n) {
      add_up_statistics(call, n);
      for (int64_t g = 0; g < groups_; ++g) {
        const Moments m = moments(totals(call, n), g);
        const double rstd = 1 / std::sqrt(m.var + eps_);
        if (mean != nullptr) mean[n * groups_ + g] = static_cast<float>(m.mean);
        if (second != nullptr) second[n * groups_ + g] = static_cast<float>(rstd_ ? rstd : m.var);
        set_group(call, n, g, m.mean, rstd, gamma, beta);
      }
    });
    scale(call, x);
  }

  void normalize(const Call& call) const {
    const auto *const mean = input<const float>(call, 1), *const var = input<const float>(call, 2);
    for (int64_t g = 0; g < groups_; ++g)
      set_group(call, 0, g, mean[g], 1 / std::sqrt(var[g] + eps_), input<const float>(call, 3),
                input<const float>(call, 4));
    scale(call, input<const char>(call, 0));
  }

  void backward(const Call& call) const {
    const char *const dy = input<const char>(call, 0), *const x = input<const char>(call, 1);
    const auto *const gamma = input<const float>(call, 2), *const mean = input<const float>(call, 3),
                      *const second = input<const float>(call, 4);
    char* const dx = output<char>(call, 0);
    float *const dgamma = output<float>(call, 1), *const dbeta = output<float>(call, 2);
    const auto inverse = [&](int64_t n, int64_t g) {
      const double given = second[n * groups_ + g];
      return rstd_ ? given : 1 / std::sqrt(given + eps_);
    };
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t g = 0; g < groups_; ++g)
        set_group(call, n, g, mean[n * groups_ + g], inverse(n, g), gamma, nullptr);
    if (!fixed_ || dgamma != nullptr || dbeta != nullptr) {
      each_chunk([&](int64_t chunk, int64_t n, int64_t from, int64_t rows) {
        channel_sums(z_, dy + from, x + from, rows, factors(call, n), part(call, chunk));
      });
      each_sample([&](int64_t n) {
        add_up_sums(call, n);
        for (int64_t g = 0; g < groups_ && !fixed_; ++g) set_slope(call, n, g, inverse(n, g), gamma);
      });
      write_sums(dgamma, accumulates(call, 1),
                 [&](int64_t n, int64_t k) { return totals(call, n)[c_ + k] * inverse(n, k / size_); });
      write_sums(dbeta, accumulates(call, 2), [&](int64_t n, int64_t k) { return totals(call, n)[k]; });
    }
    if (dx == nullptr) return;
    if (fixed_) {
      float* const by = factors(call, 0);
      std::fill_n(by + ChannelFactors::kMean * c_, c_, 0.0f);
      std::fill_n(by + ChannelFactors::kShift * c_, c_, 0.0f);
      return scale(call, dy);
    }
    each_chunk([&](int64_t, int64_t n, int64_t from, int64_t rows) {
      channel_gradient(z_, dy + from, x + from, rows, factors(call, n), dx + from);
    });
  }

 private:
  struct Moments {
    double mean = 0, var = 0;
  };

  // body(chunk, its sample, its first byte, its rows).
  template <class Body>
  void each_chunk(const Body& body) const {
    parallel_for(samples_ * chunks_, row_grain(std::min(chunk_, rows_) * c_), [&](int64_t b, int64_t e, int) {
      for (int64_t chunk = b; chunk < e; ++chunk) {
        const int64_t n = chunk / chunks_, row = chunk % chunks_ * chunk_;
        body(chunk, n, (n * rows_ + row) * c_ * dtype_bytes(z_.type), std::min(chunk_, rows_ - row));
      }
    });
  }
  template <class Body>
  void each_sample(const Body& body) const {
    parallel_for(samples_, row_grain(chunks_ * c_ * 4), [&](int64_t b, int64_t e, int) {
      for (int64_t n = b; n < e; ++n) body(n);
    });
  }
  void scale(const Call& call, const char* from) const {
    each_chunk([&](int64_t, int64_t n, int64_t at, int64_t rows) {
      channel_scale(z_, from + at, rows, factors(call, n), output<char>(call, 0) + at);
    });
  }

  // Two rows of float64 for each sample: of means and sums of squares around them.
  void add_up_statistics(const Call& call, int64_t n) const {
    double *const mean = totals(call, n), *const squares = mean + c_;
    std::fill_n(mean, 2 * c_, 0.0);
    for (int64_t i = 0; i < chunks_; ++i) {
      const float *const first = part(call, n * chunks_ + i), *const rest = first + c_;
      const double share = rows_of(i) / static_cast<double>(rows_);
      for (int64_t k = 0; k < c_; ++k) mean[k] += share * (static_cast<double>(first[k]) + rest[k]);
    }
    for (int64_t i = 0; i < chunks_; ++i) {
      const float *const first = part(call, n * chunks_ + i), *const rest = first + c_,
                         *const own = rest + c_;
      for (int64_t k = 0; k < c_; ++k) {
        const double away = (static_cast<double>(first[k]) + rest[k]) - mean[k];
        squares[k] += own[k] + rows_of(i) * away * away;
      }
    }
  }
  Moments moments(const double* mean, int64_t g) const {
    Moments m;
    for (int64_t k = g * size_; k < (g + 1) * size_; ++k) m.mean += mean[k];
    m.mean /= static_cast<double>(size_);
    for (int64_t k = g * size_; k < (g + 1) * size_; ++k)
      m.var += mean[c_ + k] + static_cast<double>(rows_) * (mean[k] - m.mean) * (mean[k] - m.mean);
    m.var /= count();
    return m;
  }
  // Factors of y = (x - mean) rstd gamma + beta. The shift makes up for what the mean loses as a float32.
  void set_group(const Call& call, int64_t n, int64_t g, double mean, double rstd, const float* gamma,
                 const float* beta) const {
    float* const by = factors(call, n);
    const auto rounded = static_cast<float>(mean);
    for (int64_t k = g * size_; k < (g + 1) * size_; ++k) {
      const double factor = gamma != nullptr ? rstd * gamma[k] : rstd;
      by[ChannelFactors::kMean * c_ + k] = rounded;
      by[ChannelFactors::kFactor * c_ + k] = static_cast<float>(factor);
      by[ChannelFactors::kShift * c_ + k] =
          static_cast<float>((rounded - mean) * factor + (beta != nullptr ? beta[k] : 0.0f));
    }
  }

  // Two rows of float64 for each sample: sums of dy and of dy (x - mean).
  void add_up_sums(const Call& call, int64_t n) const {
    double* const sums = totals(call, n);
    std::fill_n(sums, 2 * c_, 0.0);
    for (int64_t i = 0; i < chunks_; ++i) {
      const float* const own = part(call, n * chunks_ + i);
      for (int64_t k = 0; k < 2 * c_; ++k) sums[k] += own[k];
    }
  }
  // With h = (x - mean) rstd, g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)).
  void set_slope(const Call& call, int64_t n, int64_t g, double rstd, const float* gamma) const {
    const double* const sums = totals(call, n);
    double all = 0, along = 0;
    for (int64_t k = g * size_; k < (g + 1) * size_; ++k) {
      const double factor = gamma != nullptr ? gamma[k] : 1.0f;
      all += factor * sums[k], along += factor * sums[c_ + k];
    }
    float* const by = factors(call, n);
    for (int64_t k = g * size_; k < (g + 1) * size_; ++k) {
      by[ChannelFactors::kFactor * c_ + k] = gamma != nullptr ? gamma[k] : 1.0f;
      by[ChannelFactors::kShift * c_ + k] = static_cast<float>(-all / count());
      by[ChannelFactors::kSlope * c_ + k] = static_cast<float>(-rstd * rstd * along / count());
      by[ChannelFactors::kOuter * c_ + k] = static_cast<float>(rstd);
    }
  }
  template <class Sum>
  void write_sums(float* to, bool add, const Sum& sum) const {
    for (int64_t k = 0; to != nullptr && k < c_; ++k) {
      double total = 0;
      for (int64_t n = 0; n < samples_; ++n) total += sum(n, k);
      to[k] = static_cast<float>(add ? to[k] + total : total);
    }
  }

  double count() const { return static_cast<double>(rows_ * size_); }
  double rows_of(int64_t chunk) const {
    return static_cast<double>(std::min(chunk_, rows_ - chunk * chunk_));
  }
  float* factors(const Call& call, int64_t n) const {
    return Workspace::at<float>(call.workspace, factors_at_) + n * ChannelFactors::kCount * c_;
  }
  float* part(const Call& call, int64_t chunk) const {
    return Workspace::at<float>(call.workspace, parts_at_) + chunk * parts_ * c_;
  }
  double* totals(const Call& call, int64_t n) const {
    return Workspace::at<double>(call.workspace, totals_at_) + n * 2 * c_;
  }

  ChannelRows z_;
  int64_t samples_, rows_, c_, groups_, size_, chunk_, chunks_, parts_;
  double eps_;
  bool fixed_,
      rstd_;  // rstd_: of the two statistics that are stored, the second is 1 / sqrt(var + eps), not var
  Workspace space_;
  int64_t factors_at_ = 0, parts_at_ = 0, totals_at_ = 0;
};

// The first `tensors` operands are of one type, the others float32.
bool fits(const Signature& s, size_t tensors) {
  if (!fast_float(s.in[0])) return false;
  for (size_t i = 0; i < s.in.size(); ++i)
    if (s.has_in(i) && (i < tensors ? s.in[i].dtype != s.in[0].dtype : !plain_f32(s.in[i]))) return false;
  return !s.has_out(0) || s.out[0].dtype == s.in[0].dtype;
}

std::unique_ptr<Kernel> make_with(const ChannelNorm& norm, void (ChannelNorm::*run)(const Call&) const) {
  return make_kernel([=](const Call& call) { (norm.*run)(call); }, norm.workspace_bytes());
}
std::unique_ptr<Kernel> make_forward(const Signature& s, int64_t groups) {
  if (!fits(s, 1)) return nullptr;
  return make_with(ChannelNorm(s, s.in[0], groups, kStatistics), &ChannelNorm::forward);
}
std::unique_ptr<Kernel> make_backward(const Signature& s, int64_t groups) {
  if (!fits(s, 2)) return nullptr;
  return make_with(ChannelNorm(s, s.in[1], groups, kGradientSums), &ChannelNorm::backward);
}

}  // namespace

std::unique_ptr<Kernel> make_batchnorm(const Signature& s) { return make_forward(s, 0); }
std::unique_ptr<Kernel> make_batchnorm_grad(const Signature& s) { return make_backward(s, 0); }
std::unique_ptr<Kernel> make_normalize(const Signature& s) {
  return fits(s, 1) ? make_with(ChannelNorm(s, s.in[0], 0, 0), &ChannelNorm::normalize) : nullptr;
}
std::unique_ptr<Kernel> make_groupnorm(const Signature& s) {
  return make_forward(s, s.attrs->integer("groups"));
}
std::unique_ptr<Kernel> make_groupnorm_grad(const Signature& s) {
  return make_backward(s, s.attrs->integer("groups"));
}

}  // namespace cairn::kernels::cpu
