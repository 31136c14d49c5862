// Makes pieces from blocks: drops empty blocks, rounds sizes, numbers the sections, and sorts by begin and by end.
#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/plan/layout/layout_parts.h"

namespace cairn::plan {
namespace {

bool takes_room(const Block& b) { return b.bytes > 0 && b.begin < b.end; }

// Section of each step at which some block begins or ends, by a table where steps are about as many as
// blocks, else by sorting.
class Sections {
 public:
  explicit Sections(std::span<const Block> blocks) {
    int64_t steps = 0, count = 0;
    for (const Block& b : blocks) {
      if (!takes_room(b)) continue;
      require(b.begin >= 0, Code::kInvalidArgument, "a block begins at step ", b.begin);
      steps = std::max<int64_t>(steps, b.end);
      ++count;
    }
    dense_ = steps <= 4 * count + 64;
    if (dense_) {
      section_.assign(static_cast<size_t>(steps) + 1, 0);
      for (const Block& b : blocks)
        if (takes_room(b)) section_[b.begin] = section_[b.end] = 1;
      int32_t next = 0;
      for (int32_t& s : section_) s = s ? next++ : next;
      count_ = std::max(0, next - 1);
    } else {
      for (const Block& b : blocks)
        if (takes_room(b)) section_.insert(section_.end(), {b.begin, b.end});
      std::sort(section_.begin(), section_.end());
      section_.erase(std::unique(section_.begin(), section_.end()), section_.end());
      count_ = static_cast<int32_t>(section_.size()) - 1;
    }
  }

  int32_t count() const { return count_; }
  int32_t of(int32_t step) const {
    if (dense_) return section_[step];
    return static_cast<int32_t>(std::lower_bound(section_.begin(), section_.end(), step) - section_.begin());
  }

 private:
  bool dense_ = true;
  int32_t count_ = 0;
  std::vector<int32_t> section_;
};

// Counting sort of indices 0..n-1 by key(i) in 0..keys-1; fills row[k]..row[k+1].
template <typename Key>
std::vector<int32_t> sort_by(int32_t n, int32_t keys, std::vector<int32_t>& row, Key key) {
  row.assign(static_cast<size_t>(keys) + 1, 0);
  for (int32_t i = 0; i < n; ++i) ++row[key(i) + 1];
  for (int32_t k = 0; k < keys; ++k) row[k + 1] += row[k];
  std::vector<int32_t> next(row.begin(), row.end() - 1), order(n);
  for (int32_t i = 0; i < n; ++i) order[next[key(i)]++] = i;
  return order;
}

}  // namespace

Pieces::Pieces(std::span<const Block> blocks, int64_t align) : alignment(align) {
  const Sections section(blocks);
  sections = section.count();
  std::vector<Piece> unsorted;
  std::vector<int32_t> from;
  int64_t sum = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (!takes_room(blocks[b])) continue;
    const int64_t bytes = align_up(blocks[b].bytes, align);
    sum = checked_add(sum, bytes);  // no sum in the stages is larger than this
    require(sum < kTop, Code::kInvalidArgument, "the blocks of a layout have ", sum,
            " bytes and more; fewer than ", kTop, " are laid out");
    unsorted.push_back({section.of(blocks[b].begin), section.of(blocks[b].end), bytes});
    from.push_back(static_cast<int32_t>(b));
  }
  const auto n = static_cast<int32_t>(unsorted.size());
  const std::vector<int32_t> order =
      sort_by(n, sections + 1, begin_row, [&](int32_t i) { return unsorted[i].begin; });
  all.reserve(n);
  for (int32_t i : order) {
    all.push_back(unsorted[i]);
    block.push_back(from[i]);
  }
  by_end = sort_by(n, sections + 1, end_row, [&](int32_t i) { return all[i].end; });
  alive.assign(static_cast<size_t>(sections) + 1, 0);
  for (const Piece& p : all) {
    alive[p.begin] += p.bytes;
    alive[p.end] -= p.bytes;
  }
  for (int32_t s = 0; s < sections; ++s) {
    if (s > 0) alive[s] += alive[s - 1];
    most = std::max(most, alive[s]);
  }
  alive.resize(sections);
}

std::vector<int32_t> Pieces::full_sections() const {
  std::vector<int32_t> to(static_cast<size_t>(sections) + 1, 0);
  bool began = false;
  for (int32_t s = 0; s < sections; ++s) {
    began = began || begin_row[s + 1] > begin_row[s];
    const bool ends = end_row[s + 2] > end_row[s + 1];
    to[s + 1] = to[s] + (began && ends);
    if (ends) began = false;
  }
  return to;
}

}  // namespace cairn::plan
