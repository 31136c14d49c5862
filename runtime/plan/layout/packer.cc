#include "runtime/plan/layout/packer.h"

#include <algorithm>
#include <cmath>

namespace cairn::plan {

Packer::Packer(int64_t times, int64_t stretch, int64_t floor) : stretch_(stretch), floor_(floor) {
  const int64_t stretches = (times + stretch - 1) / stretch;
  while (leaves_ < stretches) leaves_ *= 2;
  latest_.assign(2 * static_cast<size_t>(leaves_), -1);
  starts_.resize(static_cast<size_t>(leaves_));
  ceiling_.assign(static_cast<size_t>(stretches), floor);
}

void Packer::update(int32_t leaf) {
  int64_t latest = -1;
  for (const int32_t b : starts_[leaf]) latest = std::max(latest, blocks_[b].end);
  int32_t node = leaves_ + leaf;
  latest_[node] = latest;
  for (node /= 2; node > 0; node /= 2) {
    const int64_t higher = std::max(latest_[2 * node], latest_[2 * node + 1]);
    if (latest_[node] == higher) break;
    latest_[node] = higher;
  }
}

void Packer::link(int32_t block) {
  const int32_t leaf = stretch_of(blocks_[block].begin);
  starts_[leaf].push_back(block);
  update(leaf);
}

void Packer::unlink(int32_t block) {
  const int32_t leaf = stretch_of(blocks_[block].begin);
  std::vector<int32_t>& here = starts_[leaf];
  *std::find(here.begin(), here.end(), block) = here.back();
  here.pop_back();
  update(leaf);
}

template <typename Visit>
void Packer::each(int64_t begin, int64_t end, Visit visit) const {
  const int32_t last = stretch_of(end);
  int32_t stack[64];
  int depth = 0;
  stack[depth++] = 1;
  while (depth > 0) {
    const int32_t node = stack[--depth];
    if (latest_[node] < begin) continue;
    if (node >= leaves_) {
      const int32_t leaf = node - leaves_;
      if (leaf > last) return;
      for (const int32_t b : starts_[leaf])
        if (blocks_[b].end >= begin && blocks_[b].begin <= end) visit(b);
      continue;
    }
    stack[depth++] = 2 * node + 1;
    stack[depth++] = 2 * node;
  }
}

void Packer::beside(int64_t begin, int64_t end, std::vector<int32_t>& found) const {
  found.clear();
  each(begin, end, [&](int32_t b) { found.push_back(b); });
}

int64_t Packer::limit(const Block& b) const {
  const auto first = ceiling_.begin() + stretch_of(b.begin), last = ceiling_.begin() + stretch_of(b.end);
  int64_t least = *first;
  for (auto at = first; at <= last && least > floor_; ++at) least = std::min(least, *at);
  return least;
}

Packer::Block& Packer::touched(int32_t block) {
  Block& b = blocks_[block];
  if (b.seen != call_) {
    b.seen = call_;
    b.thrown = 0;
    b.held = 0;
  }
  return b;
}

void Packer::set_ceiling(int32_t stretch, int64_t to) {
  if (ceiling_[stretch] == to) return;
  undo_.push_back({Did::kCeiling, stretch, ceiling_[stretch]});
  excess_ += to - ceiling_[stretch];
  ceiling_[stretch] = to;
}

void Packer::lower_floor(int64_t floor) {
  const auto stretches = static_cast<int32_t>(ceiling_.size());
  excess_ += (floor_ - floor) * stretches;
  floor_ = floor;
  tighten(0, stretches - 1);
  commit();
}

void Packer::move(int32_t block, int64_t offset) {
  undo_.push_back({Did::kMoved, block, blocks_[block].offset});
  blocks_[block].offset = offset;
}

int32_t Packer::add(int64_t begin, int64_t end, int64_t bytes, int64_t offset) {
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(blocks_.size()));
    blocks_.push_back({});
  }
  const int32_t block = free_.back();
  free_.pop_back();
  const double lifetime = 1 + static_cast<double>(end - begin) / static_cast<double>(stretch_);
  Block b{};
  b.begin = begin;
  b.end = end;
  b.bytes = bytes;
  b.offset = offset;
  b.cost = 1 + static_cast<int64_t>(static_cast<double>(bytes) * lifetime / 4096);
  b.hard = static_cast<double>(bytes) * std::sqrt(lifetime);
  blocks_[block] = b;
  link(block);
  undo_.push_back({Did::kAdded, block, 0});
  if (offset < 0) fresh_.push_back(block);
  return block;
}

void Packer::remove(int32_t block) {
  undo_.push_back({Did::kRemoved, block, 0});
  unlink(block);
}

void Packer::undo_to(size_t size) {
  while (undo_.size() > size) {
    const Undo u = undo_.back();
    undo_.pop_back();
    switch (u.did) {
      case Did::kAdded:
        unlink(u.index);
        free_.push_back(u.index);
        break;
      case Did::kRemoved:
        link(u.index);
        break;
      case Did::kMoved:
        blocks_[u.index].offset = u.before;
        break;
      case Did::kCeiling:
        excess_ += u.before - ceiling_[u.index];
        ceiling_[u.index] = u.before;
        break;
    }
  }
  if (size == 0) fresh_.clear();
}

void Packer::commit() {
  for (const Undo& u : undo_)
    if (u.did == Did::kRemoved) free_.push_back(u.index);
  undo_.clear();
  fresh_.clear();
}

void Packer::lower(int32_t first, int32_t last, int64_t down) {
  for (int32_t s = first; s <= last; ++s) set_ceiling(s, std::max(floor_, ceiling_[s] - down));
}

void Packer::push(int32_t block) {
  const Block& b = touched(block);
  next_.push_back({b.hard * (1 + b.thrown), block});
  std::push_heap(next_.begin(), next_.end());
}

bool Packer::settle(int32_t first, int32_t last, int64_t work) {
  const size_t before = undo_.size();
  ++call_;
  turn_ = 0;
  next_.clear();
  for (const int32_t b : fresh_) push(b);
  each(first * stretch_, (last + 1) * stretch_ - 1, [&](int32_t j) {
    const Block& b = blocks_[j];
    if (b.offset < 0 || b.offset + b.bytes <= floor_ || b.offset + b.bytes <= limit(b)) return;
    move(j, -1);
    push(j);
  });
  while (!next_.empty()) {
    std::pop_heap(next_.begin(), next_.end());
    const int32_t block = next_.back().block;
    next_.pop_back();
    if (work <= 0 || !put(block, work)) {
      undo_to(before);
      return false;
    }
  }
  return true;
}

bool Packer::put(int32_t block, int64_t& work) {
  place_.beside.clear();
  const int64_t bytes = blocks_[block].bytes, last = limit(blocks_[block]) - bytes;
  if (last < 0) return false;
  each(blocks_[block].begin, blocks_[block].end, [&](int32_t j) {
    const Block& b = blocks_[j];
    if (b.offset < 0) return;
    const bool seen = b.seen == call_;
    const int64_t held = seen && b.held > turn_ ? 1000 : 1;
    place_.beside.push_back({b.offset, b.offset + b.bytes, held * b.cost * (1 + (seen ? b.thrown : 0)), j});
  });
  work -= 16 + 4 * static_cast<int64_t>(place_.beside.size());
  const int64_t offset = place_.find(bytes, last);
  for (const CheapestPlace::Beside& w : place_.beside)
    if (w.begin < offset + bytes && offset < w.end) {
      ++touched(w.block).thrown;
      move(w.block, -1);
      push(w.block);
    }
  move(block, offset);
  touched(block).held = turn_ + 1 + static_cast<int64_t>(place_.draw() % 3);
  ++turn_;
  return true;
}

void Packer::tighten(int32_t first, int32_t last) {
  for (const Undo& u : undo_) {
    if (u.did == Did::kCeiling) continue;
    first = std::min(first, stretch_of(blocks_[u.index].begin));
    last = std::max(last, stretch_of(blocks_[u.index].end));
  }
  std::vector<int64_t> tops(static_cast<size_t>(last - first + 1), floor_);
  each(first * stretch_, (last + 1) * stretch_ - 1, [&](int32_t j) {
    const Block& b = blocks_[j];
    const int64_t top = b.offset + b.bytes;
    if (top <= floor_) return;
    const int32_t from = std::max(first, stretch_of(b.begin)), to = std::min(last, stretch_of(b.end));
    for (int32_t s = from; s <= to; ++s) tops[s - first] = std::max(tops[s - first], top);
  });
  for (int32_t s = first; s <= last; ++s) set_ceiling(s, tops[s - first]);
}

}  // namespace cairn::plan
