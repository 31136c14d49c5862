#include "runtime/compile/update/pieces.h"

#include "runtime/base/checked.h"
#include "runtime/compile/residency/homes.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// Fills pieces with parts, in the order of the updates. Each tier has one open piece.
class Placer {
 public:
  Placer(Placed plan, int64_t most, int64_t max_masters)
      : plan_(std::move(plan)),
        joint_(*plan_.joint),
        splits_(splitting(joint_)),
        max_(most),
        max_masters_(max_masters) {}

  PlacedPieces run() {
    const std::vector<JointOp>& updates = joint_.ops(graph::kUpdate);
    for (const JointOp& op : updates)
      if (plan_.on_host(op)) on_host_.insert(states_of(op).begin(), states_of(op).end());
    for (size_t i = 0; i < updates.size(); ++i)
      if (const std::optional<Tier> tier = streamed_from(plan_, updates[i]))
        place(static_cast<int32_t>(i), *tier);
    for (const Tier tier : {Tier::kHost, Tier::kDisk}) close(open_[static_cast<size_t>(tier)]);
    if (plan_.streams_on_host()) {
      for (const bool deferred : {true, false}) {
        for (const int32_t i : host_update_order(plan_, deferred)) place_on_host(i);
        close(host_open_);
      }
      plan_.host_ring = take(Tier::kHost, plan_.host_ring_bytes, kPageBytes);
    }
    place_adds();
    for (const JointOp& op : updates) {
      const auto weight = plan_.offloaded.find(op.out[0]);
      if (weight == plan_.offloaded.end()) continue;
      const int64_t bytes = stored_bytes(joint_, op.out[0]);
      // Small values that are neighbours are one copy.
      const int64_t offset = take(weight->second.tier, bytes, alignment_of(bytes));
      weight->second.extents = {{0, joint_.values[at(op.out[0])].desc.bytes(), offset}};
    }
    for (const auto& [value, place] : plan_.offloaded)
      if (place.extents.empty() && joint_.values[at(value)].alias_of < 0) place_in_reach(value);
    for (const JointOp& op : updates)
      if (plan_.on_host(op))
        for (const int32_t v : host_scalars(op)) plan_.host_copies[v] = 0;
    for (auto& [value, offset] : plan_.host_copies)
      offset = take(Tier::kHost, stored_bytes(joint_, value), kAlignment);
    for (int64_t& bytes : plan_.offloaded_bytes) bytes = align_up(bytes, kPageBytes);
    for (auto& [value, place] : plan_.homes)
      place.extents = {{0, joint_.values[at(value)].desc.bytes(),
                        plan_.offloaded_bytes[static_cast<size_t>(place.tier)] + home_offset(value)}};
    return {std::move(plan_), std::move(pieces_)};
  }

 private:
  struct Open {
    Piece piece;
    int64_t masters = 0;
  };

  void place_adds() {
    if (plan_.host_added.empty()) return;
    plan_.add_ring = take(Tier::kHost, plan_.add_ring_bytes + plan_.add_workspace_bytes, kPageBytes);
    for (auto& [gradient, add] : plan_.host_added)
      if (add.squares_value >= 0)
        add.squares_place = take(Tier::kHost, stored_bytes(joint_, add.squares_value), kAlignment);
  }

  static int64_t alignment_of(int64_t bytes) { return bytes > kMinPieceBytes ? kPageBytes : kAlignment; }

  // Places a value in one piece. Its slices, which micro-batches use, follow one another in it.
  void place_in_reach(int32_t value) {
    const graph::Slices* const slices = joint_.slices_of(value);
    if (slices == nullptr && is_part(value)) return;
    const auto extent = [&](int32_t v, int64_t offset) {
      OffloadedPlace& place = plan_.offloaded.at(v);
      require(plan_.reaches(place.tier) || on_host_.contains(v), Code::kInternal, "'",
              joint_.values[at(v)].name, "' lives in a tier and has no place there");
      const int64_t bytes = joint_.values[at(v)].desc.bytes();
      place.extents = {{0, bytes, offset}};
      return offset + bytes;
    };
    const int64_t bytes = stored_bytes(joint_, value);
    int64_t next = take(plan_.offloaded.at(value).tier, bytes, alignment_of(bytes));
    extent(value, next);
    if (slices == nullptr) return;
    for (const int32_t part : slices->parts) next = extent(part, next);
  }
  bool is_part(int32_t value) const {
    return std::any_of(joint_.slices.begin(), joint_.slices.end(), [&](const graph::Slices& slices) {
      return std::find(slices.parts.begin(), slices.parts.end(), value) != slices.parts.end();
    });
  }

  // The offset of a sliced value is that of its first slice: the others follow it without gaps.
  int64_t home_offset(int32_t value) const {
    const auto offset = [&](int32_t v) { return plan_.plan.home_offsets[at(plan_.problem_value[at(v)])]; };
    const graph::Slices* const slices = joint_.slices_of(value);
    if (slices == nullptr) return offset(value);
    int64_t next = offset(slices->parts[0]);
    for (const int32_t part : slices->parts) {
      require(offset(part) == next, Code::kInternal, "the parts of '", joint_.values[at(value)].name,
              "' do not follow each other in the tier");
      next += joint_.values[at(part)].desc.bytes();
    }
    return offset(slices->parts[0]);
  }

  // What of an update streams in parts, the same elements of each value.
  struct Load {
    int32_t op;
    std::span<const int32_t> states;
    std::vector<int32_t> beside, rest;  // values that come along; values that are used in place
  };

  void place(int32_t op, Tier tier) {
    const JointOp& update = joint_.ops(graph::kUpdate)[at(op)];
    const std::span<const int32_t> states = states_of(update);
    const bool parts = streams_in_parts(plan_, update);
    const bool streams = !states.empty() && plan_.streamed(states[0]);
    if (!parts && (!streams || !splits_[at(states[0])])) return place_whole(op, tier);
    Load load{op, streams ? states : std::span<const int32_t>(), {}, {}};
    for (const int32_t v : {update.out[update_op::kParameter], update.in[update_op::kGrad]})
      (parts && plan_.streamed(v) ? load.beside : load.rest).push_back(v);
    if (!streams) load.rest.insert(load.rest.end(), states.begin(), states.end());
    place_parts(load, open_[static_cast<size_t>(tier)], tier, max_);
  }

  // Places everything on the disk that an update on the host uses.
  void place_on_host(int32_t op) {
    const JointOp& update = joint_.ops(graph::kUpdate)[at(op)];
    const std::span<const int32_t> states = states_of(update);
    const auto on_disk = [&](int32_t v) { return plan_.where(v, Point::kHostUpdate).tier == Tier::kDisk; };
    const bool streams = !states.empty() && on_disk(states[0]);
    Load load{op, streams ? states : std::span<const int32_t>(), {}, {}};
    std::vector<int32_t> others = made_on_host(plan_, update);
    others.push_back(update.in[update_op::kGrad]);
    for (const int32_t v : others) (on_disk(v) ? load.beside : load.rest).push_back(v);
    if (!streams) load.rest.insert(load.rest.end(), states.begin(), states.end());
    if (streams || !load.beside.empty()) place_parts(load, host_open_, Tier::kDisk, host_piece_bytes(plan_));
  }

  void place_parts(const Load& load, Open& open, Tier tier, int64_t most) {
    Piece& piece = open.piece;
    const JointOp& update = joint_.ops(graph::kUpdate)[at(load.op)];
    const int32_t weight = update.out[update_op::kParameter], gradient = update.in[update_op::kGrad];
    const Cut cut(joint_, load.states, load.beside, load.rest);
    const int64_t master = whole_values(plan_, update).bytes;
    const int64_t elements = joint_.values[at(weight)].desc.shape.elements(), whole = cut.bytes(elements);
    const auto room = [&] { return piece.bytes + piece.beside; };
    if (room() + whole > most || open.masters + master > max_masters_) close(open);
    for (int64_t begin = 0; begin < elements;) {
      const int64_t left = elements - begin, count = cut.bytes(left) <= most ? left : cut.most(most, tier);
      if (room() + cut.bytes(count) > most) close(open);
      piece.tier = tier;
      Part part{load.op, begin, count};
      part.states = !load.states.empty();
      for (size_t k = 0; k < load.states.size(); ++k) {
        part.offsets[k] = piece.bytes;
        piece.bytes += align_up(stored(load.states[k]).bytes(count), kAlignment);
      }
      for (const int32_t v : load.beside) {
        (v == weight ? part.weight : v == gradient ? part.gradient : part.packed) = piece.beside;
        piece.beside += align_up(stored(v).bytes(count), kAlignment);
      }
      piece.parts.push_back(part);
      begin += count;
    }
    open.masters += master;
    if (master > 0 && whole > most) close(open);
  }

  // The states follow one another. They may have other shapes than the parameter.
  void place_whole(int32_t op, Tier tier) {
    Open& open = open_[static_cast<size_t>(tier)];
    Piece& piece = open.piece;
    const JointOp& update = joint_.ops(graph::kUpdate)[at(op)];
    const int32_t weight = update.out[update_op::kParameter];
    const int64_t master = whole_values(plan_, update).bytes;
    const std::span<const int32_t> states = states_of(update);
    const bool streams = !states.empty() && plan_.streamed(states[0]);
    const int64_t whole = streams ? state_bytes(joint_, update) : 0;
    if (piece.bytes + piece.beside + whole > max_ || open.masters + master > max_masters_) close(open);
    piece.tier = tier;
    Part part{op, 0, joint_.values[at(weight)].desc.shape.elements()};
    part.states = streams;
    for (size_t k = 0; streams && k < states.size(); ++k) {
      part.offsets[k] = piece.bytes;
      piece.bytes += stored_bytes(joint_, states[k]);
    }
    piece.parts.push_back(part);
    open.masters += master;
    if (whole > max_) close(open);
  }

  void close(Open& open) {
    Piece& piece = open.piece;
    if (piece.parts.empty()) return;
    if (piece.bytes > 0) piece.tier_offset = take(piece.tier, piece.bytes, kPageBytes);
    for (Part& part : piece.parts) {
      for (int64_t* beside : {&part.weight, &part.gradient, &part.packed})
        if (*beside >= 0) *beside += piece.bytes;
      if (!part.states) continue;
      const std::span<const int32_t> states = states_of(joint_.ops(graph::kUpdate)[at(part.op)]);
      for (size_t k = 0; k < states.size(); ++k) {
        const TensorDesc& desc = joint_.values[at(states[k])].desc;
        const Format& f = format(desc.dtype);
        const int64_t place = piece.tier_offset + part.offsets[k];
        plan_.offloaded.at(states[k]).extents.push_back(
            splits_[at(states[k])] ? OffloadedPlace::Extent{f.bytes(part.begin), f.bytes(part.count), place}
                                   : OffloadedPlace::Extent{0, desc.bytes(), place});
      }
    }
    (&open == &host_open_ ? pieces_.host : pieces_.device).push_back(std::exchange(piece, {}));
    open.masters = 0;
  }

  const Format& stored(int32_t value) const { return stored_format(joint_, value); }

  int64_t take(Tier tier, int64_t bytes, int64_t alignment) {
    int64_t& used = plan_.offloaded_bytes[static_cast<size_t>(tier)];
    const int64_t offset = align_up(used, alignment);
    used = offset + bytes;
    return offset;
  }

  Placed plan_;
  const graph::JointGraph& joint_;
  const std::vector<bool> splits_;
  const int64_t max_, max_masters_;
  std::set<int32_t> on_host_;  // states that updates on the host use
  std::array<Open, kTierCount> open_;
  Open host_open_;
  Pieces pieces_;
};

}  // namespace

PlacedPieces place_offloaded(Placed plan, int64_t most, int64_t max_masters) {
  return Placer(std::move(plan), most, max_masters).run();
}

}  // namespace cairn::engine
