// The next token from a row of logits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::generate {

// The steps of a draw, in this order, as Transformers' logits processors have them. Defaults change nothing.
struct Sampling {
  double temperature = 1;  // 0: the largest logit, always; the first of equal ones
  double repetition_penalty =
      1;              // > 0: logits of tokens that were there are divided by it, or multiplied below 0
                      // (Keskar et al., CTRL, 2019)
  int32_t top_k = 0;  // among so many of the largest; 0: all
  double top_p = 1;   // among the fewest of the likeliest that have this probability together
                      // (Holtzman et al., 2020)
  double min_p = 0;   // none that is less likely than this share of the likeliest (Nguyen et al., 2024)
  uint64_t seed = 0;
};
void check(const Sampling& sampling);  // kInvalidArgument: names the number that is out of its range

class Sampler {
 public:
  // Draws from logits[V]. seen: the tokens so far, in 0..V-1, prompt and all; the draw is a pure function of these, the logits
  // and `sampling`, so that other samples of a batch change nothing. kNonFinite: a logit is no number, or all are -infinity.
  int32_t draw(std::span<const float> logits, std::span<const int32_t> seen, const Sampling& sampling);

 private:
  struct Candidate {
    float logit;
    int32_t token;
  };
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
  std::vector<float> changed_;  // logits after the penalty
};

}  // namespace cairn::generate
