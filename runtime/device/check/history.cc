#include "runtime/device/check/history.h"

#include <algorithm>
#include <iterator>

namespace cairn::device::check {

History::Cells::iterator History::split(int64_t at) {
  const auto next = cells_.lower_bound(at);
  if (next == cells_.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Cell right = before->second;
  before->second.end = at;
  return cells_.emplace_hint(next, at, std::move(right));
}

std::optional<Access> History::access(int64_t begin, int64_t end, bool write, const Access& access,
                                      const VectorClock& now) {
  if (begin >= end) return std::nullopt;
  std::optional<Access> race;
  const auto first = split(begin);
  split(end);
  const auto last = cells_.lower_bound(end);
  for (auto cell = first; cell != last && !race; ++cell) {
    if (cell->second.write && !now.seen(cell->second.write->when)) race = cell->second.write;
    if (write)
      for (const Access& read : cell->second.reads)
        if (!now.seen(read.when)) race = read;
  }
  if (write) {
    cells_.erase(first, last);
    cells_.emplace(begin, Cell{end, access, {}});
    return race;
  }
  int64_t at = begin;
  for (auto cell = first; at < end;) {
    if (cell == cells_.end() || cell->first >= end) {  // bytes nobody touched so far, up to the end
      cells_.emplace_hint(cell, at, Cell{end, std::nullopt, {access}});
      break;
    }
    if (at < cell->first) cells_.emplace_hint(cell, at, Cell{cell->first, std::nullopt, {access}});
    auto& reads = cell->second.reads;
    const auto mine = std::find_if(reads.begin(), reads.end(),
                                   [&](const Access& r) { return r.when.queue == access.when.queue; });
    if (mine == reads.end()) {
      reads.push_back(access);
    } else {
      *mine = access;
    }
    at = cell->second.end;
    ++cell;
  }
  return race;
}

bool History::forget(const VectorClock& seen) {
  for (auto cell = cells_.begin(); cell != cells_.end();) {
    auto& [end, write, reads] = cell->second;
    if (write && seen.seen(write->when)) write.reset();
    std::erase_if(reads, [&](const Access& r) { return seen.seen(r.when); });
    cell = !write && reads.empty() ? cells_.erase(cell) : std::next(cell);
  }
  return cells_.empty();
}

std::optional<Access> History::pending(const VectorClock& seen) const {
  for (const auto& [begin, cell] : cells_) {
    if (cell.write && !seen.seen(cell.write->when)) return cell.write;
    for (const Access& read : cell.reads)
      if (!seen.seen(read.when)) return read;
  }
  return std::nullopt;
}

}  // namespace cairn::device::check
