// Reads and writes the values of a session. Those on the device, or in a tier that kernels reach, are memory.
// Others are copied through the free part of the arena, in which nothing lives between runs.
#include <algorithm>

#include "runtime/exec/loaded.h"
#include "runtime/formats/encoder.h"
#include "runtime/formats/split.h"

namespace cairn::engine {
namespace {

constexpr char kReadInVain[] =
    "there is no memory to bring the value to the host: the session is as before; free something and read it "
    "again";
constexpr char kWrittenInPart[] =
    "there is no memory to take the value to its tier, and a part of it may be there: free something and "
    "write it again";

}  // namespace

const TensorDesc& Session::described(int32_t value) const {
  const graph::JointGraph& joint = *plan().joint;
  require(value >= 0 && value < static_cast<int32_t>(joint.values.size()), Code::kInvalidArgument,
          "no value ", value);
  return joint.values[static_cast<size_t>(value)].desc;
}

Tensor Session::tensor(int32_t value) const {
  const TensorDesc& desc = described(value);
  const std::string& name = plan().joint->values[static_cast<size_t>(value)].name;
  const Where place = plan().where(value, Point::kBetween);
  require(place.on_device(), Code::kUnsupported, "value '", name, "' lives in the ",
          kTierNames[static_cast<size_t>(place.tier)],
          " tier and has no address on the device; read or write it");
  require(place.offset >= 0, Code::kInvalidArgument, "value '", name,
          "' does not persist: it lives inside a run only");
  return {desc, store_->arena() + place.offset};
}

bool Session::waits_for_updates(int32_t value, bool writes) const {
  const graph::JointGraph& joint = *plan().joint;
  if (graph::kind(joint.values[static_cast<size_t>(joint.storage(value))].role).is(graph::UPDATED))
    return true;
  return writes && !plan().updates_beside_backward() &&  // those updates have copies
         std::any_of(joint.hypers.begin(), joint.hypers.end(),
                     [&](const graph::HyperBlock& block) { return block.value == value; });
}

void* Session::address(int32_t value) const {
  ready();
  described(value);
  require(store_->device->info().host_reaches, Code::kUnsupported, "values on '", store_->device->info().name,
          "' have no address on the host; read or write them");
  if (waits_for_updates(value, true)) {
    if (store_->update_pending) make_deferred_updates();
    store_->shows_addresses = true;
  }
  void* const data = tensor(value).data;
  note_written(*store_, mine(), value);  // the host may write at any time
  store_->shows_frozen = store_->shows_frozen || is_frozen(value);
  return data;
}

void Session::write(int32_t value, const void* from, int64_t bytes) {
  const TensorDesc& desc = described(value);
  require(bytes == desc.bytes(), Code::kInvalidArgument, "value '",
          plan().joint->values[static_cast<size_t>(value)].name, "' is ", to_string(desc), ", ", desc.bytes(),
          " bytes, but ", bytes, " are written");
  write_at(value, 0, from, bytes);
}

void Session::read(int32_t value, void* to, int64_t bytes) const {
  const TensorDesc& desc = described(value);
  require(bytes == desc.bytes(), Code::kInvalidArgument, "value '",
          plan().joint->values[static_cast<size_t>(value)].name, "' is ", to_string(desc), ", ", desc.bytes(),
          " bytes, but ", bytes, " are read");
  read_at(value, 0, to, bytes);
}

void Session::write_at(int32_t value, int64_t offset, const void* from, int64_t bytes) {
  transfer(value, offset, const_cast<void*>(from), bytes, true);
  const graph::Role role = plan().joint->values[static_cast<size_t>(value)].role;
  if (role == graph::Role::kParameter) parameters_changed();
  if (role == graph::Role::kGradient) store_->squares_known = false;
}

void Session::read_at(int32_t value, int64_t offset, void* to, int64_t bytes) const {
  transfer(value, offset, to, bytes, false);
}

// In pieces of full blocks: each(place in the floats, values, place in the tensor's bytes, bytes).
template <class Each>
void Session::for_encoded(int32_t value, int64_t first, int64_t count, const Each& each) const {
  const Format& row = format(saved(value).dtype);
  require(formats::codec(saved(value).dtype) && first % row.block == 0, Code::kInternal,
          "no float32 is stored as ", row.name, " from value ", first, " on");
  for (int64_t at = 0; at < count; at += Store::kConverted) {
    const int64_t here = std::min(Store::kConverted, count - at);
    each(at, here, row.bytes(first + at), row.bytes(here));
  }
}

// The type of the graph: a parameter is what it was declared as, however it is stored.
TensorDesc Session::declared(int32_t value) const {
  const TensorDesc& stored = described(value);
  const graph::JointValue& known = plan().joint->values[static_cast<size_t>(value)];
  if (known.role != graph::Role::kParameter) return stored;
  return plan().joint->forward->values()[static_cast<size_t>(known.source)].desc;
}

TensorDesc Session::saved(int32_t value) const {
  return plan().joint->low_of(value) >= 0 ? declared(value) : described(value);
}

void Session::write_saved(int32_t value, int64_t offset, const void* from, int64_t bytes) {
  const int32_t low = plan().joint->low_of(value);
  if (low < 0) return write_at(value, offset, from, bytes);
  const auto* const wide = static_cast<const float*>(from);
  auto& [upper, lower] = *store_->halves;
  for (int64_t at = 0; at < bytes / 4; at += Store::kConverted) {
    const int64_t count = std::min(Store::kConverted, bytes / 4 - at), place = offset / 2 + at * 2;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      upper[i] = high_half(wide[static_cast<size_t>(at) + i]);
      lower[i] = low_half(wide[static_cast<size_t>(at) + i]);
    }
    write_at(value, place, upper.data(), count * 2);
    write_at(low, place, lower.data(), count * 2);
  }
}

void Session::read_saved(int32_t value, int64_t offset, void* to, int64_t bytes) const {
  const int32_t low = plan().joint->low_of(value);
  if (low < 0) return read_at(value, offset, to, bytes);
  auto* const wide = static_cast<float*>(to);
  auto& [upper, lower] = *store_->halves;
  for (int64_t at = 0; at < bytes / 4; at += Store::kConverted) {
    const int64_t count = std::min(Store::kConverted, bytes / 4 - at), place = offset / 2 + at * 2;
    read_at(value, place, upper.data(), count * 2);
    read_at(low, place, lower.data(), count * 2);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      wide[static_cast<size_t>(at) + i] = join_halves(upper[i], lower[i]);
  }
}

void Session::write_declared(int32_t value, const void* from) {
  const TensorDesc as = declared(value);
  if (as == saved(value)) return write_saved(value, 0, from, as.bytes());
  write_floats(value, 0, {static_cast<const float*>(from), static_cast<size_t>(as.shape.elements())});
}

void Session::read_declared(int32_t value, void* to) const {
  const TensorDesc as = declared(value);
  if (as == saved(value)) return read_saved(value, 0, to, as.bytes());
  read_floats(value, 0, {static_cast<float*>(to), static_cast<size_t>(as.shape.elements())});
}

void Session::write_floats(int32_t value, int64_t first, std::span<const float> from) {
  const TensorDesc desc = saved(value);
  const DType type = desc.dtype;
  if (type == DType::kF32)
    return write_saved(value, first * 4, from.data(), static_cast<int64_t>(from.size_bytes()));
  formats::Encoder encoder(type, desc.shape.last());
  if (encoder.measures()) {
    const bool complete = first == 0 && static_cast<int64_t>(from.size()) == desc.shape.elements();
    require(complete, Code::kInternal, "a part is encoded as ", dtype_name(type), " before all is measured");
    encoder.measure(0, from);
  }
  for_encoded(value, first, static_cast<int64_t>(from.size()),
              [&](int64_t at, int64_t count, int64_t offset, int64_t bytes) {
                const auto part = from.subspan(static_cast<size_t>(at), static_cast<size_t>(count));
                require(encoder.encode(first + at, part, store_->halves.get()), Code::kInvalidArgument,
                        "parameter '", plan().joint->values[static_cast<size_t>(value)].name,
                        "' is given a number that is not finite, which ", dtype_name(type), " cannot store");
                write_at(value, offset, store_->halves.get(), bytes);
              });
}

void Session::read_floats(int32_t value, int64_t first, std::span<float> to) const {
  const DType type = saved(value).dtype;
  if (type == DType::kF32)
    return read_saved(value, first * 4, to.data(), static_cast<int64_t>(to.size_bytes()));
  if (const int64_t lead = first % format(type).block; lead > 0) {  // inside a block
    std::vector<float> more(static_cast<size_t>(lead) + to.size());
    read_floats(value, first - lead, more);
    std::ranges::copy(std::span(more).subspan(static_cast<size_t>(lead)), to.begin());
    return;
  }
  for_encoded(value, first, static_cast<int64_t>(to.size()),
              [&](int64_t at, int64_t count, int64_t offset, int64_t bytes) {
                read_at(value, offset, store_->halves.get(), bytes);
                formats::codec(type).decode(store_->halves.get(), count, to.data() + at);
              });
}

bool Session::borrow(int32_t value, std::span<const FilePart> parts) {
  ready();
  described(value);
  Store& l = *store_;
  const graph::JointGraph& joint = *plan().joint;
  const graph::JointValue& known = joint.values[static_cast<size_t>(value)];
  const bool fixed = known.role == graph::Role::kParameter && joint.low_of(value) < 0 &&
                     (joint.forward->values()[static_cast<size_t>(known.source)].parameter.frozen ||
                      (!joint.has_optimizer() && l.plans.size() == 1));
  const Where place = plan().where(value, Point::kBetween);
  if (!fixed || l.stopped || place.on_device() || place.tier != Tier::kDisk || place.extents.empty())
    return false;
  device::Block& tier = *l.blocks[static_cast<size_t>(place.tier)];
  for (const OffloadedPlace::Extent& extent : place.extents) {
    int64_t begin = 0;  // of the part
    for (const FilePart& part : parts) {
      const int64_t from = std::max(begin, extent.begin);
      const int64_t to = std::min(begin + part.bytes, extent.begin + extent.bytes);
      if (from < to && !tier.borrow(extent.tier_offset + from - extent.begin, to - from, part.file,
                                    part.at + static_cast<uint64_t>(from - begin)))
        return false;
      begin += part.bytes;
    }
  }
  note_written(l, mine(), value);
  ++l.frozen_writes;
  return true;
}

void Session::transfer(int32_t value, int64_t offset, void* host, int64_t bytes, bool writes) const {
  ready();
  const int64_t whole = described(value).bytes();
  require(offset >= 0 && bytes >= 0 && offset <= whole - bytes, Code::kInvalidArgument, "value '",
          plan().joint->values[static_cast<size_t>(value)].name, "' has ", whole, " bytes; [", offset, ", ",
          offset + bytes, ") lies outside");
  if (store_->update_pending && waits_for_updates(value, writes)) make_deferred_updates();
  if (!writes && plan().joint->values[static_cast<size_t>(value)].role == graph::Role::kAverage)
    begin_averages();
  if (writes && offset + bytes == whole) note_written(*store_, mine(), value);
  if (writes && is_frozen(value)) ++store_->frozen_writes;
  const Where place = plan().where(value, Point::kBetween);
  if (place.on_device()) {
    const int64_t here = tensor(value).as<char>() - store_->arena() + offset;
    if (writes) store_->blocks[0]->write(here, host, bytes);
    if (!writes) store_->blocks[0]->read(here, host, bytes);
    return;
  }
  Store& l = *store_;
  if (l.stopped && place.tier == Tier::kDisk) throw *l.stopped;
  device::Block* const arena = l.blocks[0].get();
  device::Block* const tier = l.blocks[static_cast<size_t>(place.tier)].get();
  if (place.in_place()) {
    const int64_t far = place.offset + offset;
    return writes ? tier->write(far, host, bytes) : tier->read(far, host, bytes);
  }
  device::Queue& queue = l.queue(writes ? device::Lane::kCopyOut : device::Lane::kCopyIn);
  const auto [here, room] = plan().free_range();
  queue.skip_copies_while(nullptr);  // a cancel only concerns runs
  queue.trace(false);
  try {
    for (const OffloadedPlace::Extent& extent : place.extents) {
      const int64_t first = std::max(offset, extent.begin);
      const int64_t last = std::min(offset + bytes, extent.begin + extent.bytes);
      if (writes && first < last) tier->own(extent.tier_offset + (first - extent.begin), last - first);
      for (int64_t at = first; at < last;) {
        const int64_t part = std::min(last - at, room), far = extent.tier_offset + (at - extent.begin);
        char* const theirs = static_cast<char*>(host) + (at - offset);
        l.ledger.begin_range(Tier::kDevice, here, part);
        if (writes) arena->write(here, theirs, part);
        queue.copy(writes ? device::Location{tier, far} : device::Location{arena, here},
                   writes ? device::Location{arena, here} : device::Location{tier, far}, part);
        l.ledger.end_range(Tier::kDevice, here);
        queue.synchronize();
        if (!writes) arena->read(here, theirs, part);
        at += part;
      }
    }
  } catch (...) {
    l.drain();
    survive_refusal(false, writes ? kWrittenInPart : kReadInVain);
    lose_disk("parameters on the device are as before");
  }
  queue.skip_copies_while(&l.skipped);
}

// Averages of parameters begin as these. Where the host wrote a parameter, its average is written before anything reads
// or moves it, unless the host writes that, too.
void Session::begin_averages() const {
  Store& l = *store_;
  const graph::JointGraph& joint = *plan().joint;
  if (l.averages_begin.empty() || !joint.averages()) [[likely]]
    return;
  std::vector<float> floats;
  std::vector<double> doubles;
  for (const int32_t value : joint.averages_of) {
    if (!l.averages_begin.contains(joint.values[static_cast<size_t>(value)].name)) continue;
    const int32_t average = joint.owned(value, graph::Role::kAverage).front();
    const int64_t count = described(average).shape.elements();
    for (int64_t at = 0; at < count; at += Store::kConverted) {
      const int64_t here = std::min(Store::kConverted, count - at);
      if (described(average).dtype == DType::kF64) {
        doubles.resize(static_cast<size_t>(here));
        read_at(value, at * 8, doubles.data(), here * 8);
        transfer(average, at * 8, doubles.data(), here * 8, true);
      } else {
        floats.resize(static_cast<size_t>(here));
        read_floats(value, at, floats);
        transfer(average, at * 4, floats.data(), here * 4, true);
      }
    }
  }
  l.averages_begin.clear();
}

}  // namespace cairn::engine
