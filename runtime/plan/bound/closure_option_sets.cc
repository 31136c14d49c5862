#include <algorithm>
#include <limits>

#include "runtime/plan/bound/closure.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxOps = 10, kMaxSets = 400'000;

}  // namespace

// The options of one part. part: its nodes, both ops and values.
OptionSet Closure::option_set(const std::vector<int32_t>& part) const {
  std::vector<int32_t> ops, values;
  for (const int32_t n : part) (n < ops_ ? ops : values).push_back(n);
  std::sort(ops.begin(), ops.end());
  const auto bit = [&](int32_t op) {
    return 1U << (std::lower_bound(ops.begin(), ops.end(), op) - ops.begin());
  };
  struct Help {
    double bytes;
    uint32_t readers, maker;
  };
  std::vector<Help> helps;
  for (const int32_t n : values) {
    Help help = {nodes_[n].bytes, 0, 0};
    for (int32_t a = flow_.begin(n); a < flow_.end(n); ++a)
      (flow_.arcs()[a].forward ? help.maker : help.readers) |= bit(flow_.arcs()[a].to);
    helps.push_back(help);
  }
  OptionSet option_set;
  for (uint32_t set = 0; set < 1U << ops.size(); ++set) {
    Item item = {0, 0};
    for (size_t k = 0; k < ops.size(); ++k)
      if (set >> k & 1)
        item.seconds += nodes_[ops[k]].seconds;
      else
        item.bytes += nodes_[ops[k]].bytes;
    for (const Help& help : helps)
      if ((set & help.readers) && !(set & help.maker)) item.bytes += help.bytes;
    if (item.seconds < std::numeric_limits<double>::infinity()) option_set.push_back(item);
  }
  keep_best(option_set);
  return option_set;
}

std::vector<OptionSet> Closure::option_sets() const {
  std::vector<OptionSet> option_sets;
  std::vector<uint8_t> seen(static_cast<size_t>(ops_ + values_), 0);
  std::vector<int32_t> part;
  size_t sets = 0;
  for (int32_t first = 0; first < ops_; ++first) {
    if (seen[first]) continue;
    seen[first] = 1;
    part = {first};
    size_t ops = 0;
    for (size_t head = 0; head < part.size(); ++head) {
      const int32_t n = part[head];
      ops += n < ops_;
      for (int32_t a = flow_.begin(n); a < flow_.end(n); ++a)
        if (!seen[flow_.arcs()[a].to]) {
          seen[flow_.arcs()[a].to] = 1;
          part.push_back(flow_.arcs()[a].to);
        }
    }
    if (ops > kMaxOps || (sets += size_t{1} << ops) > kMaxSets) return {};
    option_sets.push_back(option_set(part));
  }
  return option_sets;
}

}  // namespace cairn::plan
