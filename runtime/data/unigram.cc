// Unigram segmentation: Viterbi's algorithm over the positions of the text.
#include <algorithm>
#include <limits>

#include "runtime/data/subword.h"
#include "runtime/data/utf8.h"

namespace cairn::data {
namespace {

constexpr float kUnknownPenalty = 10;  // below the lowest score
// User-defined pieces score above all logarithms of probabilities, the longer the more.
constexpr float kUserDefinedScore = 0.1f;  // per byte but one

// The best way to a position: its score, and the last step of it.
struct Node {
  float score = 0;
  int32_t begin = -1;  // -1: not reached yet
  int32_t id = -1;     // -1: a character that goes by bytes
};

class UnigramSegmenter final : public Segmenter {
 public:
  UnigramSegmenter(const Vocabulary& vocabulary, const std::string& where)
      : vocabulary_(vocabulary), index_(vocabulary, used(vocabulary, where)) {
    float lowest = std::numeric_limits<float>::max();
    scores_.resize(vocabulary.size());
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.type(id) == PieceType::kNormal) lowest = std::min(lowest, vocabulary.score(id));
      scores_[id] = vocabulary.type(id) == PieceType::kUserDefined
                        ? kUserDefinedScore * static_cast<float>(vocabulary.spelled_bytes(id) - 1)
                        : vocabulary.score(id);
    }
    unknown_ = lowest - kUnknownPenalty;
  }

  void append(std::string_view text, std::vector<int32_t>& tokens) const override {
    std::vector<Node> nodes(text.size() + 1);
    for (size_t at = 0, character = 0; at < text.size(); at += character) {
      character = utf8_length(text.substr(at, 4));
      const float here = nodes[at].score;
      const auto step = [&](size_t bytes, int32_t id, float score) {
        Node& node = nodes[at + bytes];
        const float sum = here + score;
        if (node.begin < 0 || sum > node.score) node = {sum, static_cast<int32_t>(at), id};
      };
      bool alone = false;
      index_.prefixes(text.substr(at), [&](int32_t id, size_t bytes) {
        step(bytes, id, scores_[id]);
        alone = alone || bytes == character;
        return true;
      });
      if (!alone) step(character, -1, unknown_);
    }
    const size_t first = tokens.size();
    for (auto at = static_cast<int32_t>(text.size()); at > 0; at = nodes[at].begin) {
      if (nodes[at].id >= 0)
        tokens.push_back(nodes[at].id);
      else
        for (int32_t byte = at - 1; byte >= nodes[at].begin; --byte)
          tokens.push_back(vocabulary_.byte_token(text[byte]));
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }

 private:
  static std::vector<int32_t> used(const Vocabulary& vocabulary, const std::string& where) {
    ExactIndex(vocabulary, where);  // for its check that no two pieces are the same
    std::vector<int32_t> ids;
    for (int32_t id : vocabulary.matchable())
      if (vocabulary.type(id) != PieceType::kUnused) ids.push_back(id);
    return ids;
  }

  const Vocabulary& vocabulary_;
  PrefixIndex index_;
  std::vector<float> scores_;
  float unknown_;
};

}  // namespace

std::unique_ptr<Segmenter> unigram_segmenter(const Vocabulary& vocabulary, const std::string& where) {
  return std::make_unique<UnigramSegmenter>(vocabulary, where);
}

}  // namespace cairn::data
