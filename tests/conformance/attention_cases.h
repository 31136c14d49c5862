// Attention whose rows do not see all keys, or see more than keys: every mask alone and several together.
#pragma once
#include "tests/conformance/cases.h"

namespace cairn::conformance {

struct AttentionSize {
  int64_t batch, time, heads, kv, dim;
  int64_t keys = 0;  // 0: as many as rows
};

struct Mask {
  bool sinks = false;
  // Numbers of sequences: none, in any order with padding between them, or one sample after the other with padding at the end.
  enum { kNone, kMixed, kSamples } sequences = kNone;
  bool lengths = false, position = false;
  int64_t window = 0;
  double softcap = 0;
  bool distances = false;
};

inline Case mask_case(const AttentionSize& s, const Mask& m, bool causal, bool packed, double range = 1) {
  const int64_t keys = s.keys > 0 ? s.keys : s.time;
  Case c{"attention", {}, {{"heads", s.heads}, {"kv_heads", s.kv}, {"causal", int64_t{causal}}}};
  if (m.window > 0) c.attrs.set("window", m.window);
  if (m.softcap > 0) c.attrs.set("softcap", m.softcap);
  if (packed) {
    c.in = {T({s.batch, s.time, (s.heads + 2 * s.kv) * s.dim}, -range, range), kNoOperand, kNoOperand};
  } else {
    const Operand kv = T({s.batch, keys, s.kv * s.dim}, -range, range);
    c.in = {T({s.batch, s.time, s.heads * s.dim}, -range, range), kv, kv};
  }
  const std::vector<int64_t> ids{s.batch, s.time}, each{s.batch};
  c.in.push_back(m.sinks ? P({s.heads}) : kNoOperand);
  c.in.push_back(m.sequences == Mask::kNone ? kNoOperand : Operand{'I', ids, -1, 3});
  c.in.back().samples = m.sequences == Mask::kSamples;
  c.in.push_back(m.lengths ? Operand{'I', each, 0, static_cast<double>(keys + 1)} : kNoOperand);
  const auto least = static_cast<double>(std::min<int64_t>(1, keys - s.time));
  c.in.push_back(m.position ? Operand{'I', each, least, static_cast<double>(keys - s.time + 1)} : kNoOperand);
  if (m.distances) c.in.push_back(P({s.heads, s.time + keys - 1}));
  return c;
}

inline const Mask kMasks[] = {
    {.sinks = true},
    {.sequences = Mask::kMixed},
    {.sequences = Mask::kSamples},
    {.lengths = true},
    {.window = 1},
    {.window = 3},
    {.softcap = 0.8},
    {.sinks = true, .window = 2},
    {.sequences = Mask::kSamples, .window = 2},
    {.sinks = true, .sequences = Mask::kMixed, .softcap = 1.5},
    {.lengths = true, .window = 2, .softcap = 2},
    {.sinks = true, .sequences = Mask::kSamples, .lengths = true, .window = 3, .softcap = 1},
    {.distances = true},
    {.lengths = true, .softcap = 0.8, .distances = true},
    {.sinks = true, .sequences = Mask::kMixed, .window = 3, .distances = true}};
// Of rows that stand elsewhere among keys of another number.
inline const Mask kPlacedMasks[] = {
    {.position = true},
    {.position = true, .window = 2},
    {.sinks = true, .position = true},
    {.sinks = true, .lengths = true, .position = true, .window = 3, .softcap = 1}};

inline void add_masks(std::vector<Case>& to) {
  for (const Mask& mask : kMasks)
    for (const bool causal : {true, false}) {
      to.push_back(mask_case({2, 5, 2, 1, 2}, mask, causal, causal));
      to.push_back(mask_case({1, 4, 4, 2, 3}, mask, causal, !causal));
    }
  for (const Mask& mask : kPlacedMasks)
    for (const bool causal : {true, false}) to.push_back(mask_case({2, 3, 2, 1, 2, 6}, mask, causal, false));
  for (const Mask& mask : {Mask{}, Mask{.lengths = true}, Mask{.sinks = true}, Mask{.distances = true},
                           Mask{.lengths = true, .distances = true}})
    to.push_back(mask_case({2, 3, 2, 2, 2, 5}, mask, false, false));
  to.push_back(mask_case({2, 5, 2, 1, 3, 2}, {.softcap = 1, .distances = true}, false, false));
  to.push_back(mask_case({3, 1, 4, 2, 2, 5}, {.position = true}, true, false));
}

// Around the sizes of tiles, with windows shorter and longer than one.
inline void add_backend_masks(std::vector<Case>& to) {
  for (Mask mask : kMasks)
    for (const bool causal : {true, false}) {
      if (mask.window > 1) mask.window *= 17;
      to.push_back(mask_case({1, 130, 2, 1, 32}, mask, causal, causal, 2));
      to.push_back(mask_case({2, 35, 1, 1, 7}, mask, causal, !causal));
    }
  for (const int64_t window : {31, 64, 100})
    to.push_back(mask_case({1, 200, 1, 1, 64}, {.window = window}, window != 64, true));
  for (Mask mask : kPlacedMasks) {
    if (mask.window > 0) mask.window *= 21;
    to.push_back(mask_case({2, 20, 2, 1, 64, 140}, mask, true, false));
    // One row per sequence: several chunks of keys, heads that are shared by one, two, seven others.
    to.push_back(mask_case({2, 1, 2, 2, 64, 520}, mask, true, false));
    to.push_back(mask_case({1, 1, 7, 1, 128, 300}, mask, true, false));
    to.push_back(mask_case({2, 1, 4, 2, 7, 65}, mask, false, false));
  }
  for (const Mask& mask :
       {Mask{}, Mask{.sinks = true, .lengths = true}, Mask{.lengths = true, .distances = true}}) {
    to.push_back(mask_case({2, 70, 2, 1, 32, 33}, mask, false, false));
    to.push_back(mask_case({2, 1, 2, 1, 40, 90}, mask, false, false));
  }
}

}  // namespace cairn::conformance
