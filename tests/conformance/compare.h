// Runs one kernel row of a backend on the operands of one call and compares it with the reference kernel:
// values within the op's tolerance, the same bits twice, nothing written outside outputs and workspace.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "tests/conformance/cases.h"

namespace cairn::conformance {

// |value - expected| <= relative * |expected| + absolute * (largest |expected| of the tensor).
struct Bound {
  double relative, absolute;
};

// The float types that tests of kernels go through, the coarsest last.
inline constexpr DType kKernelTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

// By the op's tolerance and the coarsest float type among its operands. One rounding is 2^-8 in bf16, with 8
// bits of mantissa, and 2^-11 in f16.
inline Bound bound(ops::Tolerance tolerance, DType type) {
  using enum ops::Tolerance;
  const double rounding = type == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  const bool coarse = type != DType::kF32;
  switch (tolerance) {
    case EXACT:
      return {0, 0};
    case ELEMENTWISE:
      return coarse ? Bound{2 * rounding, 1e-6} : Bound{4e-6, 1e-6};
    case REDUCTION:
      return coarse ? Bound{2 * rounding, rounding / 2} : Bound{1e-5, 4e-6};
    case GEMM:
      return coarse ? Bound{4 * rounding, 2 * rounding} : Bound{1e-5, 1e-5};
  }
  return {0, 0};
}

// The coarsest float type among the operands, at least float32.
inline DType coarsest(const kernels::Signature& s) {
  DType type = DType::kF32;
  for (const DType candidate : kKernelTypes) {
    for (size_t i = 0; i < s.in.size(); ++i)
      if (s.has_in(i) && s.in[i].dtype == candidate) type = candidate;
    for (size_t i = 0; i < s.out.size(); ++i)
      if (s.has_out(i) && s.out[i].dtype == candidate) type = candidate;
  }
  return type;
}

// The outputs of one run, in buffers of their own.
struct Outputs {
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors;

  // seeded: contents before the run, for outputs that are read; others hold NaN.
  Outputs(const kernels::Signature& s, uint32_t seeded) {
    for (size_t i = 0; i < s.out.size(); ++i) buffers.emplace_back(s.has_out(i) ? s.out[i].bytes() : 0);
    for (size_t i = 0; i < s.out.size(); ++i) {
      tensors.push_back({s.out[i], s.has_out(i) ? buffers[i].data() : nullptr});
      if (s.has_out(i) && (seeded >> i & 1u)) fill(tensors[i], 900 + i, {'T', {}, 0.01, 1});
    }
  }
  bool guards_intact() const {
    bool ok = true;
    for (const Buffer& b : buffers) ok = ok && b.guard_intact();
    return ok;
  }
};

inline void run_into(const kernels::Kernel& kernel, std::span<const Tensor> in, Outputs& out,
                     uint32_t accumulate, const RandomKey& key, const std::string& what) {
  Buffer workspace(kernel.workspace_bytes());
  kernel.run({in, out.tensors, workspace.data(), accumulate, key});
  EXPECT_TRUE(workspace.guard_intact()) << what << ": wrote past its workspace";
  EXPECT_TRUE(out.guards_intact()) << what << ": wrote past an output";
}

inline double largest_of(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < t.desc.shape.elements(); ++i)
    if (const double size = std::fabs(get(t, i)); std::isfinite(size)) largest = std::max(largest, size);
  return largest;
}

// States of 8 bits: the scales as other numbers; of the codes next to none, and by one, since a number that lies
// between two may be rounded to either; behind the last number those of 0.
inline double worst_of_blocks(const Tensor& e, const Tensor& v, Bound bound, const std::string& what) {
  const int64_t count = e.desc.shape.elements();
  int64_t others = 0;
  double worst = 0;
  for (int64_t i = 0; i < count; i += kDynamicBlock) {
    const DynamicBlock &a = e.as<DynamicBlock>()[i / kDynamicBlock],
                       &b = v.as<DynamicBlock>()[i / kDynamicBlock];
    worst = std::max(worst, std::fabs(a.scale - b.scale) / (bound.relative * a.scale));
    for (int64_t k = 0; k < kDynamicBlock; ++k) {
      const int apart = std::abs(a.codes[k] - b.codes[k]);
      EXPECT_LE(apart, i + k < count ? 1 : 0) << what << ": code " << i + k << " of " << to_string(e.desc);
      others += apart;
    }
  }
  EXPECT_LE(others, 1 + count / 1000) << what << ": codes of " << to_string(e.desc);
  EXPECT_LE(worst, 1) << what << ": scales of " << to_string(e.desc);
  return worst;
}

// Largest error in units of the bound; fails the test when above 1.
inline double worst_error(const kernels::Signature& s, const Outputs& expected, const Outputs& value,
                          Bound bound, const std::string& what) {
  // An output may cancel to nothing (dq and dk of attention over one position), while the terms of its sums
  // are as large as its neighbours'.
  double neighbours = 0;
  for (const Tensor& t : expected.tensors)
    if (t && t.desc.shape.rank > 0) neighbours = std::max(neighbours, largest_of(t));
  double worst = 0;
  for (size_t o = 0; o < s.out.size(); ++o) {
    if (!s.has_out(o)) continue;
    const Tensor &e = expected.tensors[o], &v = value.tensors[o];
    if (format(e.desc.dtype).block > 1) {
      worst = std::max(worst, worst_of_blocks(e, v, bound, what));
      continue;
    }
    if (e.desc.dtype == DType::kI32) {
      EXPECT_EQ(std::memcmp(e.data, v.data, static_cast<size_t>(e.desc.bytes())), 0)
          << what << ": output " << o << " has other numbers";
      continue;
    }
    const double largest = std::max(largest_of(e), e.desc.shape.rank > 0 ? neighbours / 64 : 0.0);
    for (int64_t i = 0, n = e.desc.shape.elements(); i < n; ++i) {
      const double a = get(e, i), b = get(v, i), error = std::fabs(a - b);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double allowed = bound.relative * std::fabs(a) + bound.absolute * largest;
      const double ratio = allowed > 0 && !std::isnan(error) ? error / allowed : HUGE_VAL;
      worst = std::max(worst, ratio);
      if (ratio <= 1) continue;
      ADD_FAILURE() << what << ": output " << o << " element " << i << " of " << to_string(e.desc) << " is "
                    << b << ", reference " << a << " (largest " << largest << ")";
      break;
    }
  }
  return worst;
}

// `expected`: the signature the reference takes; `s`: that of the row (weights may be packed). `updates`:
// outputs are read and written in any case (update). Returns the worst error in units of the bound; -1: row
// takes it not.
inline double compare(const kernels::KernelRow& row, const kernels::Signature& reference,
                      std::span<const Tensor> reference_in, const kernels::Signature& s,
                      std::span<const Tensor> in, const RandomKey& key, bool updates,
                      const std::string& what) {
  const ops::OpRow& op = *ops::find(s.op);
  uint32_t sums = 0;
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (op.outputs[i].accumulates && s.has_out(i)) sums |= 1u << i;
  const auto oracle = kernels::select(kernels::reference_registry(), reference);
  double worst = -1;
  for (uint32_t accumulate : {0u, sums}) {
    const uint32_t seeded = updates ? ~0u : accumulate;
    Outputs expected(s, seeded);
    bool known = false;
    for (int threads : {1, 2}) {
      kernels::Signature threaded = s;
      threaded.threads = threads;
      const auto kernel = row.make(threaded);
      if (kernel == nullptr) continue;
      const std::string where =
          cat(what, " [", row.name, ", ", threads, " threads, accumulate ", accumulate, "]");
      if (!known) run_into(*oracle, reference_in, expected, accumulate, key, where + " reference");
      known = true;
      set_thread_count(threads);
      Outputs first(s, seeded), second(s, seeded);
      static ThreadTeam team(2);
      set_thread_team(&team);
      run_into(*kernel, in, first, accumulate, key, where);
      set_thread_team(nullptr);  // as many shares, all of them on this thread
      run_into(*kernel, in, second, accumulate, key, where);
      for (size_t o = 0; o < s.out.size(); ++o)
        if (s.has_out(o)) {
          EXPECT_EQ(std::memcmp(first.tensors[o].data, second.tensors[o].data,
                                static_cast<size_t>(s.out[o].bytes())),
                    0)
              << where << ": output " << o << " has other bits in a second run";
        }
      worst =
          std::max(worst, worst_error(s, expected, first, bound(op.tolerance, coarsest(reference)), where));
    }
    if (sums == 0) break;
  }
  set_thread_count(1);
  return worst;
}

}  // namespace cairn::conformance
