// The little that cuDNN's frontend asks of a CUDA runtime while it describes a graph, with no GPU behind it.
#include <cuda_runtime_api.h>

#define CAIRN_EXPORT extern "C" __attribute__((visibility("default")))

CAIRN_EXPORT cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
CAIRN_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9
           : attribute == cudaDevAttrMultiProcessorCount  ? 132
                                                          : 0;
  return cudaSuccess;
}
CAIRN_EXPORT const char* cudaGetErrorString(cudaError_t) { return "no GPU"; }
