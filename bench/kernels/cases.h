// The kernels of one training micro-step of GPT-2 124M (batch 4, sequence 256) and of its update, with how
// often each runs.
#pragma once
#include <list>
#include <string>
#include <vector>

#include "runtime/base/kernel.h"

namespace cairn::bench {

struct Case {
  std::string name;  // "linear fc 1024x768->3072"
  std::string op;
  std::vector<TensorDesc> in, out;
  uint32_t in_present, out_present, accumulate = 0;
  Attrs attrs = {};
  double count = 1;   // runs in a step
  double flops = 0;   // of one run; 0: bytes count
  double bytes = 0;   // read and written by one run
  bool gemm = false;  // part of the floor: matrix products alone
};

std::vector<Case> gpt2_cases(DType compute, int threads);

// A case with its operands, ready to run.
class Runner {
 public:
  Runner(const Case& c, int threads);  // kUnsupported if no kernel takes it
  void run();
  const std::string& row() const { return row_; }
  int64_t workspace_bytes() const { return workspace_->bytes; }

 private:
  const Case& case_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::string row_;
  // From the allocator of the arenas: products on 4 KiB pages are slower.
  struct Block {
    std::byte* data;
    int64_t bytes;
    explicit Block(int64_t bytes);
    ~Block();
    Block(const Block&) = delete;
  };
  std::list<Block> storage_;
  Block* workspace_ = nullptr;
  std::vector<Tensor> in_, out_;
};

}  // namespace cairn::bench
