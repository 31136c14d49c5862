// A graph with an op of the host's, and how a call failed, as tests of sessions use them.
#pragma once
#include <atomic>
#include <cstring>
#include <functional>

#include "tests/runtime/compile/support.h"

namespace cairn::engine {

inline std::shared_ptr<device::Device> reference(bool check = true) {
  auto device = device::open("reference", {.threads = 1});
  return check ? device::checked(device) : device;
}

template <class Call>
Code code_of(const Call& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return Code::kOk;
}

// y = 2x by the host, with a hook in forward and a switch for failure.
struct Doubler {
  std::function<void()> in_forward = [] {};
  std::atomic<bool> fails{false};
  std::atomic<int> forwards{0};

  std::shared_ptr<Graph> graph(int ops = 1) {
    auto g = std::make_shared<Graph>();
    graph::CustomOp op;
    op.name = "doubler";
    op.inputs = op.outputs = 1;
    op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
      out[0] = in[0];
      return true;
    };
    op.workspace_bytes = [](std::span<const TensorDesc> in) { return in[0].bytes(); };
    op.forward = [this](std::span<const Tensor> in, std::span<const Tensor> out, void* workspace) {
      ++forwards;
      in_forward();
      std::memcpy(workspace, in[0].data, static_cast<size_t>(in[0].desc.bytes()));
      for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i)
        out[0].as<float>()[i] = 2 * static_cast<float*>(workspace)[i];
      return !fails;
    };
    op.backward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
      if (in.size() != 3 || out.size() != 1) return false;  // x, y, dy -> dx
      for (int64_t i = 0; i < out[0].desc.shape.elements(); ++i)
        out[0].as<float>()[i] = 2 * in[2].as<float>()[i];
      return true;
    };
    g->custom(op);
    ValueId x = g->op("mul", {g->input("x", {DType::kF32, {4, 8}}), parameter(*g, "w", {8})})[0];
    for (int i = 0; i < ops; ++i) x = g->op("doubler", {x})[0];
    const auto loss = g->op("mse", {x, g->input("t", {DType::kF32, {4, 8}})});
    g->freeze(loss[0], loss[1], {x});
    return g;
  }
};

}  // namespace cairn::engine
