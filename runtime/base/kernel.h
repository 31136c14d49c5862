// What a kernel is to everything above: made once for fixed shapes, asked for its workspace, then run many
// times. Kernels know tensors, attributes and threads; they know no graph, no plan and no device queue.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/attrs.h"
#include "runtime/base/random.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels {

// What there is to choose from in a kernel: for each of its parts, the words for the ways to compute it. All
// give the result within the op's tolerance, each with bits of its own.
using Options = std::vector<std::vector<std::string>>;

// One op with fixed shapes. Operands stand in the order of the op's row in ops.def; an optional operand left
// out has rank 0 and `present(i)` false. Outputs that accumulate (marked '+' in the row) are float32 (float64
// in float64 graphs).
struct Signature {
  std::string_view op;
  std::span<const TensorDesc> in;
  std::span<const TensorDesc> out;
  uint32_t in_present = ~0u;   // bit i: operand i is there
  uint32_t out_present = ~0u;  // bit i: somebody wants output i
  const Attrs* attrs = nullptr;
  int threads = 1;
  // Of a backend with choices: "ROW|WORD|WORD...", the row's name and a word for each part, as measured. "",
  // and words that are not known (of another library, another device), stand for the backend's own choice.
  std::string_view choice = {};
  Options* options = nullptr;  // lists what there is to choose from while the kernel is made

  bool has_in(size_t i) const { return i < in.size() && (in_present >> i & 1u); }
  bool has_out(size_t i) const { return i < out.size() && (out_present >> i & 1u); }
};

// One call. Tensors left out have data == nullptr. `accumulate` bit i: add to output i instead of writing it;
// only ever set for outputs marked '+'. An output overlaps no other operand, `in_place` excepted.
struct Call {
  std::span<const Tensor> in;
  std::span<const Tensor> out;
  void* workspace = nullptr;  // workspace_bytes() bytes, 64-byte aligned, contents undefined
  uint32_t accumulate = 0;
  RandomKey key = {};
  uint32_t in_place = 0;  // bit i: input i lies where output 0 lies; only for inputs marked '=' in the row
  const void* lane = nullptr;  // set by the queue, for backends that need to know theirs
};

// Immutable after creation; run() may be called from one thread at a time per object, on the thread of a
// compute lane, whose thread_count() equals Signature::threads. Never allocates in run(), never throws from
// run() for reasons known at creation. Same inputs, same threads: same bits.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t workspace_bytes() const { return 0; }
  virtual void run(const Call& call) const = 0;
};

// What a kernel needs: kBf16 instructions that multiply bfloat16, kAmx tiles that do.
enum class Isa : uint8_t { kAny, kBf16, kAmx };

// A row of kernels.def. `make` returns nullptr when it does not take this signature (dtype, layout, shape).
using MakeKernel = std::unique_ptr<Kernel> (*)(const Signature&);
struct KernelRow {
  std::string_view op;
  std::string_view name;
  Isa isa;
  MakeKernel make;
};

// What a backend's kernels make of the machine they run on.
struct BackendFacts {
  std::string_view instruction_set = {};                       // for people: "AVX-512"
  std::string_view instruction_set_word = {};                  // as CAIRN_ISA names it: "avx512"
  double f32_flops_per_second = 0, bf16_flops_per_second = 0;  // sustained by one thread, in products
  bool fuses_multiply_add =
      false;                 // all its kernels do, where an optimizer's definition has a product and a sum
  std::string refusal = {};  // why the kernels cannot run as the environment asks; "": they can
  std::string note = {};     // for people: which way a kernel with several takes here, and why
};

// The rows of one backend, best first for each op. `find` returns nullptr if no row takes the signature.
struct Registry {
  std::string_view backend;
  std::span<const KernelRow> rows;
  // Bytes of the backend's packed form of a weight [n, k] for `use` ("forward": y = x w^T; "input_grad":
  // dx = dy w) at `m` rows of x in `compute` dtype; 0: this backend reads such a weight as it is.
  int64_t (*packed_bytes)(const TensorDesc& weight, std::string_view use, int64_t m, DType compute,
                          int threads);
  bool one_packed_form = false;  // the "forward" pack serves every use and any m
  bool packed_is_copy = false;   // a packed weight is one of 16 bits in the weight's own layout
  bool gaps_filled = true;       // by the reference's kernels, which run where the host can reach
  bool choices = false;  // some kernels have alternatives that can be timed, or several rows take a signature
  // One kernel for several ops of one kind that follow each other, with the bits of a kernel each in that
  // order. nullptr: this backend has none, or does not take these; they are then launched one by one. Every
  // signature has as many operands as its row, and the Call holds the first op's inputs, then the second's,
  // ..., and the outputs likewise. An op that adds to the output of the one before it leaves its own out:
  // sum_squares gives one total, and bit 0 of `accumulate` says whether that adds to what was there.
  std::unique_ptr<Kernel> (*batch)(std::span<const Signature> ops) = nullptr;
  // How many rows the parts of a fused loss (ops.def) must be a multiple of, so that it has the bits of the op in one piece; the
  // last part has at least as many. whole: that op. nullptr or 0: this backend cannot.
  int64_t (*part_rows)(const Signature& whole) = nullptr;
  // How many rows tiles of the op's rows (runtime/compile/tiles) must be a multiple of, so that they have the bits of the op in one
  // piece; the last tile has at least as many. whole: that op. Sums over rows continue in a tile where the tile before
  // left them. nullptr or 0: this backend cannot.
  int64_t (*tile_rows)(const Signature& whole) = nullptr;
  // The chunk, a multiple of 8, in which sum_squares adds up `count` elements: a tensor that comes in pieces of full chunks
  // gets the same bits by squares_of_chunks and sum_of_chunks. nullptr: sum_squares adds in another way.
  int64_t (*squares_chunk)(int64_t count) = nullptr;
  // sum_squares adds up as blocks of so many threads do, so that the processor's has the same bits (`threads` in ops.def). 0: it does
  // something else.
  int squares_threads = 0;
  BackendFacts (*facts)() = nullptr;  // nullptr: there is nothing to say
  // The same rows, whose kernels use what every processor has: plans for a device that is not there are then the same on
  // every machine. nullptr: these depend on no processor.
  const Registry* any_machine = nullptr;

  // The row that the signature's choice names, if it takes it; else the first that does.
  std::unique_ptr<Kernel> find(const Signature& signature) const;
  bool supports(std::string_view op) const;
};

}  // namespace cairn::kernels
