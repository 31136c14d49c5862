// Ending the building of a graph: what the loss is, which values matter, what is worth telling; and the
// digest.
#include <xxhash.h>

#include "runtime/graph/adapters/builder.h"
#include "runtime/graph/effective/sides.h"

namespace cairn::graph {

void Graph::freeze(ValueId loss, ValueId weight, std::vector<ValueId> outputs) {
  building();
  require(open_.empty(), Code::kWrongState, "region '", open_.empty() ? "" : regions_[open_.back()].name,
          "' was begun and not ended");
  auto known = [&](ValueId v) { return v >= 0 && v < static_cast<ValueId>(values_.size()); };
  require(loss != kNone || !outputs.empty(), Code::kInvalidArgument, "a graph needs a loss or outputs");
  for (ValueId v : outputs)
    require(known(v), Code::kInvalidArgument, "an output is not a value of this graph");
  if (loss != kNone) {
    require(known(loss), Code::kInvalidArgument, "the loss is not a value of this graph");
    require(values_[loss].desc.shape.elements() == 1 && is_float(values_[loss].desc.dtype),
            Code::kInvalidArgument, "the loss '", values_[loss].name, "' is ", to_string(values_[loss].desc),
            "; it must be one real number");
    const int32_t producer = values_[loss].producer;
    require(producer >= 0, Code::kInvalidArgument, "the loss '", values_[loss].name,
            "' is not made by an op");
    const Op& op = ops_[producer];
    if (weight == kNone && ops::row(op.code).is(ops::LOSS) && op.out[0] == loss) weight = op.out[1];
  }
  if (weight != kNone) {
    require(loss != kNone, Code::kInvalidArgument, "a weight needs a loss");
    require(known(weight), Code::kInvalidArgument, "the weight is not a value of this graph");
    require(values_[weight].desc.shape.elements() == 1 && is_float(values_[weight].desc.dtype),
            Code::kInvalidArgument, "the weight '", values_[weight].name, "' is ",
            to_string(values_[weight].desc), "; it must be one real number");
  }
  if (!adapters_.rules.empty()) AdapterBuilder(*this).finish(loss != kNone);
  find_sides(*this, loss, weight);
  std::vector<std::string> notes;
  if (loss != kNone) notes = gradient_notes(loss);
  notes_ = std::move(notes);
  loss_ = loss;
  weight_ = weight;
  outputs_ = std::move(outputs);
  frozen_ = true;
}

std::vector<std::string> Graph::gradient_notes(ValueId loss) const {
  // from_parameter: depends on a trainable parameter. to_loss: the loss depends on it.
  std::vector<bool> from_parameter(values_.size()), to_loss(values_.size());
  for (size_t v = 0; v < values_.size(); ++v)
    from_parameter[v] = values_[v].kind == ValueKind::kParameter && !values_[v].parameter.frozen;
  for (const Op& op : ops_) {
    bool any = false;
    for (ValueId v : op.in) any = any || (v != kNone && from_parameter[v] && is_float(values_[v].desc.dtype));
    any = any && !ops::row(op.code).is(ops::FLAT);
    for (ValueId v : op.out)
      if (v != kNone) from_parameter[v] = any;
  }
  to_loss[loss] = true;
  for (size_t i = ops_.size(); i-- > 0;) {
    bool any = false;
    if (ops::row(ops_[i].code).is(ops::FLAT)) continue;
    for (ValueId v : ops_[i].out) any = any || (v != kNone && to_loss[v]);
    for (ValueId v : ops_[i].in)
      if (v != kNone && any) to_loss[v] = true;
  }
  require(from_parameter[loss], Code::kInvalidArgument, "the loss '", values_[loss].name,
          "' depends on no trainable parameter");
  std::vector<std::string> notes;
  for (size_t v = 0; v < values_.size(); ++v)
    if (values_[v].kind == ValueKind::kParameter && !values_[v].parameter.frozen && !to_loss[v])
      notes.push_back(
          cat("parameter '", values_[v].name, "' gets no gradient: the loss does not depend on it"));
  std::vector<bool> used(regions_.size()), path(regions_.size());
  for (const Op& op : ops_) {
    bool carries = false;
    for (ValueId v : op.out) carries = carries || (v != kNone && from_parameter[v] && to_loss[v]);
    for (RegionId r = op.region; r >= 0; r = regions_[r].parent) {
      used[r] = true;
      path[r] = path[r] || carries;
    }
  }
  for (size_t r = 0; r < regions_.size(); ++r) {
    if (!used[r]) notes.push_back(cat("region '", regions_[r].name, "' holds no op"));
    if (used[r] && !path[r])
      notes.push_back(
          cat("region '", regions_[r].name, "' has no gradient path: nothing in it is needed by backward"));
  }
  return notes;
}

namespace {

struct AttrText {
  std::string& out;
  void operator()(const std::vector<int64_t>& list) const {
    for (int64_t n : list) out += cat(n, ',');
  }
  void operator()(double real) const { append_text(out, __builtin_bit_cast(uint64_t, real)); }
  void operator()(const std::vector<double>& list) const {
    for (double real : list) out += cat(__builtin_bit_cast(uint64_t, real), ',');
  }
  template <class T>
  void operator()(const T& value) const {
    append_text(out, value);
  }
};

}  // namespace

// Stored in files: what is hashed here never changes.
std::string Graph::digest() const {
  std::string text;
  for (const Value& v : values_)
    text += cat(v.name, ' ', to_string(v.desc), ' ', static_cast<int>(v.kind), v.parameter.frozen,
                v.parameter.decay, '\n');
  // Policies are not part of the text: they change no number, so a run may resume under others.
  for (const Region& r : regions_) text += cat(r.name, '\n');
  for (const Op& op : ops_) {
    text += cat(ops::name(op.code), ' ', op.region);
    for (ValueId v : op.in) text += cat(' ', v);
    text += " ->";
    for (ValueId v : op.out) text += cat(' ', v);
    for (const auto& [key, value] : op.attrs.items()) {
      text += cat(' ', key, '=');
      std::visit(AttrText{text}, value);
    }
    text += '\n';
  }
  text += cat(loss_, ' ', weight_);
  for (ValueId v : outputs_) text += cat(' ', v);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char hex[33];
  snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
           static_cast<unsigned long long>(hash.low64));
  return hex;
}

}  // namespace cairn::graph
