// Whether cuDNN takes the graphs of attention, on a machine without a GPU.
#include "tests/cuda/native/described_device.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace cairn::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;

struct Case {
  const char* name;
  int batch, length, heads, kv_heads, dim;
  bool packed, causal;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
constexpr Case kCases[] = {
    {"gpt2_124m", 64, 1024, 12, 12, 64, true, true},  {"gpt2_1_5b", 16, 1024, 25, 25, 64, true, true},
    {"width_4096", 4, 2048, 32, 32, 128, true, true}, {"grouped_heads", 4, 2048, 32, 8, 128, false, true},
    {"short", 2, 100, 2, 2, 64, true, true},          {"small_heads", 2, 64, 2, 2, 32, true, true},
    {"all_positions", 2, 128, 2, 2, 64, true, false}, {"odd_length", 2, 37, 3, 1, 64, true, true},
};

AttentionSizes sizes_of(const Case& c) {
  AttentionSizes a{};
  a.batch = c.batch, a.length = c.length, a.heads = c.heads, a.kv_heads = c.kv_heads, a.dim = c.dim;
  const int all = (c.heads + 2 * c.kv_heads) * c.dim;
  a.q_ld = c.packed ? all : c.heads * c.dim;
  a.kv_ld = c.packed ? all : c.kv_heads * c.dim;
  a.y_ld = c.heads * c.dim;
  a.packed = c.packed, a.causal = c.causal;
  a.scale = 0.125f;
  a.scale_log2 = 0.125f * 1.44269504f;
  return a;
}

class Cudnn : public DescribedDevice {
 protected:
  // Why cuDNN does not take it; "" if it does.
  static std::string refusal(const AttentionSizes& a, bool gradient) {
    const auto graph = attention_graph(a, gradient);
    describe(*graph);
    auto status = graph->validate();
    if (status.is_good()) status = graph->build_operation_graph();
    if (status.is_good()) status = graph->create_execution_plans({fe::HeurMode_t::A});
    if (status.is_good()) status = graph->check_support();
    return status.is_good() ? "" : "refused: " + status.get_message();
  }
};

class CudnnGraph : public Cudnn, public testing::WithParamInterface<Case> {};

TEST_P(CudnnGraph, ForwardIsTaken) { EXPECT_EQ(refusal(sizes_of(GetParam()), false), ""); }
TEST_P(CudnnGraph, TheDeterministicGradientIsTaken) { EXPECT_EQ(refusal(sizes_of(GetParam()), true), ""); }

INSTANTIATE_TEST_SUITE_P(Sizes, CudnnGraph, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(Cudnn, WhatItCannotRunIsRefused) {
  AttentionSizes a = sizes_of({"", 2, 64, 2, 2, 64, true, true});
  a.dim = 36;  // not a multiple of 8
  EXPECT_NE(refusal(a, false).find("multiple of 8"), std::string::npos) << refusal(a, false);
}

}  // namespace
}  // namespace cairn::kernels::cuda
