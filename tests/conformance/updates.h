// Calls of the op `update`, made from the rows of optimizers.def: a new optimizer is tested as soon as it has
// a row.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/optimizers/stochastic.h"
#include "runtime/formats/split.h"
#include "runtime/ops/optimizers.h"
#include "tests/conformance/direct.h"

namespace cairn::conformance {

// An optimizer with some values of its hyper-parameters, in the row's order.
struct UpdateKind {
  const ops::OptimizerRow* row;
  std::vector<double> values;
  bool rounds = false;  // the parameter is bfloat16, rounded stochastically
  bool splits = false;  // it is bfloat16 beside the 16 bits below
  bool plain() const { return !rounds && !splits; }

  // A parameter of about n elements that it takes.
  TensorDesc parameter(int64_t n) const {
    if (!row->is(ops::UPDATE_MATRICES)) return {DType::kF32, Shape{n}, 0};
    const auto rows = std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(n) / 2)));
    return {DType::kF32, Shape{rows, n / rows}, 0};
  }
  // Those that a parameter has.
  std::vector<TensorDesc> states(const TensorDesc& parameter) const {
    std::vector<TensorDesc> list;
    for (const ops::OptimizerState& state : row->states)
      if (const auto tensor = row->tensor_of(state, values, parameter)) list.push_back(*tensor);
    return list;
  }
  std::vector<double> hyper(double factor, uint64_t t = 3) const {
    std::vector<double> slots(update_op::kHyperSlots);
    row->rule(values, {.rate = 1e-2, .t = t, .factor = factor}, slots.data());
    slots[update_op::kFactorSlot] = factor;
    return slots;
  }
  std::string name() const {
    std::string text(row->name);
    for (size_t i = 1; i < values.size(); ++i) text += cat(' ', row->hypers[i].name, '=', values[i]);
    return rounds ? text + " rounded" : splits ? text + " split" : text;
  }
};

// Every optimizer, with and without each state and each switch; no other number is 0, so that all are used. The
// last of each once more with a parameter that is rounded.
inline std::vector<UpdateKind> update_kinds() {
  std::vector<UpdateKind> kinds;
  for (const ops::OptimizerRow& row : ops::optimizers()) {
    std::vector<UpdateKind> own = {{&row, {}}};
    for (const ops::Hyper& hyper : row.hypers) {
      bool turns = hyper.range == 'b';
      for (const ops::OptimizerState& state : row.states) turns = turns || state.when == hyper.name;
      const double value = hyper.value != 0 ? hyper.value : hyper.range == 'b' ? 1 : 0.3;
      std::vector<UpdateKind> both;
      for (const UpdateKind& kind : own) {
        if (turns) both.push_back(kind), both.back().values.push_back(0);
        both.push_back(kind), both.back().values.push_back(value);
      }
      own = std::move(both);
    }
    own.push_back(own.back());
    own.back().rounds = true;
    kinds.insert(kinds.end(), own.begin(), own.end());
  }
  return kinds;
}

// Every one of them with a parameter that is split. Its halves say nothing alone, so that they are compared with what
// is made of a plain parameter (check_splitting), not with the reference.
inline std::vector<UpdateKind> split_kinds() {
  std::vector<UpdateKind> kinds;
  for (UpdateKind kind : update_kinds()) {
    if (kind.rounds) continue;
    kind.splits = true;
    kinds.push_back(kind);
  }
  return kinds;
}

// Those that go element by element, which backends may update many tensors at once with.
inline std::vector<UpdateKind> elementwise_kinds() {
  std::vector<UpdateKind> kinds;
  for (const UpdateKind& kind : update_kinds())
    if (kind.row->is(ops::UPDATE_ELEMENTWISE)) kinds.push_back(kind);
  return kinds;
}

// Parameters of other shapes for optimizers that do not go element by element: matrices wide, tall and square,
// several at once; with edges of blocks.
inline std::vector<TensorDesc> update_tensors(const UpdateKind& kind) {
  if (kind.row->is(ops::UPDATE_ELEMENTWISE)) return {};
  std::vector<TensorDesc> list;
  for (const Shape& shape :
       {Shape{1, 1}, Shape{5, 3}, Shape{3, 17}, Shape{64, 64}, Shape{65, 513}, Shape{300, 40}, Shape{130, 1},
        Shape{1, 700}, Shape{2, 3, 3, 3}, Shape{3, 70, 9}})
    if (shape.rank == 2 || !kind.row->is(ops::UPDATE_MATRICES)) list.push_back({DType::kF32, shape, 0});
  return list;
}

// Operands in the op's row: p is output 0, its states follow it.
inline constexpr size_t kTotalAt = update_op::kTotal, kPackedAt = update_op::kPacked,
                        kGradScaleAt = update_op::kGradScale;

inline Direct update_call(const UpdateKind& kind, const TensorDesc& x, bool scaled,
                          const TensorDesc& pack = kAbsent) {
  const TensorDesc number{DType::kF64, Shape{}, 0}, hyper{DType::kF64, Shape{update_op::kHyperSlots}, 0};
  Direct d{"update", {x, hyper, scaled ? number : kAbsent}, {x}, kind.row->attrs(kind.values)};
  d.out.resize(kGradScaleAt + 1, kAbsent);
  size_t at = update_op::kFirstState;
  for (const TensorDesc& state : kind.states(x)) d.out[at++] = state;
  if (kind.rounds) {
    d.out[0].dtype = DType::kBF16;
    d.attrs.set("rng", int64_t{0x80000003});
    d.attrs.set("first", int64_t{4093});  // no multiple of anything
  }
  if (kind.splits) {
    d.out[0].dtype = DType::kBF16;
    d.out[at] = {DType::kSplit, x.shape, 0};
    d.attrs.set("split", int64_t{1});
  }
  d.out[kPackedAt] = pack;
  if (scaled) d.out[kGradScaleAt] = number;
  d.hyper = kind.hyper(0.5);
  return d;
}

// Operands of a Direct in buffers of their own: inputs of `update` as a step has them, all outputs small and
// positive.
struct Drawn {
  std::vector<Buffer> in_buffers, out_buffers;
  std::vector<Tensor> in, out;

  explicit Drawn(const Direct& d) {
    const auto make = [](const std::vector<TensorDesc>& descs, std::vector<Buffer>& buffers,
                         std::vector<Tensor>& tensors) {
      for (const TensorDesc& desc : descs) buffers.emplace_back(is_there(desc) ? desc.bytes() : 0);
      for (size_t i = 0; i < descs.size(); ++i)
        tensors.push_back({descs[i], is_there(descs[i]) ? buffers[i].data() : nullptr});
    };
    make(d.in, in_buffers, in);
    make(d.out, out_buffers, out);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i]) fill(in[i], 50 + i, T({}, -2, 2));
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] && out[i].desc.dtype != DType::kOpaque) fill(out[i], 90 + i, T({}, 0.1, 1));
    for (size_t i = 0; i < d.hyper.size(); ++i) set(in[1], static_cast<int64_t>(i), d.hyper[i]);
  }
  void run(const kernels::Registry& registry, const Direct& d, kernels::Call call = {}, int threads = 1) {
    const kernels::Signature s{d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, threads};
    const auto kernel = registry.find(s);
    require(kernel != nullptr, Code::kUnsupported, "no kernel takes this ", d.op);
    Buffer workspace(kernel->workspace_bytes());
    call.in = in;
    call.out = out;
    call.workspace = workspace.data();
    kernel->run(call);
  }
  std::string bytes(size_t output) const {
    const Tensor& t = out[output];
    return t ? std::string(static_cast<const char*>(t.data), static_cast<size_t>(t.desc.bytes())) : "";
  }
};

// grad_scale stands for the hyper-parameters' factor, with the same bits; a total that is not finite makes it
// NaN, and with a grad_scale that is not finite everything stays as it is.
inline void check_grad_scales(const kernels::Registry& registry) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = HUGE_VAL;
  struct Case {
    double total, grad_scale;
    bool closes;
  };
  std::vector<UpdateKind> kinds = update_kinds();
  for (const UpdateKind& kind : split_kinds()) kinds.push_back(kind);
  for (const UpdateKind& kind : kinds) {
    SCOPED_TRACE(kind.name());
    const TensorDesc x = kind.parameter(5001);  // enough for states of 8 bits
    const size_t written = 1 + kind.states(x).size() + (kind.splits ? 1 : 0);
    const Direct plain = update_call(kind, x, false), scaled = update_call(kind, x, true);
    Drawn expected(plain);
    std::vector<std::string> before;
    for (size_t o = 0; o < written; ++o) before.push_back(expected.bytes(o));
    expected.run(registry, plain);
    for (size_t o = 0; o < written; ++o) EXPECT_NE(expected.bytes(o), before[o]) << "output " << o;
    for (const Case& c : {Case{1, 0.5, false}, Case{nan, 0.5, true}, Case{infinity, 0.5, true},
                          Case{1, nan, true}, Case{1, infinity, true}}) {
      SCOPED_TRACE(cat("total ", c.total, " grad_scale ", c.grad_scale));
      Drawn drawn(scaled);
      set(drawn.in[1], update_op::kFactorSlot, 123);
      set(drawn.in[kTotalAt], 0, c.total);
      set(drawn.out[kGradScaleAt], 0, c.grad_scale);
      drawn.run(registry, scaled);
      for (size_t o = 0; o < written; ++o)
        EXPECT_EQ(drawn.bytes(o), c.closes ? before[o] : expected.bytes(o)) << "output " << o;
      const double grad_scale = get(drawn.out[kGradScaleAt], 0);
      EXPECT_EQ(std::isfinite(grad_scale), !c.closes);
      if (!c.closes) EXPECT_EQ(grad_scale, c.grad_scale);
      // For good: the next gradient's total is finite.
      set(drawn.in[kTotalAt], 0, 1);
      drawn.run(registry, scaled);
      if (c.closes)
        for (size_t o = 0; o < written; ++o) EXPECT_EQ(drawn.bytes(o), before[o]) << "output " << o;
    }
  }
}

// What the same update makes of a float32 parameter, rounded by the random bits of seed, step, stream and element
// and by nothing else.
inline void check_rounding(const kernels::Registry& registry) {
  kernels::Call call;
  call.key = {.seed = 5, .step = 77, .micro = 3, .op = 9};  // the micro-batch and the op do not count
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.rounds) continue;
    SCOPED_TRACE(kind.name());
    UpdateKind plain_kind = kind;
    plain_kind.rounds = false;
    std::vector<TensorDesc> tensors = update_tensors(kind);
    for (const int64_t n : {1, 37, 1023, 5001}) tensors.push_back(kind.parameter(n));
    for (const TensorDesc& x : tensors) {
      SCOPED_TRACE(to_string(x));
      const Direct plain = update_call(plain_kind, x, false), rounded = update_call(kind, x, false);
      Drawn wide(plain), narrow(rounded);
      const int64_t n = x.shape.elements();
      auto* const p = static_cast<bf16*>(narrow.out[0].data);
      for (int64_t i = 0; i < n; ++i) set(wide.out[0], i, to_float(p[i]));
      wide.run(registry, plain, call);
      narrow.run(registry, rounded, call);
      for (size_t o = 1; o < rounded.out.size(); ++o) EXPECT_TRUE(wide.bytes(o) == narrow.bytes(o)) << o;
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = 4093 + i;
        const PhiloxBlock bits = random_block({5, 77, 0, 0x80000003u}, static_cast<uint64_t>(place / 8));
        const auto expected =
            round_stochastic(static_cast<const float*>(wide.out[0].data)[i],
                             bits[static_cast<size_t>(place % 8 / 2)] >> (place % 2 * 16) & 0xffffu);
        wrong += p[i].bits != expected.bits;
      }
      EXPECT_EQ(wrong, 0) << "of " << n;
    }
  }
}

// The two halves are, bit by bit, what the same update makes of a float32 parameter; of numbers between two bfloat16
// ones, too, of infinities and NaN.
inline void check_splitting(const kernels::Registry& registry) {
  for (const UpdateKind& kind : split_kinds()) {
    SCOPED_TRACE(kind.name());
    UpdateKind plain_kind = kind;
    plain_kind.splits = false;
    std::vector<TensorDesc> tensors = update_tensors(kind);
    for (const int64_t n : {1, 37, 1023, 5001}) tensors.push_back(kind.parameter(n));
    for (const TensorDesc& x : tensors)
      for (const bool scaled : {false, true}) {
        SCOPED_TRACE(to_string(x));
        const Direct plain = update_call(plain_kind, x, scaled), split = update_call(kind, x, scaled);
        Drawn wide(plain), halves(split);
        const size_t low_at = update_op::kFirstState + kind.states(x).size();
        const int64_t n = x.shape.elements();
        auto* const p = wide.out[0].as<float>();
        if (kind.row->is(ops::UPDATE_ELEMENTWISE)) {
          constexpr uint32_t kOthers[] = {0x3f808000, 0x3f818000, 0xbf808000,
                                          0x7f800000, 0x7fc00001, 0x007f8000};
          for (int64_t i = 0; i < std::min<int64_t>(n, 4096) / 7; ++i)
            p[7 * i] = __builtin_bit_cast(float, kOthers[static_cast<size_t>(i) % std::size(kOthers)]);
        }
        for (int64_t i = 0; i < n; ++i) {
          halves.out[0].as<bf16>()[i] = high_half(p[i]);
          halves.out[low_at].as<uint16_t>()[i] = low_half(p[i]);
        }
        wide.run(registry, plain);
        halves.run(registry, split);
        for (size_t o = update_op::kFirstState; o < low_at; ++o)
          EXPECT_TRUE(wide.bytes(o) == halves.bytes(o)) << "state " << o;
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i) {
          const bf16 high = halves.out[0].as<bf16>()[i];
          const float joined = join_halves(high, halves.out[low_at].as<uint16_t>()[i]);
          wrong += std::memcmp(&joined, p + i, sizeof joined) != 0 || high.bits != high_half(p[i]).bits;
        }
        EXPECT_EQ(wrong, 0) << "of " << n;
      }
  }
}

inline size_t states_in(const Direct& d) {
  size_t count = 0;
  while (count < update_op::kMaxStates && is_there(d.out[update_op::kFirstState + count])) ++count;
  return count;
}

// An optimizer that there is not, states that it does not have, total and grad_scale one without the other.
inline void check_refusals(const kernels::Registry& registry, int64_t n) {
  const auto takes = [&](const Direct& d) {
    return registry.find({d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, 1}) != nullptr;
  };
  std::vector<UpdateKind> kinds = update_kinds();
  for (const UpdateKind& kind : split_kinds()) kinds.push_back(kind);
  for (const UpdateKind& kind : kinds) {
    SCOPED_TRACE(kind.name());
    const TensorDesc x = kind.parameter(n);
    TensorDesc low = x;
    low.dtype = DType::kBF16;
    const Direct sound = update_call(kind, x, true);
    EXPECT_TRUE(takes(sound));
    const auto refuses = [&](const char* why, const auto& change) {
      Direct d = sound;
      change(d);
      EXPECT_FALSE(takes(d)) << why;
    };
    refuses("unknown", [](Direct& d) { d.attrs.set("optimizer", std::string("adamax")); });
    refuses("four states", [&](Direct& d) { d.out[1] = d.out[2] = d.out[3] = d.out[4] = x; });
    if (states_in(sound) > 0)
      refuses("a state of another format", [&](Direct& d) {
        d.out[1].dtype = d.out[1].dtype == DType::kF32 ? DType::kUDynamic8 : DType::kF32;
      });
    if (states_in(sound) > 1 && sound.out[1].dtype != sound.out[2].dtype)
      refuses("states in the other order", [](Direct& d) { std::swap(d.out[1], d.out[2]); });
    refuses("a gap", [&](Direct& d) { d.out[1] = kAbsent, d.out[3] = x; });
    refuses("total without grad_scale", [](Direct& d) { d.out[kGradScaleAt] = kAbsent; });
    refuses("grad_scale without total", [](Direct& d) { d.in[kTotalAt] = kAbsent; });
    refuses("float32 numbers", [](Direct& d) { d.in[1].dtype = DType::kF32; });
    refuses("bfloat16", [&](Direct& d) { d.in[0] = d.out[0] = low; });
    refuses("a gradient of another type", [&](Direct& d) { d.in[0] = low; });
    refuses("a parameter of another type",
            [&](Direct& d) { d.out[0].dtype = kind.plain() ? DType::kBF16 : DType::kF32; });
    if (kind.splits) {
      refuses("no lower half", [&](Direct& d) { d.out[states_in(sound)] = kAbsent; });
      refuses("a lower half of another shape",
              [&](Direct& d) { d.out[states_in(sound)].shape = Shape{x.shape.elements() + 1}; });
    }
    if (!kind.plain())
      refuses("a packed weight", [&](Direct& d) { d.out[kPackedAt] = {DType::kOpaque, x.shape, 2 * n}; });
  }
}
// A packed weight is a copy of the parameter that the update leaves, rounded to 16 bits; all else has the bits that it has
// without one. Returns how many kinds of update write one.
inline int check_packing(const kernels::Registry& registry) {
  int writing = 0;
  for (const UpdateKind& kind : update_kinds())
    for (const DType type : {DType::kBF16, DType::kF16})
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(cat(kind.name(), ' ', dtype_name(type), ' ', threads));
        const TensorDesc x = kind.parameter(40005);
        const int64_t n = x.shape.elements();
        const TensorDesc pack{DType::kOpaque, Shape{n}, 2 * n};
        Direct with = update_call(kind, x, false, pack);
        with.attrs.set("packed_dtype", std::string(dtype_name(type)));
        const auto takes = [&](const Direct& d) {
          return registry.find({d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, threads}) !=
                 nullptr;
        };
        Direct other = with;
        other.out[kPackedAt].packed_bytes = 4 * n;
        EXPECT_FALSE(takes(other)) << "a packed weight in another form";
        if (!takes(with)) continue;
        ++writing;
        const Direct without = update_call(kind, x, false);
        Drawn packed(with), plain(without);
        packed.run(registry, with, {}, threads);
        plain.run(registry, without, {}, threads);
        for (size_t k = 0; k < kPackedAt; ++k) EXPECT_EQ(packed.bytes(k), plain.bytes(k)) << k;
        const auto* const parameter = static_cast<const float*>(packed.out[0].data);
        const auto* const copy = static_cast<const uint16_t*>(packed.out[kPackedAt].data);
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i)
          wrong += copy[i] != (type == DType::kBF16 ? to_bf16(parameter[i]).bits : to_f16(parameter[i]).bits);
        EXPECT_EQ(wrong, 0);
      }
  return writing;
}

inline void check_refusals(const kernels::Registry& registry) {
  // Of 64 elements no optimizer's states are of 8 bits; of 4096 some are.
  for (const int64_t n : {64, 4096}) check_refusals(registry, n);
}

}  // namespace cairn::conformance
