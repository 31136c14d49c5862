// The op table, as data. Rows are in ops.def; enum, names, schemas, gradient dispatch, documentation and the
// list of conformance tests all come from re-including it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/attrs.h"
#include "runtime/base/tensor.h"

namespace cairn::ops {

enum class OpCode : uint16_t {
#define OP(id, ...) k_##id,
#include "runtime/ops/ops.def"
#undef OP
  kCount
};

enum Trait : uint32_t {
  PURE = 1u << 0,        // outputs depend on inputs, attributes and random key only
  RECOMPUTE = 1u << 1,   // may run again: pure and deterministic
  RNG = 1u << 2,         // reads the random key
  EFFECT = 1u << 3,      // writes something besides its outputs; runs exactly once
  INTERNAL = 1u << 4,    // made by autodiff or lowering; cannot be added by name
  LOSS = 1u << 5,        // outputs are (sum, weight); may be the graph's loss
  FUSED_LOSS = 1u << 6,  // in training the gradient op computes the loss as well and takes its place
  ALIAS = 1u << 7,       // output 0 is input 0's bytes under another shape; nothing runs
  REORDER = 1u << 8,     // output 0 has input 0's elements, in another order or shape
  FLAT = 1u << 9,        // outputs are constant but for jumps: no gradient comes back through it
  // Of one row each, for what is measured by rates: its rate is that of all other products, of all that memory
  // bounds, or its runs are counted together, once per step.
  PRODUCTS = 1u << 10,
  STREAMS = 1u << 11,
  UPDATES = 1u << 12,
  // Makes of a parameter alone what other ops read: once, whenever the parameter changed, or where it is read.
  DERIVES = 1u << 13,
};

// What happens to a forward op in bf16/fp16 graphs: its AMP class, a row of amp.def.
enum class Amp : uint8_t {
#define AMP(id, ...) id,
#include "runtime/ops/amp.def"
#undef AMP
};
struct AmpRow {
  Amp amp_class;
  std::string_view name;
  bool by_rule;  // a plan's rules may give it
  std::string_view description;
};
std::span<const AmpRow> amp_classes();
inline std::string_view name(Amp amp) { return amp_classes()[static_cast<size_t>(amp)].name; }

// Tolerances of conformance: EXACT bit for bit; the others relative + absolute per dtype (tests/conformance).
enum class Tolerance : uint8_t { EXACT, ELEMENTWISE, REDUCTION, GEMM };

// Bits of `saves`: what the gradient rule reads. IN(i), OUT(i).
constexpr uint32_t IN(int i) { return 1u << i; }
constexpr uint32_t OUT(int i) { return 1u << (16 + i); }
inline constexpr uint32_t kReads_x = IN(0), kReads_y = OUT(0);  // by the column of elementwise.def

// What an operand is to those that know only rows.
enum class OperandRole : uint8_t {
  kData,    // an activation, a gradient, a scalar
  kWeight,  // "weight": rows of a parameter, float32 with activations of any dtype
  kWide,    // "wide": may be float32 with other activations: biases, norm parameters, statistics
  kIndex,   // "index": integers that number entries of a vocabulary (Lookup)
  kState,   // "state" (outputs): read and written in place
  kAddend,  // "addend": added to output 0, and optional; an addition that follows may hand its other operand
            // in
  kInto,    // "into": a cache, which output 0 is after the op has changed it
  kMoved,   // "moved": a statistic, which the end of a step moves by what output 0 sums up until then
  kArgument,  // "argument": output 0 is multiplied by an activation's derivative there; optional as well
};

struct Operand {
  std::string_view name;
  bool optional = false;     // "name?"
  bool accumulates = false;  // "name+" (outputs): kernel can add to it
  bool in_place = false;  // "name=" (inputs): output 0 may lie on it, where elements are as many and as wide
  bool later = false;     // "name~": graphs do not store that it is left out, as from before it was
  OperandRole role = OperandRole::kData;
  // Of a weight in a product, which a backend may want packed: for what use. "forward" (y = x w^T) and
  // "input_grad" (dx = dy w) stand for the role in the table.
  std::string_view pack = {};
  bool decoded = false;  // "decoded": a weight that is never read in blocks, as "weight" may be

  // Keeps its dtype where activations become bf16.
  bool stays_full() const { return role == OperandRole::kWeight || role == OperandRole::kWide; }
};

struct AttrSchema {
  std::string_view name;
  char type;  // i integer, f real, s word, l list of integers, r list of real numbers
  bool required;
};

// Inputs present are given in `in` (absent optionals: rank 0, present bit clear); fills `out`. Throws
// kInvalidArgument naming op, operand and both shapes. Integer attributes are checked here, too. `out` holds
// the outputs in row order; trailing outputs that this call does not make (pre of a linear without an
// activation, dk and dv of packed attention) are left off, so out->size() may be less than the row's count.
struct ShapeQuery {
  std::string_view op;
  std::span<const TensorDesc> in;
  uint32_t in_present;
  const Attrs* attrs;
  std::vector<TensorDesc>* out;

  bool has(size_t i) const { return i < in.size() && (in_present >> i & 1u); }
};
using ShapeRule = void (*)(const ShapeQuery&);

class GradientEmitter;  // runtime/ops/gradients.h
using GradientRule = void (*)(GradientEmitter&);

// Work of one run, for the analytic cost model: floating-point operations and bytes moved.
struct Work {
  double flops = 0;
  double bytes = 0;
};

struct OpRow;
using WorkRule = Work (*)(const OpRow&, std::span<const TensorDesc> in, std::span<const TensorDesc> out,
                          const Attrs* attrs);

struct OpRow {
  OpCode code;
  std::string_view name;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<AttrSchema> attrs;
  ShapeRule shape;
  GradientRule gradient;  // nullptr: inputs get no gradient
  uint32_t saves;
  uint32_t traits;
  Amp amp;
  Tolerance tolerance;
  std::string_view description;
  WorkRule work;  // nullptr: a few operations per element, or none (work.cc)
  double gpu;     // what its work says, times this, is what it takes on a GPU that nothing was measured on

  bool is(Trait t) const { return traits & t; }
  bool has_attr(std::string_view name) const;
  int operand(OperandRole role) const;  // the first input of the role; -1: there is none
};

const OpRow& row(OpCode code);
const OpRow* find(std::string_view name);  // nullptr if unknown
std::span<const OpRow> all();
inline std::string_view name(OpCode code) { return row(code).name; }
const OpRow& with(Trait trait);  // the one row that has it

// Where a weight may stand packed. Operand 0 has the rows that are multiplied, the first operand with a use
// is the weight. Listed so that one after the other can be replaced: the last operand first, and the weight
// itself, which the others are made from, at the end.
struct PackedUse {
  int weight, into;
  std::string_view use;
  int only_with = -1;  // an operand without which this one must not be packed
};
std::vector<PackedUse> packed_uses(const OpRow& row);

// A forward op that looks numbers up: they count rows of the operand that is a weight or, without one, the
// last axis of operand 0.
struct Lookup {
  size_t numbers, table;
  int axis;
  bool ignores;  // but for the number in the attribute ignore_index
};
std::optional<Lookup> lookup(const OpRow& row);

// Checks names, types and presence against the row; kInvalidArgument names op and attribute and lists those
// known.
void check_attrs(const OpRow& row, const Attrs& attrs);

// attrs: only attention looks at it (causal, window); nullptr stands for the defaults.
Work work(const OpRow& row, std::span<const TensorDesc> in, std::span<const TensorDesc> out,
          const Attrs* attrs = nullptr);

}  // namespace cairn::ops
