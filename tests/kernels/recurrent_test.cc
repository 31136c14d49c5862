// Layers that step through time: the same bits with any number of threads, a run of one step, outputs that nobody wants.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "tests/conformance/interpreter.h"

namespace cairn::kernels::cpu {
namespace {

using conformance::Buffer;

// A call on numbers that follow from the place of the operand and the element alone.
struct Ran {
  std::vector<std::string> out;

  Ran(const char* op, const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& outputs, int threads,
      uint32_t wanted = ~0u, bool reverse = false) {
    const Attrs attrs{{"reverse", int64_t{reverse}}};
    wanted &= (1u << outputs.size()) - 1;
    const auto kernel =
        cpu_registry().find({op, in, outputs, (1u << in.size()) - 1, wanted, &attrs, threads});
    EXPECT_NE(kernel, nullptr) << op;
    if (kernel == nullptr) return;
    std::vector<Buffer> buffers;
    buffers.reserve(in.size() + outputs.size() + 1);
    std::vector<Tensor> from, to;
    for (const TensorDesc& d : in) {
      from.push_back({d, buffers.emplace_back(d.bytes()).data()});
      for (int64_t i = 0; i < d.shape.elements(); ++i)
        conformance::set(from.back(), i,
                         std::sin(static_cast<double>(i * (1 + static_cast<int64_t>(from.size())))) / 2);
    }
    for (size_t o = 0; o < outputs.size(); ++o)
      to.push_back({outputs[o], buffers.emplace_back(outputs[o].bytes()).data()});
    for (size_t o = 0; o < outputs.size(); ++o)
      if (!(wanted >> o & 1u)) to[o].data = nullptr;
    set_thread_count(threads);
    kernel->run({from, to, buffers.emplace_back(kernel->workspace_bytes()).data()});
    set_thread_count(1);
    for (const Tensor& t : to)
      out.emplace_back(t ? std::string(t.as<char>(), static_cast<size_t>(t.desc.bytes())) : "");
  }
};

struct Layer {
  const char* op;
  std::vector<TensorDesc> in, out;
};

std::vector<Layer> layers(DType t, int64_t batch, int64_t time, int64_t n) {
  const auto of = [&](int64_t gates) { return TensorDesc{t, {batch, time, gates * n}, 0}; };
  const auto w = [&](int64_t gates) { return TensorDesc{DType::kF32, {gates * n, n}, 0}; };
  const TensorDesc y = of(1), cells{DType::kF32, {batch, time, n}, 0}, h{t, {batch, n}, 0},
                   c{DType::kF32, {batch, n}, 0}, b{DType::kF32, {3 * n}, 0};
  return {{"lstm", {of(4), w(4), h, c}, {y, cells, of(4)}},
          {"lstm_grad", {y, cells, of(4), cells, w(4), c}, {of(4), h, c}},
          {"gru", {of(3), w(3), b, h}, {y, of(4)}},
          {"gru_grad", {y, of(4), y, w(3), h}, {of(3), of(3), h}}};
}

TEST(Recurrent, BitsDoNotDependOnThreads) {
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16})
    for (const auto& [batch, time, n] : {std::array<int64_t, 3>{37, 4, 130}, {3, 2, 300}, {1, 3, 40}})
      for (const Layer& l : layers(t, batch, time, n)) {
        const Ran one(l.op, l.in, l.out, 1);
        for (const int threads : {2, 3, 5})
          EXPECT_TRUE(Ran(l.op, l.in, l.out, threads).out == one.out)
              << l.op << ' ' << dtype_name(t) << ' ' << batch << ' ' << n << ", " << threads << " threads";
      }
}

TEST(Recurrent, WhatNobodyWantsChangesNothing) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const Layer& l : layers(t, 5, 3, 24)) {
      const Ran all(l.op, l.in, l.out, 1),
          first(l.op, l.in, l.out, 1, std::strcmp(l.op, "gru_grad") ? 1u : 3u);
      EXPECT_EQ(first.out[0], all.out[0]) << l.op;
    }
}

// The other way round, a run of one step is the same.
TEST(Recurrent, OneStepHasNoDirection) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const Layer& l : layers(t, 5, 1, 24))
      EXPECT_TRUE(Ran(l.op, l.in, l.out, 1).out == Ran(l.op, l.in, l.out, 1, ~0u, true).out) << l.op;
}

}  // namespace
}  // namespace cairn::kernels::cpu
