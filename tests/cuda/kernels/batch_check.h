// Batches of the optimizer's ops against a kernel for each, to the bit; for the emulation and for real GPUs.
#pragma once
#include "tests/conformance/backend.h"

namespace cairn::conformance {

// Operands of several ops, each in a buffer of its own that is checked for writes past its end.
struct Operands {
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors;

  void add(const TensorDesc& desc, uint32_t seed, double low, double high) {
    buffers.emplace_back(desc.bytes());
    tensors.push_back({desc, buffers.back().data()});
    if (desc.dtype != DType::kOpaque) fill(tensors.back(), seed, T({}, low, high));
  }
  void add_none() {
    buffers.emplace_back(0);
    tensors.push_back({});
  }
  bool guards_intact() const {
    return std::all_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.guard_intact(); });
  }
};

inline void run_kernel(const kernels::Kernel* kernel, std::span<const Tensor> in, std::span<const Tensor> out,
                       uint32_t accumulate = 0) {
  ASSERT_NE(kernel, nullptr);
  Buffer workspace(kernel->workspace_bytes());
  kernel->run({in, out, workspace.data(), accumulate, {}});
  EXPECT_TRUE(workspace.guard_intact());
}

inline void expect_same(const Tensor& a, const Tensor& b, std::string_view what, size_t i) {
  ASSERT_EQ(a.desc, b.desc);
  if (!a) return;
  EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<size_t>(a.desc.bytes())), 0)
      << what << " of tensor " << i;
}

inline TensorDesc pack_of(int64_t count) { return {DType::kOpaque, Shape{1, count}, 2 * count}; }

// A call of each on tensors of their own, which may be of several kinds. `packed(i)`: whether the update of
// tensor i also packs it.
template <class Packed>
void expect_updates_alike(const kernels::Registry& registry, const std::vector<UpdateKind>& kinds,
                          const std::vector<int64_t>& counts, const Packed& packed) {
  std::vector<Direct> calls;
  for (size_t i = 0; i < counts.size(); ++i) {
    const TensorDesc x{DType::kF32, Shape{1, counts[i]}, 0};
    const UpdateKind& kind = kinds[i % kinds.size()];
    const bool packs = packed(i) && kind.plain();
    calls.push_back(update_call(kind, x, false, packs ? pack_of(counts[i]) : kAbsent));
  }
  Operands in, one, all;  // outputs of a kernel each, of the batch
  std::vector<kernels::Signature> signatures;
  const auto add = [](Operands& to, const TensorDesc& desc, uint32_t seed, double low) {
    is_there(desc) ? to.add(desc, seed, low, 1) : to.add_none();
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const Direct& d = calls[i];
    const auto seed = static_cast<uint32_t>(9 * i);
    for (size_t k = 0; k < d.in.size(); ++k) add(in, d.in[k], seed, -2);
    for (size_t k = 0; k < d.hyper.size(); ++k)
      set(in.tensors[i * d.in.size() + 1], static_cast<int64_t>(k), d.hyper[k]);
    for (Operands* out : {&one, &all})
      for (size_t k = 0; k < d.out.size(); ++k)
        add(*out, d.out[k], seed + static_cast<uint32_t>(k), k == 0 ? -1 : 0.01);
    signatures.push_back({d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, 1});
  }
  const Attrs packing{{"use", std::string("forward")}, {"m", int64_t{1}}, {"dtype", std::string("bf16")}};
  for (size_t i = 0; i < calls.size(); ++i) {
    kernels::Signature s = signatures[i];
    const std::span<Tensor> own(one.tensors.data() + s.out.size() * i, s.out.size());
    Tensor pack = std::exchange(own[kPackedAt], {});
    s.out_present &= ~(1u << kPackedAt);
    run_kernel(registry.find(s).get(), {in.tensors.data() + s.in.size() * i, s.in.size()}, own);
    own[kPackedAt] = pack;
    if (pack)
      run_kernel(registry.find({"pack_weight", s.out.first(1), {&pack.desc, 1}, 1, 1, &packing, 1}).get(),
                 own.first(1), own.subspan(kPackedAt, 1));
  }
  run_kernel(registry.batch(signatures).get(), in.tensors, all.tensors);
  const size_t outputs = calls[0].out.size();
  for (size_t o = 0; o < all.tensors.size(); ++o)
    expect_same(all.tensors[o], one.tensors[o], ops::find("update")->outputs[o % outputs].name, o / outputs);
  EXPECT_TRUE(all.guards_intact());
}

inline void expect_squares_alike(const kernels::Registry& registry, const std::vector<int64_t>& counts,
                                 bool accumulates, double last = 1) {
  Operands in, one, all;
  const TensorDesc scalar{DType::kF64, Shape{}, 0};
  for (size_t i = 0; i < counts.size(); ++i)
    in.add({DType::kF32, Shape{counts[i]}, 0}, static_cast<uint32_t>(i), -2, 2);
  set(in.tensors.back(), counts.back() - 1, last);
  for (Operands* out : {&one, &all}) out->add(scalar, 7, 1, 2);
  const Attrs none;
  std::vector<kernels::Signature> signatures;
  for (size_t i = 0; i < counts.size(); ++i) {
    signatures.push_back(
        {"sum_squares", {&in.tensors[i].desc, 1}, {&scalar, 1}, 1, i == 0 ? 1u : 0u, &none, 1});
    run_kernel(registry.find({"sum_squares", {&in.tensors[i].desc, 1}, {&scalar, 1}, 1, 1, &none, 1}).get(),
               {&in.tensors[i], 1}, one.tensors, i > 0 || accumulates ? 1 : 0);
  }
  all.tensors.resize(counts.size());
  run_kernel(registry.batch(signatures).get(), in.tensors, all.tensors, accumulates ? 1 : 0);
  expect_same(all.tensors[0], one.tensors[0], "total", 0);
  EXPECT_EQ(std::isfinite(get(all.tensors[0], 0)), std::isfinite(last));
  EXPECT_TRUE(all.guards_intact());
}

// Sizes around vectors, blocks and chunks; more tensors than a launch takes.
inline void check_batches(const kernels::Registry& registry) {
  ASSERT_NE(registry.batch, nullptr);
  const std::vector<int64_t> sizes = {2048, 1, 3, 4, 1027, 2047, 2049, 8192, 20001, 5, 8193, 50002};
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 1100; ++i) many.push_back(1 + i * 7 % 41);
  const auto all = [](size_t) { return true; };
  const auto some = [](size_t i) { return i % 3 == 1; };
  const auto none = [](size_t) { return false; };
  for (const std::vector<int64_t>& counts :
       {sizes, many, std::vector<int64_t>{1}, std::vector<int64_t>{4099}}) {
    SCOPED_TRACE(counts.size());
    std::vector<UpdateKind> kinds = elementwise_kinds();
    for (const UpdateKind& kind : split_kinds())
      if (kind.row->is(ops::UPDATE_ELEMENTWISE)) kinds.push_back(kind);
    for (const UpdateKind& kind : kinds) {
      SCOPED_TRACE(kind.name());
      expect_updates_alike(registry, {kind}, counts, none);
      expect_updates_alike(registry, {kind}, counts, some);
      expect_updates_alike(registry, {kind}, counts, all);
    }
    expect_updates_alike(registry, kinds, counts, some);  // in turn
    for (const bool accumulates : {false, true}) expect_squares_alike(registry, counts, accumulates);
    for (const double last : {HUGE_VAL, std::nan("")}) expect_squares_alike(registry, counts, true, last);
  }
}

}  // namespace cairn::conformance
