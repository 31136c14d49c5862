// Which keys a row of attention sees, and the gradient of sinks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;  // beyond any distance of a row and a key

}  // namespace

int64_t AttentionShape::most_keys(int64_t rows) const {
  const int64_t reach = causal ? window : 2 * window - 1;
  return std::min(keys, reach + rows - 1);
}

std::optional<AttentionShape> attention_shape(const Signature& s, size_t first) {
  const DType type = s.in[0].dtype;
  if (!is_fast_float(type) || s.attrs == nullptr) return std::nullopt;
  AttentionShape a;
  a.sinks = first == 0 ? 3 : 6;
  for (size_t i = 0; i < std::min(s.in.size(), a.sinks); ++i)
    if (s.has_in(i) && s.in[i].dtype != type && !(first == 1 && i == 5 && plain_f32(s.in[i])))
      return std::nullopt;
  for (const size_t i : {a.sinks, a.sinks + 4})
    if (s.has_in(i) && !plain_f32(s.in[i])) return std::nullopt;
  const Shape& q = s.in[first].shape;
  a.packed = !s.has_in(first + 1);
  a.heads = s.attrs->integer("heads");
  a.kv_heads = s.attrs->integer("kv_heads", 0);
  if (a.kv_heads <= 0) a.kv_heads = a.heads;
  a.batch = q[0];
  a.length = q[1];
  a.keys = a.packed ? a.length : s.in[first + 1].shape[1];
  a.q_ld = q[2];
  a.dim = a.packed ? q[2] / (a.heads + 2 * a.kv_heads) : q[2] / a.heads;
  a.kv_ld = a.packed ? a.q_ld : a.kv_heads * a.dim;
  a.y_ld = a.heads * a.dim;
  a.causal = s.attrs->integer("causal", 1) != 0;
  a.type = type;
  a.scale = static_cast<float>(s.attrs->real("scale", 1.0 / std::sqrt(static_cast<double>(a.dim))));
  a.softcap = static_cast<float>(s.attrs->real("softcap", 0));
  a.window = std::min(s.attrs->integer("window", kFar), kFar);
  return a;
}

AttentionMask::AttentionMask(const AttentionShape& a, const Call& call)
    : a_(a),
      sinks_(input<const float>(call, a.sinks)),
      distances_(input<const float>(call, a.sinks + 4)),
      sequences_(input<const int32_t>(call, a.sinks + 1)),
      lengths_(input<const int32_t>(call, a.sinks + 2)),
      position_(input<const int32_t>(call, a.sinks + 3)) {}

KeyRange AttentionMask::row(int64_t b, int64_t t) const {
  if (sequences_ != nullptr && sequences_[b * a_.length + t] < 0) return {};
  const int64_t stands = t + (position_ != nullptr ? position_[b] : 0);
  const int64_t after = stands + (a_.causal ? 1 : a_.window);
  int64_t end = std::min(a_.keys, after);
  if (lengths_ != nullptr) end = std::min<int64_t>(end, lengths_[b]);
  return {std::max<int64_t>(0, stands + 1 - a_.window), end};
}

KeyRange AttentionMask::block(int64_t b, int64_t t, int64_t t_end) const {
  // Rows see later and later keys.
  KeyRange seen{row(b, t).begin, row(b, t_end - 1).end};
  if (sequences_ == nullptr) return seen;
  const int32_t* ids = sequences_ + b * a_.length;
  int32_t least = std::numeric_limits<int32_t>::max(), most = -1;
  seen = {a_.keys, 0};
  for (int64_t r = t; r < t_end; ++r) {
    if (ids[r] < 0) continue;
    least = std::min(least, ids[r]);
    most = std::max(most, ids[r]);
    const KeyRange keys = row(b, r);
    seen = {std::min(seen.begin, keys.begin), std::max(seen.end, keys.end)};
  }
  // Samples lie one after the other, as a rule: what is before and after those of these rows is left out.
  const auto meets = [&](int64_t s) { return ids[s] >= least && ids[s] <= most; };
  while (!seen.empty() && !meets(seen.begin)) ++seen.begin;
  while (!seen.empty() && !meets(seen.end - 1)) --seen.end;
  return seen;
}

ScoreRow AttentionMask::scores(int64_t b, int64_t h, int64_t t, int64_t first, int64_t n, DType type) const {
  const KeyRange keys = row(b, t);
  ScoreRow scores{{std::max<int64_t>(0, keys.begin - first), std::min(n, keys.end - first)},
                  n,
                  a_.scale,
                  a_.softcap,
                  nullptr,
                  0,
                  sinks_ == nullptr ? nullptr : sinks_ + h,
                  type};
  if (distances_ != nullptr) scores.added = distances_ + a_.distance_at(h, t, first);
  if (sequences_ != nullptr) {
    scores.ids = sequences_ + b * a_.length + first;
    scores.own = sequences_[b * a_.length + t];
  }
  return scores;
}

SinkSums::SinkSums(const AttentionShape& a, const AttentionMask& mask, const Call& call, void* space)
    : a_(a),
      call_(call),
      sinks_(data_of(call.out, 3) == nullptr ? nullptr : mask.sinks()),
      sums_(static_cast<double*>(space)) {
  if (sinks_ != nullptr) std::fill_n(sums_, a.batch * a.heads, 0.0);
}

// d lse / d sink = p of the sink; what it takes from the other probabilities changes y by -p y.
void SinkSums::add(int64_t b, int64_t h, float lse, float delta) {
  if (sinks_ == nullptr || lse == -std::numeric_limits<float>::infinity()) return;
  sums_[b * a_.heads + h] -= static_cast<double>(std::exp(sinks_[h] - lse)) * static_cast<double>(delta);
}

void SinkSums::store() const {
  if (sinks_ == nullptr) return;
  float* to = output<float>(call_, 3);
  for (int64_t h = 0; h < a_.heads; ++h) {
    double sum = 0;
    for (int64_t b = 0; b < a_.batch; ++b) sum += sums_[b * a_.heads + h];
    to[h] = accumulates(call_, 3) ? to[h] + static_cast<float>(sum) : static_cast<float>(sum);
  }
}

DistanceSums::DistanceSums(const AttentionShape& a, const Call& call, void* space)
    : a_(a), call_(call), sums_(data_of(call.out, 4) == nullptr ? nullptr : static_cast<float*>(space)) {
  if (sums_ != nullptr) std::fill_n(sums_, a.batch * a.heads * a.distances(), 0.0f);
}

ScoreRow DistanceSums::of(ScoreRow row, int64_t b, int64_t h, int64_t t, int64_t first) const {
  if (sums_ != nullptr) row.added_sums = sums_ + a_.distance_at(b * a_.heads + h, t, first);
  return row;
}

void DistanceSums::store() const {
  if (sums_ == nullptr) return;
  float* to = output<float>(call_, 4);
  const int64_t count = a_.heads * a_.distances();
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t b = 0; b < a_.batch; ++b) sum += static_cast<double>(sums_[b * count + i]);
    to[i] = accumulates(call_, 4) ? to[i] + static_cast<float>(sum) : static_cast<float>(sum);
  }
}

int64_t sums_bytes(const AttentionShape& a, const Signature& s) {
  return (s.has_in(a.sinks) ? SinkSums::bytes(a) : 0) + (s.has_out(4) ? DistanceSums::bytes(a) : 0);
}

}  // namespace cairn::kernels::cpu
