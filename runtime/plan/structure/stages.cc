#include "runtime/plan/structure/stages.h"

#include <algorithm>

namespace cairn::plan {
namespace {

// Per stage of a chain of blocks: on average, and at most.
constexpr int32_t kFewOps = 16, kMostOps = 48;

// Per position c: the values made before op c and read by forward ops from c on. Only those that span at most
// `longest` ops count.
std::vector<int32_t> crossings(const Problem& p, const Index& index, int32_t longest) {
  std::vector<int32_t> count(p.backward_begin + 1, 0);
  for (int32_t i = 0; i < p.backward_begin; ++i)
    for (int32_t v : index.outputs[i]) {
      const int32_t last = index.last_forward[v];
      if (last <= i || last - i > longest) continue;
      ++count[i + 1];
      --count[last + 1];
    }
  for (int32_t c = 1; c <= p.backward_begin; ++c) count[c] += count[c - 1];
  return count;
}

// Long spans (skips, tables read everywhere) are left out as long as that more than doubles the cuts.
std::vector<int32_t> cuts(const Problem& p, const Index& index, int32_t& longest) {
  std::vector<int32_t> best;
  longest = p.backward_begin;
  for (int32_t span = p.backward_begin; span > 0; span = span > 8 ? span / 2 : 0) {
    const std::vector<int32_t> count = crossings(p, index, span);
    std::vector<int32_t> found;
    for (int32_t c = 1; c < p.backward_begin; ++c)
      if (count[c] == 1) found.push_back(c);
    if (found.size() <= 2 * best.size()) continue;
    best = std::move(found);
    longest = span;
    if (static_cast<int32_t>(best.size()) * kFewOps >= p.backward_begin) break;
  }
  return best;
}

}  // namespace

Stages::Stages(const Problem& p, const Index& index)
    : of_op(p.backward_begin, 0),
      of_backward(p.ops.size(), -1),
      backward_before(p.ops.size(), 0),
      backward_live(p.ops.size(), 0) {
  int32_t longest = 0;
  std::vector<int32_t> at = cuts(p, index, longest);
  chain = longest == p.backward_begin && static_cast<int32_t>(at.size()) * kFewOps >= p.backward_begin;
  at.push_back(p.backward_begin);
  for (size_t k = 1; k < at.size(); ++k) chain = chain && at[k] - at[k - 1] <= kMostOps;
  int32_t begin = 0;
  for (int32_t cut : at) {
    Stage stage;
    stage.begin = begin;
    stage.end = begin = cut;
    for (int32_t i = stage.begin; i < stage.end; ++i) of_op[i] = static_cast<int32_t>(all.size());
    all.push_back(stage);
  }
  for (size_t s = 0; s + 1 < all.size(); ++s) {
    // The value that crosses, without those of long spans.
    for (int32_t back = static_cast<int32_t>(s); back >= 0 && all[s].out < 0; --back)
      for (int32_t i = all[back].begin; i < all[back].end; ++i)
        for (int32_t v : index.outputs[i])
          if (index.last_forward[v] >= all[s].end && index.last_forward[v] - i <= longest) all[s].out = v;
    all[s + 1].in = all[s].out;
  }
  const auto ops = static_cast<int32_t>(p.ops.size());
  int32_t stage = -1;
  for (int32_t b = ops; b-- > p.backward_begin;) {
    for (int32_t v : index.inputs[b])
      if (index.maker[v] < p.backward_begin) stage = std::max(stage, of_op[index.maker[v]]);
    of_backward[b] = stage;
  }
  for (Stage& s : all) s.back_begin = s.back_end = ops;
  for (int32_t b = ops; b-- > p.backward_begin;)
    if (of_backward[b] >= 0) {
      Stage& s = all[of_backward[b]];
      s.back_begin = b;
      if (s.back_end == ops) s.back_end = b + 1;
    }
  int32_t next = ops;
  for (Stage& s : all) {  // backward reads nothing of it: it lies between its neighbours
    if (s.back_begin == ops) s.back_begin = s.back_end = next;
    next = s.back_begin;
  }
  std::vector<int64_t> ending(p.ops.size(), 0);
  int64_t alive = 0;
  for (int32_t b = p.backward_begin; b < ops; ++b)
    for (int32_t v : index.outputs[b]) {
      const auto readers = index.readers[v];
      ending[readers.empty() ? b : readers.back()] += p.values[v].bytes;
    }
  for (int32_t b = p.backward_begin; b < ops; ++b) {
    backward_before[b] = alive;
    for (int32_t v : index.outputs[b]) alive += p.values[v].bytes;
    backward_live[b] = alive + p.ops[b].workspace_bytes;
    alive -= ending[b];
  }
}

}  // namespace cairn::plan
