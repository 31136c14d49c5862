/* Chapter 2: the host's own memory and log, and the devices of this machine. */
#include <stdatomic.h>

#include "example.h"

/* Called from any thread. */
static atomic_llong bytes_held;

static void* take(void* user, size_t bytes, size_t alignment) {
  (void)user;
  void* block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block != NULL) atomic_fetch_add(&bytes_held, (long long)bytes);
  return block;
}
static void give(void* user, void* block, size_t bytes, size_t alignment) {
  (void)user, (void)alignment;
  free(block);
  atomic_fetch_sub(&bytes_held, (long long)bytes);
}
static void tell(void* user, int32_t level, const char* message) {
  (void)user;
  fprintf(stderr, "%s: %s\n", level == CAIRN_LOG_WARNING ? "warning" : "info", message);
}

int main(void) {
  error = cairn_error_create();
  printf("cairn %s\n", cairn_version());

  cairn_allocator_t allocator = CAIRN_ALLOCATOR_INIT;
  allocator.allocate = take;
  allocator.release = give;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.allocator = &allocator;
  options.log = tell;
  cairn_instance_t* instance = NULL;
  CHECK(cairn_instance_create(&options, &instance, error));

  cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
  for (size_t i = 0; cairn_instance_device(instance, i, &info, error) == CAIRN_STATUS_OK; ++i)
    printf("%-10s %s, %u threads, %.1f GiB\n", info.name, info.description, info.threads,
           (double)info.memory_bytes / (1 << 30));

  cairn_device_options_t device_options = CAIRN_DEVICE_OPTIONS_INIT;
  device_options.threads = 1;
  cairn_device_t* device = NULL;
  CHECK(cairn_device_open(instance, "cpu", &device_options, &device, error));

  /* Handles keep what they need: any order of releases is right. */
  cairn_instance_release(instance);
  cairn_device_release(device);
  EXPECT(atomic_load(&bytes_held) == 0);
  cairn_error_release(error);
  return 0;
}
