#include "runtime/generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace cairn::generate {
namespace {

// In [0, 1), of 53 bits: a number of its own for each place of a text.
double uniform_at(uint64_t seed, uint64_t place) {
  const PhiloxBlock bits = random_block({.seed = seed, .step = place}, 0);
  return static_cast<double>((uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1p-53;
}

size_t largest(std::span<const float> logits) {
  size_t best = 0;
  bool number = true;
  for (size_t i = 0; i < logits.size(); ++i) {
    number &= !std::isnan(logits[i]) && logits[i] != HUGE_VALF;
    if (logits[i] > logits[best]) best = i;
  }
  require(number && std::isfinite(logits[best]), Code::kNonFinite, "the logits are not finite");
  return best;
}

}  // namespace

void check(const Sampling& s) {
  const auto in = [](double v, double low, double high) { return v >= low && v <= high; };
  constexpr double kMost = 1e6;
  require(in(s.temperature, 0, kMost), Code::kInvalidArgument, "temperature is ", s.temperature,
          "; it must be from 0 to ", kMost);
  require(s.repetition_penalty > 0 && in(s.repetition_penalty, 0, kMost), Code::kInvalidArgument,
          "repetition_penalty is ", s.repetition_penalty, "; it must be above 0, to ", kMost);
  require(s.top_k >= 0, Code::kInvalidArgument, "top_k is ", s.top_k, "; it must be 0 or more");
  require(s.top_p > 0 && in(s.top_p, 0, 1), Code::kInvalidArgument, "top_p is ", s.top_p,
          "; it must be above 0, to 1");
  require(in(s.min_p, 0, 1), Code::kInvalidArgument, "min_p is ", s.min_p, "; it must be from 0 to 1");
}

int32_t Sampler::draw(std::span<const float> logits, std::span<const int32_t> seen,
                      const Sampling& sampling) {
  if (sampling.repetition_penalty != 1) {
    changed_.assign(logits.begin(), logits.end());
    const auto penalty = static_cast<float>(sampling.repetition_penalty);
    for (const int32_t token : seen) {  // from the logits as they were: twice there is once punished
      const float logit = logits[static_cast<size_t>(token)];
      changed_[static_cast<size_t>(token)] = logit < 0 ? logit * penalty : logit / penalty;
    }
    logits = changed_;
  }
  const size_t best = largest(logits);
  if (sampling.temperature == 0 || sampling.top_k == 1) return static_cast<int32_t>(best);

  // In the order of likelihood, equal ones by number. A token that has less than 1e-13 of the likeliest's probability does not
  // change a draw of 53 bits.
  const double factor = 1 / sampling.temperature;
  const double floor = std::log(std::max(sampling.min_p, 1e-13));
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if ((static_cast<double>(logits[i]) - logits[best]) * factor >= floor)
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  if (sampling.top_k > 0 && candidates_.size() > static_cast<size_t>(sampling.top_k)) {
    const auto end = candidates_.begin() + sampling.top_k;
    std::nth_element(candidates_.begin(), end, candidates_.end(), likelier);
    candidates_.erase(end, candidates_.end());
  }
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  weights_.clear();
  double sum = 0;
  for (const Candidate& candidate : candidates_)
    sum += weights_.emplace_back(std::exp((static_cast<double>(candidate.logit) - logits[best]) * factor));
  size_t count = candidates_.size();
  if (sampling.top_p < 1) {
    double reached = 0;
    for (count = 0; count < weights_.size() && reached < sampling.top_p * sum; ++count)
      reached += weights_[count];
    sum = reached;
  }
  double left = uniform_at(sampling.seed, seen.size()) * sum;
  for (size_t i = 0; i + 1 < count; ++i)
    if ((left -= weights_[i]) < 0) return candidates_[i].token;
  return candidates_[count - 1].token;
}

}  // namespace cairn::generate
