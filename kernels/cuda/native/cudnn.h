// cuDNN as all its users see it: opened at run time, a handle for each device, graphs that run on a stream. For files that are compiled
// only where the library's headers are.
#pragma once
#include <mutex>
#include <unordered_map>

#include "kernels/cuda/native/cudnn_graph.h"

namespace cairn::kernels::cuda {

inline constexpr const char* kCudnnLibrary = "libcudnn.so.9";

// Opens the library once and never closes it. False: it is missing.
bool open_cudnn();

// A handle has one stream at a time, so whoever uses it holds the lock.
struct CudnnHandle {
  std::mutex mutex;
  cudnnHandle_t cudnn = nullptr;
};
// That of a device; nullptr without the library. Handles live as long as the process.
CudnnHandle* cudnn_handle(int device);

// A graph with its plans, ready to run; no graph: the library does not take it.
struct CudnnGraph {
  std::shared_ptr<cudnn_frontend::graph::Graph> graph;
  int64_t workspace = 0;

  // With room for the alignment that the library's plans are tried with; cairn promises less.
  int64_t workspace_bytes() const { return workspace > 0 ? workspace + kAlignment : 0; }
  // what: for people.
  void run(CudnnHandle& handle, void* stream, std::unordered_map<int64_t, void*>& operands, void* space,
           const char* what) const;

 private:
  static constexpr int64_t kAlignment = 256;  // what cudaMalloc gives
};

}  // namespace cairn::kernels::cuda
