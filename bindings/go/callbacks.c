// Functions that the library calls, which call Go's.
#include <string.h>

#include "_cgo_export.h"
#include "shim.h"

static void tell(void* user, int32_t level, const char* message) {
  cairnGoLog((uintptr_t)user, level, (char*)message);
}
static void* allocate(void* user, size_t bytes, size_t alignment) {
  return cairnGoAllocate((uintptr_t)user, bytes, alignment);
}
static void give_back(void* user, void* block, size_t bytes, size_t alignment) {
  cairnGoRelease((uintptr_t)user, block, bytes, alignment);
}

cairn_status_t cairn_go_instance_create(uintptr_t log, uintptr_t allocator, cairn_instance_t** out_instance,
                                        cairn_error_t* error) {
  cairn_allocator_t memory = CAIRN_ALLOCATOR_INIT;
  memory.user = (void*)allocator;
  memory.allocate = allocate;
  memory.release = give_back;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  if (allocator != 0) options.allocator = &memory;
  if (log != 0) options.log = tell;
  options.log_user = (void*)log;
  return cairn_instance_create(&options, out_instance, error);
}

static int32_t shape(void* user, const cairn_tensor_t* in, cairn_tensor_t* out) {
  return cairnGoShape((uintptr_t)user, (cairn_tensor_t*)in, out);
}
static int64_t workspace_bytes(void* user, const cairn_tensor_t* in) {
  return cairnGoWorkspace((uintptr_t)user, (cairn_tensor_t*)in);
}
static int32_t forward(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
  return cairnGoForward((uintptr_t)user, (cairn_tensor_t*)in, (cairn_tensor_t*)out, workspace);
}
static int32_t backward(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
  return cairnGoBackward((uintptr_t)user, (cairn_tensor_t*)in, (cairn_tensor_t*)out, workspace);
}

// Why the callback that just ended on this thread failed; the library copies it at once.
static _Thread_local char failure[4096];

size_t cairn_go_keep_failure(const char* words) {
  size_t length = 0;
  while (length + 1 < sizeof failure && words[length] != '\0') ++length;
  memcpy(failure, words, length);
  failure[length] = '\0';
  return length;
}
static const char* failure_words(void* user) {
  (void)user;
  return failure;
}

cairn_status_t cairn_go_custom_op(cairn_graph_t* graph, const char* name, uint32_t inputs, uint32_t outputs,
                                  uint32_t recomputable, uint32_t has_workspace, uint32_t has_backward,
                                  uintptr_t user, cairn_error_t* error) {
  cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
  op.name = name;
  op.inputs = inputs;
  op.outputs = outputs;
  op.recomputable = recomputable;
  op.user = (void*)user;
  op.shape = shape;
  op.workspace_bytes = has_workspace ? workspace_bytes : NULL;
  op.forward = forward;
  op.backward = has_backward ? backward : NULL;
  op.failure_words = failure_words;
  return cairn_graph_custom_op(graph, &op, error);
}
