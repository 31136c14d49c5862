// Every kernel row of a backend against the reference, on the operands that real forward and backward passes
// hand it, in every type of kKernelTypes; and which op runs where, as a table.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "kernels/cpu/simd/isa.h"
#include "tests/conformance/backend_cases.h"
#include "tests/conformance/blocks.h"
#include "tests/conformance/choices.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/known.h"
#include "tests/conformance/updates.h"

namespace cairn::conformance {

// What was seen of one (op, dtype).
struct Seen {
  int calls = 0, taken = 0;
  bool packed = false;
  double worst = 0;
};

class Harness {
 public:
  // `known`: nullptr for a backend whose gaps the reference fills.
  explicit Harness(const kernels::Registry& registry, const Known* known = nullptr)
      : registry_(registry), known_(known) {
    if (known != nullptr) account_.emplace(*known);
  }

  // Compares every row of the backend that takes this call; weights packed as well, where the backend packs
  // them.
  void check(const kernels::Signature& s, std::span<const Tensor> in, const RandomKey& key, bool updates,
             const std::string& what) {
    Seen& seen = table_[{std::string(s.op), coarsest(s)}];
    ++seen.calls;
    const int before = seen.taken;
    rows(s, in, s, in, key, updates, what, seen);
    packed(s, in, key, what, seen);
    blocks(s, in, key, what, seen);
    if (account_) account_->taken(s.op, coarsest(s), seen.taken > before, what);
    if (seen.taken > before) seen.taken = before + 1;
  }
  // In a dtype that no kernel of the backend is for: none says that it takes the call.
  void refuse(const kernels::Signature& s, DType dtype, const std::string& what) {
    if (!account_) return;
    bool any = false;
    for (const kernels::KernelRow& row : registry_.rows)
      any = any || (row.op == s.op && row.make(s) != nullptr);
    account_->taken(s.op, dtype, any, what);
  }

  // Of all rows but optional ones: a case ran them.
  void close() const {
    if (account_) account_->close();
    for (size_t r = 0; r < registry_.rows.size(); ++r) {
      if (ops::find(registry_.rows[r].op)->is(ops::ALIAS)) continue;  // nothing runs
      if (known_ != nullptr && known_->optional.contains(registry_.rows[r].name)) continue;
      if (!kernels::cpu::has(registry_.rows[r].isa)) {
        EXPECT_FALSE(rows_run_.contains(r)) << registry_.rows[r].name << " ran without what it needs";
        std::printf("not run on this processor: kernel '%s' of op '%s'\n", registry_.rows[r].name.data(),
                    registry_.rows[r].op.data());
        continue;
      }
      EXPECT_TRUE(rows_run_.contains(r))
          << "no case runs kernel '" << registry_.rows[r].name << "' of op '" << registry_.rows[r].op << "'";
    }
  }

  void print() const {
    std::printf("%-28s", "op");
    for (const DType type : kKernelTypes) std::printf(" %-28s", std::string(dtype_name(type)).c_str());
    std::printf("\n");
    std::set<std::string> ops;
    for (const auto& [key, seen] : table_) ops.insert(key.first);
    for (const std::string& op : ops) {
      std::printf("%-28s", op.c_str());
      for (const DType type : kKernelTypes) {
        const auto it = table_.find({op, type});
        std::printf(" %-28s", it == table_.end() ? "-" : describe(it->second).c_str());
      }
      std::printf("\n");
    }
  }

 private:
  std::string describe(const Seen& seen) const {
    if (seen.taken == 0) return "reference";
    char text[80];
    std::snprintf(text, sizeof text, "%s%s%s, error %.3f", std::string(registry_.backend).c_str(),
                  seen.packed ? " packed" : "", seen.taken < seen.calls ? " (some)" : "", seen.worst);
    return text;
  }

  void rows(const kernels::Signature& reference, std::span<const Tensor> reference_in,
            const kernels::Signature& s, std::span<const Tensor> in, const RandomKey& key, bool updates,
            const std::string& what, Seen& seen) {
    for (size_t r = 0; r < registry_.rows.size(); ++r) {
      if (registry_.rows[r].op != s.op) continue;
      double worst = -1;
      const auto run = [&] {
        worst = compare(registry_.rows[r], reference, reference_in, s, in, key, updates, what);
      };
      if (account_) {
        account_->row(s.op, registry_.rows[r].name, coarsest(s), run);
      } else {
        run();
      }
      if (worst < 0) continue;
      rows_run_.insert(r);
      ++seen.taken;
      seen.worst = std::max(seen.worst, worst);
    }
  }

  // Replaces the weight by its packed forms.
  void packed(const kernels::Signature& s, std::span<const Tensor> in, const RandomKey& key,
              const std::string& what, Seen& seen) {
    std::vector<TensorDesc> descs(s.in.begin(), s.in.end());
    std::vector<Tensor> tensors(in.begin(), in.end());
    std::vector<Buffer> packs;
    packs.reserve(2);
    kernels::Signature changed = s;
    for (const ops::PackedUse& use : ops::packed_uses(*ops::find(s.op))) {
      const Tensor weight = in[use.weight];
      const int64_t m = in[0].desc.shape.rows();
      const int64_t bytes = registry_.packed_bytes(weight.desc, use.use, m, in[0].desc.dtype, 1);
      if (bytes <= 0) continue;
      TensorDesc desc = weight.desc;
      desc.dtype = DType::kOpaque;
      desc.packed_bytes = bytes;
      const Attrs attrs{
          {"use", std::string(use.use)}, {"m", m}, {"dtype", std::string(dtype_name(in[0].desc.dtype))}};
      const kernels::Signature pack{"pack_weight", {&weight.desc, 1}, {&desc, 1}, 1, 1, &attrs, 1};
      packs.emplace_back(bytes);
      const Tensor out{desc, packs.back().data()};
      bool made = false;
      for (size_t r = 0; r < registry_.rows.size() && !made; ++r) {
        if (registry_.rows[r].op != "pack_weight") continue;
        const auto kernel = registry_.rows[r].make(pack);
        if (kernel == nullptr) continue;
        Buffer workspace(kernel->workspace_bytes());
        kernel->run({{&weight, 1}, {&out, 1}, workspace.data(), 0, {}});
        EXPECT_TRUE(packs.back().guard_intact()) << what << ": pack_weight wrote past its output";
        rows_run_.insert(r);
        made = true;
      }
      ASSERT_TRUE(made) << what << ": packed_bytes is " << bytes << " for " << to_string(weight.desc)
                        << ", but no kernel packs it";
      descs[use.into] = desc;
      tensors[use.into] = out;
      changed.in_present |= 1u << use.into;
    }
    if (packs.empty()) return;
    changed.in = descs;
    const int before = seen.taken;
    rows(s, in, changed, tensors, key, false, what + " packed", seen);
    EXPECT_GT(seen.taken, before) << what << ": no kernel takes the packed weight";
    seen.packed = true;
  }

  // Replaces the weight by blocks of a format that its rows divide by, by one format after the other.
  void blocks(const kernels::Signature& s, std::span<const Tensor> in, const RandomKey& key,
              const std::string& what, Seen& seen) {
    const std::optional<Blocks> stored = in_blocks(s, in, turn_);
    if (!stored) return;
    kernels::Signature changed = s;
    changed.in = stored->descs;
    const int before = seen.taken;
    rows(changed, stored->tensors, changed, stored->tensors, key, false, what + " in blocks", seen);
    EXPECT_TRUE(known_ != nullptr || seen.taken > before) << what << ": no kernel takes the weight in blocks";
  }

  const kernels::Registry& registry_;
  const Known* const known_;
  size_t turn_ = 0;
  std::optional<Account> account_;
  std::map<std::pair<std::string, DType>, Seen> table_;
  std::set<size_t> rows_run_;
};

// What fuse_backward.cc makes of pairs of ops: an activation's derivative, a sum of gradients.
inline void add_fused(std::vector<Direct>& to) {
  for (const DType t : kKernelTypes) {
    for (const ops::Function& f : ops::functions())
      for (const auto& [m, n, k] :
           {std::array<int64_t, 3>{7, 33, 64}, {33, 129, 70}, {64, 1, 65}, {1, 40, 256}}) {
        const TensorDesc dy{t, {m, n}, 0}, w{DType::kF32, {n, k}, 0}, pre{t, {m, k}, 0};
        to.push_back({"linear_grad_input", {dy, w, pre}, {pre}, word("activation", std::string(f.name))});
      }
    for (const int64_t c : {7, 33, 64, 768}) {
      const TensorDesc x{t, {33, c}, 0}, row{DType::kF32, {33}, 0}, column{DType::kF32, {c}, 0};
      to.push_back({"layernorm_grad", {x, x, column, row, row, x}, {x, column, column}, {}});
      to.push_back({"rmsnorm_grad", {x, x, column, row, x}, {x, column}, {}});
    }
  }
}

// No gradient comes back through comparisons, so that no graph of a case holds them; and what is done to losses, which are
// float64, in graphs that are not.
inline void add_comparisons(std::vector<Direct>& to) {
  for (const char* op : {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
    for (const DType t : kKernelTypes)
      for (const Shape& b : {Shape{3, 700}, Shape{700}, Shape{3, 1}, Shape{}})
        for (const DType of_b : {t, DType::kF32})
          to.push_back({op, {{t, {3, 700}, 0}, {of_b, b, 0}}, {{t, {3, 700}, 0}}, {}});
  const TensorDesc loss{DType::kF64, Shape{}, 0}, scalar{DType::kF32, Shape{}, 0};
  for (const char* op : {"add", "sub", "mul", "div"}) to.push_back({op, {loss, loss}, {loss}, {}});
  to.push_back({"scale", {loss}, {loss}, with("factor", 0.37)});
  to.push_back({"cast", {scalar}, {loss}, word("dtype", "f64")});
  to.push_back({"cast", {loss}, {scalar}, word("dtype", "f32")});
}

// Ops on values that outlive a run: no gradient comes through them.
inline void add_residents(std::vector<Direct>& to) {
  for (const DType t : kKernelTypes)
    for (const int64_t c : {1, 7, 33, 300}) {
      const TensorDesc x{t, {3, 11, c}, 0}, mean{DType::kF32, {c}, 0}, sums{DType::kF64, {c + 1}, 0},
          at{DType::kI32, {1}, 0}, each{DType::kI32, {3}, 0}, all{t, {12, 11, c}, 0};
      to.push_back({"running_mean", {x, mean}, {sums}, {}});
      to.push_back({"move_mean", {sums}, {mean}, with("momentum", 0.3)});
      to.push_back({"effective", {x}, {all}, {{"micro_steps", int64_t{4}}}});
      to.push_back({"effective_rows", {all}, {x}, {{"micro_steps", int64_t{4}}}});
      to.push_back({"row_numbers", {x}, {each}, {}});
      to.push_back({"average", {{t, {c}, 0}}, {mean}, with("decay", 0.9)});
      for (const DType of_cache : {t, DType::kF32}) {
        const TensorDesc rows{of_cache, {8, c}, 0}, samples{of_cache, {3, 8, c}, 0}, few{t, {3, 5, c}, 0};
        to.push_back({"append", {rows, {t, {2, c}, 0}, at}, {rows}, {}, {}, 8});
        to.push_back({"append", {samples, few, each}, {samples}, {}, {}, 8});
        to.push_back({"append", {samples, few, each, each}, {samples}, {}, {}, 8});
        to.push_back({"append", {samples, few, each, each}, {samples}, {{"ring", int64_t{1}}}, {}, 8});
        to.push_back({"append", {samples, x, each, each}, {samples}, {{"ring", int64_t{1}}}, {}, 8});
      }
    }
}

// Every format that is read through `dequantise`: parts of a block, whole ones, many.
inline void add_dequantised(std::vector<Direct>& to) {
  for (const DType stored : kDTypes) {
    const int64_t block = format(stored).block;
    if (format(stored).read != Read::kDequantised) continue;
    const int64_t many = block > 1024 ? 4 : 129;
    for (const DType type : kKernelTypes)
      for (const int64_t n : {int64_t{1}, block - 1, block, block + 7, 3 * block, many * block + 2})
        to.push_back(
            {"dequantise", {{stored, {n}, 0}}, {{type, {n}, 0}}, {{"dtype", std::string(dtype_name(type))}}});
  }
}

// Ops that no graph of a case holds, on operands drawn here.
inline std::vector<Direct> direct_cases() {
  std::vector<Direct> list;
  add_fused(list);
  add_narrow_weights(list);
  const TensorDesc one{DType::kF64, Shape{}, 0};
  for (const DType type : kKernelTypes)
    for (const int64_t classes : {1, 2, 3, 7, 1030})
      for (const Shape& rows : {Shape{}, Shape{33}, Shape{3, 40}}) {
        Shape logits = rows;
        logits.dims[logits.rank++] = classes;
        const TensorDesc x{type, logits, 0}, targets{DType::kI32, rows, 0}, weights{DType::kF32, rows, 0};
        list.push_back({"accuracy", {x, targets}, {one, one}, with("top", int64_t{3})});
        list.push_back({"accuracy", {x, targets, weights}, {one, one}, with("ignore_index", int64_t{-1})});
      }
  list.push_back({"grad_scale", {one, one}, {one}, {}});
  add_comparisons(list);
  add_residents(list);
  add_choices(list);
  add_dequantised(list);
  add_blocks(list);
  for (const UpdateKind& kind : update_kinds())
    for (const TensorDesc& x : update_tensors(kind)) list.push_back(update_call(kind, x, false));
  for (int64_t n : {1, 7, 33, 64, 129, 5000}) {
    const TensorDesc f32{DType::kF32, Shape{n}, 0};
    for (const UpdateKind& kind : update_kinds())
      for (const bool scaled : {false, true}) list.push_back(update_call(kind, kind.parameter(n), scaled));
    list.push_back({"sum_of_chunks", {{DType::kF64, Shape{n}, 0}}, {one}, {}});
    for (const DType type : kKernelTypes) {
      const TensorDesc x{type, Shape{n}, 0};
      list.push_back({"sum_squares", {x}, {one}, {}});
      if (type == DType::kF32) list.push_back({"sum_squares", {x}, {one}, {{"threads", int64_t{256}}}});
      for (const int64_t chunk : {8, 64, 8192})
        list.push_back({"squares_of_chunks",
                        {x},
                        {{DType::kF64, Shape{(n + chunk - 1) / chunk}, 0}},
                        {{"chunk", chunk}}});
      list.push_back({"accumulate", {x}, {f32}, {}});
      list.push_back({"fill",
                      {},
                      {x},
                      {{"shape", List{n}}, {"value", 0.3}, {"dtype", std::string(dtype_name(x.dtype))}}});
    }
  }
  return list;
}

inline void check_direct(Harness& harness, const Direct& d) {
  std::vector<Buffer> buffers;
  std::vector<Tensor> in;
  for (const TensorDesc& desc : d.in) buffers.emplace_back(is_there(desc) ? desc.bytes() : 0);
  for (size_t i = 0; i < d.in.size(); ++i) {
    in.push_back({d.in[i], is_there(d.in[i]) ? buffers[i].data() : nullptr});
    // Integers number what `ids` says, or the last dimension of operand 0; -1 comes up as well.
    const bool numbers = d.in[i].dtype == DType::kI32;
    const int64_t below = d.ids > 0 ? d.ids : d.in[0].shape.last();
    if (in[i])
      fill(in[i], 50 + i,
           numbers ? Operand{'I', {}, -1, static_cast<double>(below)} : T({}, -d.most, d.most));
  }
  for (size_t i = 0; i < d.hyper.size(); ++i) set(in[1], static_cast<int64_t>(i), d.hyper[i]);
  const kernels::Signature s{d.op, d.in, d.out, present_of(d.in), present_of(d.out), &d.attrs, 1};
  const std::string optimizer = d.attrs.word("optimizer");
  const bool updates = ops::find(d.op)->outputs[0].role == ops::OperandRole::kState;
  harness.check(s, in, {}, updates, cat(d.op, ' ', optimizer, ' ', to_string(d.out[0])));
}

// Weights of a vocabulary in parts, in training and in forward graphs. The terms of a block that is not full are each backend's
// own business: that its parts add up is tested where they are put together.
inline void check_parts(Harness& harness, const RandomKey& key) {
  for (Case c : backend_cases())
    for (const DType dtype : kKernelTypes) {
      // What a part reads is of exact logits, while its own are rounded: small ones, by little.
      for (Operand& o : c.in)
        if (o.kind == 'T' && !o.whole) o.lo = -0.25, o.hi = 0.25;
      const Built built = build(c, dtype, trainable(c), 3, true);
      if (built.joint->slices.empty()) continue;
      Interpreter interpreter(built.joint);
      fill_leaves(interpreter, built);
      interpreter.run(
          true, key, [&](const graph::JointOp& op, const kernels::Signature& s, const kernels::Call& call) {
            if (op.code == ops::OpCode::k_linear_cross_entropy_sum && s.has_out(1)) return;
            harness.check(s, call.in, key, false, cat(s.op, " of ", c.name(), ' ', dtype_name(dtype)));
          });
    }
}

// Fails for every row that disagrees with the reference, for every row that no case runs, and where the
// backend does other than its list says.
inline void check_backend(const kernels::Registry& registry, const Known* known = nullptr) {
  Harness harness(registry, known);
  RandomKey key;
  key.seed = 5;
  key.step = 2;
  check_parts(harness, key);
  for (const Case& c : backend_cases())
    for (const DType dtype : kKernelTypes) {
      const Built built = build(c, dtype, trainable(c));
      Interpreter interpreter(built.joint);
      fill_leaves(interpreter, built);
      interpreter.run(
          true, key, [&](const graph::JointOp&, const kernels::Signature& s, const kernels::Call& call) {
            harness.check(s, call.in, key, false, cat(s.op, " of ", c.name(), ' ', dtype_name(dtype)));
          });
      // Forward loss ops are replaced by their gradients in training graphs.
      if (ops::find(c.op)->is(ops::LOSS)) {
        const auto is_grad = [&](const graph::JointOp& op) { return ops::name(op.code) == c.op + "_grad"; };
        const graph::JointOp& grad =
            *std::find_if(built.joint->ops().begin(), built.joint->ops().end(), is_grad);
        std::vector<Tensor> in;
        const size_t outputs = c.attrs.integer("accuracy") != 0 ? 4 : 2;
        std::vector<TensorDesc> in_desc, out_desc(outputs, {DType::kF64, Shape{}, 0});
        uint32_t present = 0;
        const ops::OpRow &row = *ops::find(c.op), &grad_row = ops::row(grad.code);
        for (size_t i = 0; i < row.inputs.size(); ++i) {
          const auto same = [&](const ops::Operand& o) { return o.name == row.inputs[i].name; };
          const auto at = std::ranges::find_if(grad_row.inputs, same) - grad_row.inputs.begin();
          const int32_t value =
              at < static_cast<std::ptrdiff_t>(grad.in.size()) ? grad.in[static_cast<size_t>(at)] : -1;
          in.push_back(interpreter.tensor(value));
          in_desc.push_back(in.back().desc);
          if (value >= 0) present |= 1u << i;
        }
        const kernels::Signature s{c.op, in_desc, out_desc, present, (1u << outputs) - 1, &grad.attrs, 1};
        harness.check(s, in, key, false, cat(c.name(), ' ', dtype_name(dtype)));
      }
    }
  for (const Case& c : backend_cases()) try {
      const Built built = build(c, DType::kF64, trainable(c));
      Interpreter interpreter(built.joint);
      fill_leaves(interpreter, built);
      const auto refused = [&](const graph::JointOp&, const kernels::Signature& s, const kernels::Call&) {
        harness.refuse(s, DType::kF64, cat(s.op, " of ", c.name(), " f64"));
      };
      interpreter.run(true, key, refused);
    } catch (const Error& error) {  // its attributes ask for another dtype
      if (error.code() != Code::kInvalidArgument) throw;
    }
  for (const Direct& d : direct_cases()) check_direct(harness, d);
  harness.print();
  harness.close();
}

}  // namespace cairn::conformance
