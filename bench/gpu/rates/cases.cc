#include "bench/gpu/rates/cases.h"

#include "runtime/ops/ops.h"

namespace cairn::bench {
namespace {

// Rows of logits that a loss of its own is measured with: all of a micro-batch would take gigabytes.
constexpr int64_t kLogitRows = 8192;

struct Builder {
  const Model& m;
  const kernels::Registry& registry;
  std::vector<Case> cases;

  const TensorDesc none{DType::kU8, {}, 0};
  const TensorDesc one{DType::kF64, {}, 0};

  static TensorDesc f32(Shape s) { return {DType::kF32, s, 0}; }
  static TensorDesc i32(Shape s) { return {DType::kI32, s, 0}; }
  static TensorDesc low(Shape s) { return {DType::kBF16, s, 0}; }
  TensorDesc act(int64_t width) const { return low({m.batch, m.length, width}); }
  TensorDesc row() const { return f32({m.batch, m.length}); }
  int64_t rows() const { return m.batch * m.length; }

  // The weight as kernels see it: packed where the backend packs it.
  TensorDesc weight(int64_t n, int64_t k, const char* use = "forward") const {
    TensorDesc d = f32({n, k});
    if (const int64_t bytes = registry.packed_bytes(d, use, rows(), DType::kBF16, 1)) {
      d.dtype = DType::kOpaque;
      d.packed_bytes = bytes;
    }
    return d;
  }

  Case& add(std::string op, std::vector<TensorDesc> in, std::vector<TensorDesc> out, Attrs attrs = {},
            std::string note = {}) {
    Case c{};
    c.name = op + note;
    c.op = std::move(op);
    c.in = std::move(in);
    c.out = std::move(out);
    c.attrs = std::move(attrs);
    c.in_present = present(c.in);
    c.out_present = present(c.out);
    c.count = 1;
    const ops::OpRow* const known = ops::find(c.op);
    require(known != nullptr, Code::kInternal, "there is no op '", c.op, "'");
    const ops::Work work = ops::work(*known, without(c.in), without(c.out), &c.attrs);
    c.bytes = work.bytes;
    c.name += " " + size(c);
    return cases.emplace_back(std::move(c));
  }
  // Bound by arithmetic.
  void product(std::string op, std::vector<TensorDesc> in, std::vector<TensorDesc> out, Attrs attrs = {},
               std::string note = {}) {
    Case& c = add(std::move(op), std::move(in), std::move(out), std::move(attrs), std::move(note));
    c.flops = ops::work(*ops::find(c.op), without(c.in), without(c.out), &c.attrs).flops;
    c.gemm = true;
  }

  static uint32_t present(const std::vector<TensorDesc>& list) {
    uint32_t bits = ~0u;
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].dtype == DType::kU8) bits &= ~(1u << i);
    return bits;
  }
  static std::vector<TensorDesc> without(std::vector<TensorDesc> list) {
    for (TensorDesc& d : list)
      if (d.dtype == DType::kU8) d.shape.rank = 1, d.shape.dims[0] = 0;  // no bytes, no elements
    return list;
  }
  // Whether the op's row has so many operands: fused forms are measured where there are any.
  static bool has(std::string_view op, size_t inputs, size_t outputs) {
    const ops::OpRow* const row = ops::find(op);
    return row != nullptr && row->inputs.size() >= inputs && row->outputs.size() >= outputs;
  }
  static std::string size(const Case& c) {
    const Shape& shape = c.in.empty() ? c.out[0].shape : c.in[0].shape;
    return std::to_string(shape.rows()) + "x" + std::to_string(shape.last());
  }

  void elementwise(int64_t width) {
    const TensorDesc x = act(width), wide = f32({m.batch, m.length, width});
    for (const char* op : {"gelu", "silu", "relu", "scale", "dropout"}) {
      Attrs attrs;
      if (std::string_view(op) == "scale") attrs.set("factor", 0.5);
      if (std::string_view(op) == "dropout") attrs = {{"rate", 0.1}, {"rng", int64_t{1}}};
      add(op, {x}, {x}, attrs);
    }
    for (const char* op : {"gelu_grad", "silu_grad", "swiglu", "add", "mul"}) add(op, {x, x}, {x});
    add("swiglu_grad", {x, x, x}, {x, x});
    add("add", {x, f32({width})}, {x}, {}, " bias");
    add("cast", {wide}, {x}, {{"dtype", std::string("bf16")}}, " to bf16");
    add("cast", {x}, {wide}, {{"dtype", std::string("f32")}}, " to f32");
    add("accumulate", {x}, {wide});
    add("reduce_leading", {x}, {f32({width})}, {{"rank", int64_t{1}}});
  }

  void norms() {
    const TensorDesc x = act(m.width), vector = f32({m.width});
    add("layernorm", {x, vector, vector}, {x, row(), row()});
    add("layernorm_grad", {x, x, vector, row(), row()}, {x, vector, vector});
    add("rmsnorm", {x, vector}, {x, row()});
    add("rmsnorm_grad", {x, x, vector, row()}, {x, vector});
    if (has("layernorm_grad", 6, 3))
      add("layernorm_grad", {x, x, vector, row(), row(), x}, {x, vector, vector}, {}, " sum");
    if (has("rmsnorm_grad", 5, 2)) add("rmsnorm_grad", {x, x, vector, row(), x}, {x, vector}, {}, " sum");
    const TensorDesc wide = f32({m.batch, m.length, m.width});
    add("softmax", {wide}, {wide});
    add("softmax_grad", {wide, wide}, {wide});
  }

  void layout() {
    const int64_t head = m.width / m.heads;
    const TensorDesc x = act(m.width), qkv = act(3 * m.width);
    const TensorDesc split = low({m.batch, m.length, m.heads, head}),
                     turned = low({m.batch, m.heads, m.length, head});
    const TensorDesc flat = low({rows(), m.width}), flipped = low({m.width, rows()});
    add("transpose", {split}, {turned}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}, " heads");
    add("transpose", {flat}, {flipped}, {{"perm", std::vector<int64_t>{1, 0}}});
    add("slice", {qkv}, {x}, {{"axis", int64_t{2}}, {"begin", m.width}, {"end", 2 * m.width}}).bytes =
        2.0 * x.bytes();
    add("concat", {x, x, x}, {qkv}, {{"axis", int64_t{2}}});
    if (head % 2 == 0) add("rope", {x}, {x}, {{"heads", m.heads}});
  }

  void lookups() {
    const TensorDesc x = act(m.width), ids = i32({m.batch, m.length}), table = f32({m.vocab, m.width});
    const auto looked_up = static_cast<double>(std::min(rows(), m.vocab) * m.width * 4);
    add("embedding", {table, ids}, {x}, {{"dtype", std::string("bf16")}}).bytes =
        looked_up + static_cast<double>(ids.bytes() + x.bytes());
    add("embedding_grad", {ids, x}, {table}, {{"vocab", m.vocab}});
    const int64_t count = std::min(rows(), kLogitRows);
    const TensorDesc logits = low({count, m.vocab}), targets = i32({count});
    add("cross_entropy", {logits, targets, none}, {one, one});
    add("cross_entropy_grad", {logits, targets, none}, {one, one, logits});
  }

  // By AdamW, of a parameter like d.
  Case& update(const TensorDesc& d, const TensorDesc& pack, const std::string& note = {}) {
    const TensorDesc hyper{DType::kF64, {8}, 0};
    return add("update", {d, hyper, none}, {d, d, d, none, none, pack, none},
               {{"optimizer", std::string("adamw")}}, " adamw" + note);
  }

  void updates() {
    const TensorDesc table = f32({m.vocab, m.width});
    add("sum_squares", {table}, {one});
    const TensorDesc packed = weight(m.vocab, m.width);
    const double bytes = update(table, none).bytes;
    if (packed.packed_bytes > 0)  // the packed weight is written only
      update(table, packed, " packed").bytes = bytes + static_cast<double>(packed.packed_bytes);
    if (packed.packed_bytes > 0)
      add("pack_weight", {table}, {packed},
          {{"use", std::string("forward")}, {"m", rows()}, {"dtype", std::string("bf16")}});
  }

  void linear(int64_t k, int64_t n) {
    const TensorDesc x = act(k), y = act(n), w = weight(n, k), b = f32({n});
    const std::string to = "->" + std::to_string(n);
    product("linear", {x, w, none}, {y}, {}, to);
    product("linear", {x, w, b}, {y}, {}, to + " bias");
    if (n > k && n != 3 * k)
      product("linear", {x, w, b}, {y, y}, {{"activation", std::string("gelu_tanh")}}, to + " gelu");
    product("linear_grad_input", {y, weight(n, k, "input_grad")}, {x}, {}, "->" + std::to_string(k));
    if (k == 4 * m.width && has("linear_grad_input", 3, 1))
      product("linear_grad_input", {y, weight(n, k, "input_grad"), x}, {x},
              {{"activation", std::string("gelu_tanh")}}, "->" + std::to_string(k) + " gelu");
    product("linear_grad_weight", {x, y}, {f32({n, k}), none}, {}, to);
    product("linear_grad_weight", {x, y}, {f32({n, k}), b}, {}, to + " bias");
  }

  void products() {
    linear(m.width, 3 * m.width);
    linear(m.width, m.width);
    linear(m.width, 4 * m.width);
    linear(4 * m.width, m.width);
  }

  void attention() {
    const TensorDesc qkv = act(3 * m.width), y = act(m.width), lse = f32({m.batch, m.heads, m.length});
    const Attrs heads{{"heads", m.heads}};
    const std::string note = " D" + std::to_string(m.width / m.heads);
    product("attention", {qkv, none, none}, {y, lse}, heads, note);
    product("attention_grad", {y, qkv, none, none, y, lse}, {qkv, none, none}, heads, note);
  }

  void loss() {
    const TensorDesc x = act(m.width), ids = i32({m.batch, m.length}), w = weight(m.vocab, m.width);
    const TensorDesc again = weight(m.vocab, m.width, "input_grad"),
                     wg = again.packed_bytes > 0 ? again : none;
    product("linear_cross_entropy", {x, w, ids, none}, {one, one});
    product("linear_cross_entropy_grad", {x, w, ids, none, wg}, {one, one, x, f32({m.vocab, m.width})});
  }
};

BatchCase together(std::vector<Case> ops, const std::string& note) {
  BatchCase batch;
  Case& all = batch.all;
  all.op = ops[0].op;
  all.name = all.op + note;
  all.in_present = all.out_present = 0;
  const auto append = [](const std::vector<TensorDesc>& from, uint32_t present, std::vector<TensorDesc>& to,
                         uint32_t& bits) {
    for (size_t i = 0; i < from.size(); ++i, present >>= 1) {
      bits |= (present & 1u) << to.size();
      to.push_back(from[i]);
    }
  };
  for (const Case& op : ops) {
    append(op.in, op.in_present, all.in, all.in_present);
    append(op.out, op.out_present, all.out, all.out_present);
    all.bytes += op.bytes;
  }
  batch.ops = std::move(ops);
  return batch;
}

}  // namespace

std::vector<Model> gpu_models() {
  return {{"124m", 64, 1024, 768, 12, 50304},
          {"1.5b", 16, 1024, 1600, 25, 50304},
          {"4096", 4, 2048, 4096, 32, 50304}};
}
Model emulated_model() { return {"tiny", 1, 32, 128, 2, 96}; }

std::vector<Case> model_cases(const Model& model, const kernels::Registry& registry) {
  Builder b{model, registry, {}};
  b.norms();
  for (int64_t width : {model.width, 4 * model.width}) b.elementwise(width);
  b.layout();
  b.lookups();
  b.updates();
  b.products();
  b.attention();
  b.loss();
  return b.cases;
}

std::vector<BatchCase> batch_cases(const Model& model, const kernels::Registry& registry) {
  const int64_t c = model.width;
  const std::vector<Shape> shapes{{model.vocab, c}, {c},        {3 * c, c}, {3 * c},
                                  {c, c},           {4 * c, c}, {4 * c},    {c, 4 * c}};
  const std::string note = " of " + std::to_string(shapes.size()) + " tensors";
  Builder updates{model, registry, {}}, squares{model, registry, {}};
  for (const Shape& shape : shapes) {
    const TensorDesc d = Builder::f32(shape);
    const TensorDesc packed = shape.rank == 2 ? updates.weight(shape[0], shape[1]) : updates.none;
    updates.update(d, packed.packed_bytes > 0 ? packed : updates.none);
    squares.add("sum_squares", {d}, {squares.one});
    if (squares.cases.size() > 1) squares.cases.back().out_present = 0;  // they add to the first one's
  }
  return {together(std::move(updates.cases), " adamw" + note + " with packs"),
          together(std::move(squares.cases), note)};
}

}  // namespace cairn::bench
