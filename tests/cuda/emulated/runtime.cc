// The C interface of the emulated CUDA runtime.
#include "tests/cuda/emulated/runtime.h"

#include <cstdlib>
#include <utility>

#include "tests/cuda/emulated/random.h"
#include "tests/cuda/emulated/stream.h"
#include "tests/cuda/emulated/world.h"

using namespace cairn::kernels::cuda::emulated;

namespace {

constexpr struct {
  cudaError_t status;
  const char *name, *text;
} kErrors[] = {
#define ERROR(name, text) \
  { name, #name, text }
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorInsufficientDriver, "the driver is older than the runtime"),
    ERROR(cudaErrorNoDevice, "no device"),
    ERROR(cudaErrorInvalidDevice, "invalid device"),
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for this device"),
    ERROR(cudaErrorECCUncorrectable, "uncorrectable memory error"),
    ERROR(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error"),
    ERROR(cudaErrorContained, "an exception that the GPU contained"),
    ERROR(cudaErrorIllegalAddress, "illegal memory access"),
    ERROR(cudaErrorLaunchTimeout, "a kernel ran too long"),
    ERROR(cudaErrorAssert, "a kernel's assertion failed"),
    ERROR(cudaErrorHardwareStackError, "an error in a call stack"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction"),
    ERROR(cudaErrorMisalignedAddress, "a misaligned address"),
    ERROR(cudaErrorInvalidAddressSpace, "an address of the wrong space"),
    ERROR(cudaErrorInvalidPc, "an invalid program counter"),
    ERROR(cudaErrorHostMemoryNotRegistered, "memory is not registered"),
    ERROR(cudaErrorLaunchFailure, "a kernel failed"),
    ERROR(cudaErrorTensorMemoryLeak, "tensor memory was not given back"),
    ERROR(cudaErrorMpsClientTerminated, "the server ended this client"),
    ERROR(cudaErrorExternalDevice, "an external device failed"),
    ERROR(cudaErrorDevicesUnavailable, "all devices are busy"),
    ERROR(cudaErrorNotSupported, "not supported"),
    ERROR(cudaErrorStreamCaptureUnsupported, "not permitted while a stream is captured"),
    ERROR(cudaErrorStreamCaptureUnjoined, "a captured stream was not joined"),
    ERROR(cudaErrorCapturedEvent, "a captured event is waited for outside of its capture"),
#undef ERROR
};

constexpr int kCopyDelay = 150, kLegacyDelay = 3000;  // microseconds at most

// Do both ends lie in memory that the driver knows? What does not is what a GPU would fault on.
bool good_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  const auto known = [&](const void* end, bool on_device) {
    const auto* const at = static_cast<const char*>(end);
    const bool either = kind == cudaMemcpyDefault;  // told by the addresses
    if (on_device || (either && inside(w.device, at, bytes))) return inside(w.device, at, bytes);
    return inside(w.host, at, bytes);
  };
  return known(to, kind == cudaMemcpyHostToDevice) && known(from, kind == cudaMemcpyDeviceToHost);
}
bool on_device(const void* at, size_t bytes) {
  std::lock_guard lock(world().mutex);
  return inside(world().device, static_cast<const char*>(at), bytes);
}
bool registered(const void* at, size_t bytes) {
  std::lock_guard lock(world().mutex);
  return inside(world().host, static_cast<const char*>(at), bytes);
}

// The bytes arrive late, and not all at once.
void land(void* to, const void* from, size_t bytes) {
  delay(kCopyDelay);
  const size_t first = one_in(4) ? bytes / 2 : 0;
  std::memcpy(to, from, first);
  if (first > 0) delay(kCopyDelay);
  std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first, bytes - first);
}

Stream& legacy() {
  static Stream* const one = new Stream;
  return *one;
}
void wait_for(Stream& stream) {
  const auto point = std::make_shared<Point>();
  stream.push([point] { point->reach(); });
  point->wait();
}

cudaError_t illegal() {
  stick(cudaErrorIllegalAddress);
  return cudaErrorIllegalAddress;
}

// In a stream, from or to memory of the host that is not registered.
cudaError_t copy_pageable(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Stream& stream) {
  if (stream.capture) return illegal();  // a graph would read it when it runs
  if (!on_device(kind == cudaMemcpyHostToDevice ? to : from, bytes)) return illegal();
  ++world().pageable;
  if (kind == cudaMemcpyHostToDevice) {
    const auto* const begin = static_cast<const char*>(from);
    submit(&stream, [to, staged = std::vector<char>(begin, begin + bytes)] {
      land(to, staged.data(), staged.size());
    });
    return cudaSuccess;
  }
  submit(&stream, [=] { land(to, from, bytes); });
  wait_for(stream);
  return world().sticky;
}

#define ENTER(function) \
  if (const cudaError_t status = enter(function); status != cudaSuccess) return status

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t status) {
  for (const auto& e : kErrors)
    if (e.status == status) return e.name;
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t status) {
  for (const auto& e : kErrors)
    if (e.status == status) return e.text;
  return "unknown error";
}
cudaError_t cudaGetLastError() { return world().sticky; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = gpu().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  ENTER("cudaGetDeviceCount");
  *count = gpu().count;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  ENTER("cudaGetDeviceProperties");
  if (device < 0 || device >= gpu().count) return cudaErrorInvalidDevice;
  *p = {};
  std::strcpy(p->name, "emulated");
  p->totalGlobalMem = static_cast<size_t>(gpu().memory_bytes);
  p->major = gpu().major;
  p->minor = gpu().minor;
  p->multiProcessorCount = 132;
  p->memoryBusWidth = 6144;
  p->asyncEngineCount = 3;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrClockRate ? 1'980'000 : 3'201'000;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ENTER("cudaSetDevice");
  return device < 0 || device >= gpu().count ? cudaErrorInvalidDevice : cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  ENTER("cudaMemGetInfo");
  *total_bytes = static_cast<size_t>(gpu().memory_bytes);
  *free_bytes = *total_bytes - std::min(*total_bytes, static_cast<size_t>(allocated_bytes()));
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t bytes) {
  ENTER("cudaMalloc");
  if (allocated_bytes() + static_cast<int64_t>(bytes) > gpu().memory_bytes) return cudaErrorMemoryAllocation;
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xa5, bytes);
  std::lock_guard lock(world().mutex);
  world().device[static_cast<char*>(memory)] = bytes;
  *out = memory;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  wait_for(legacy());
  {
    std::lock_guard lock(world().mutex);
    if (world().device.erase(static_cast<char*>(memory)) == 0) return cudaErrorInvalidValue;
  }
  std::free(memory);
  return cudaSuccess;
}
// Returns at once; the bytes are set when the legacy stream comes to it.
cudaError_t cudaMemset(void* memory, int byte, size_t bytes) {
  ENTER("cudaMemset");
  if (!on_device(memory, bytes)) return cudaErrorInvalidValue;
  submit(&legacy(), [=] {
    delay(kLegacyDelay);
    std::memset(memory, byte, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes, cudaStream_t stream) {
  ENTER("cudaMemsetAsync");
  if (!on_device(memory, bytes)) return cudaErrorInvalidValue;
  submit(stream, [=] {
    delay(kCopyDelay);
    std::memset(memory, byte, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  ENTER("cudaMemcpy");
  const bool out = kind == cudaMemcpyDeviceToHost;
  if (!on_device(out ? from : to, bytes)) return illegal();
  const auto* const begin = static_cast<const char*>(from);
  if (out || registered(from, bytes)) {
    submit(&legacy(), [=] { land(to, from, bytes); });
    wait_for(legacy());
    return world().sticky;
  }
  submit(&legacy(), [to, staged = std::vector<char>(begin, begin + bytes)] {
    delay(kLegacyDelay);
    land(to, staged.data(), staged.size());
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  ENTER("cudaMemcpyAsync");
  const void* const host = kind == cudaMemcpyHostToDevice   ? from
                           : kind == cudaMemcpyDeviceToHost ? to
                                                            : nullptr;
  if (host != nullptr && !registered(host, bytes)) return copy_pageable(to, from, bytes, kind, *stream);
  submit(stream, [=] {
    if (!good_copy(to, from, bytes, kind)) return stick(cudaErrorIllegalAddress);
    land(to, from, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  ENTER("cudaHostRegister");
  std::lock_guard lock(world().mutex);
  world().host[static_cast<char*>(memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  std::lock_guard lock(world().mutex);
  return world().host.erase(static_cast<char*>(memory)) == 0 ? cudaErrorHostMemoryNotRegistered : cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
  ENTER("cudaStreamCreateWithPriority");
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;  // there are no others here
  *out = new Stream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capture) return cudaErrorStreamCaptureUnsupported;
  const auto point = std::make_shared<Point>();
  stream->push([point] { point->reach(); });
  point->wait();
  ENTER("cudaStreamSynchronize");
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ENTER("cudaStreamWaitEvent");
  std::lock_guard lock(event->mutex);
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return cudaErrorCapturedEvent;
    if (!stream->capture) {
      if (event->capture->origin == nullptr) return cudaErrorCapturedEvent;  // that capture is over
      stream->capture = event->capture;
      stream->capture->streams.push_back(stream);
      stream->frontier.clear();
    }
    for (const size_t node : event->frontier)
      if (std::find(stream->frontier.begin(), stream->frontier.end(), node) == stream->frontier.end())
        stream->frontier.push_back(node);
    return cudaSuccess;
  }
  if (stream->capture) return event->point ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  if (const auto point = event->point) stream->push([point] { point->wait(); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  ENTER("cudaLaunchHostFunc");
  submit(stream, [=] { function(user); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  ENTER("cudaEventCreateWithFlags");
  *out = new Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  ENTER("cudaEventRecordWithFlags");
  std::lock_guard lock(event->mutex);
  if (stream->capture && flags != cudaEventRecordExternal) {
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return cudaSuccess;
  }
  event->capture.reset();
  if (!stream->capture) {
    event->point = std::make_shared<Point>();
    stream->push([point = event->point] { point->reach(); });
    return cudaSuccess;
  }
  // A node of the graph: recorded anew in every run of it.
  const auto point = event->point = std::make_shared<Point>();
  stream->push([point] { point->reach(); });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  std::scoped_lock lock(begin->mutex, end->mutex);
  if (!begin->point || !end->point) return cudaErrorInvalidResourceHandle;
  if (!begin->point->reached || !end->point->reached) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->point->when - begin->point->when).count();
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  ENTER("cudaStreamBeginCapture");
  if (stream->capture) return cudaErrorStreamCaptureUnsupported;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->frontier.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  if (!stream->capture || stream->capture->origin != stream) return cudaErrorInvalidValue;
  const auto capture = std::exchange(stream->capture, nullptr);
  capture->origin = nullptr;
  for (Stream* other : capture->streams) other->capture.reset();
  *out = nullptr;
  ENTER("cudaStreamEndCapture");
  if (!joined(capture->graph, stream->frontier)) return cudaErrorStreamCaptureUnjoined;
  *out = new Graph(std::move(capture->graph));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  ENTER("cudaGraphInstantiate");
  *out = new Executable{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ENTER("cudaGraphLaunch");
  stream->push([graph = &executable->graph] { run_graph(*graph); });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
}
