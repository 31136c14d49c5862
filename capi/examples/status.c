/* Chapter 1: a call that fails, and what it tells. */
#include <string.h>

#include "example.h"

int main(void) {
  error = cairn_error_create();
  EXPECT(error != NULL && cairn_error_status(error) == CAIRN_STATUS_OK);

  cairn_instance_t* instance = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));

  cairn_device_t* device = NULL;
  const cairn_status_t status = cairn_device_open(instance, "abacus", NULL, &device, error);
  printf("%s: %s\n", cairn_status_name(status), cairn_error_message(error));
  EXPECT(status == CAIRN_STATUS_NOT_FOUND && cairn_error_status(error) == status);
  EXPECT(device == NULL);                                    /* out params are untouched */
  EXPECT(strstr(cairn_error_message(error), "cpu") != NULL); /* the message lists what there is */

  /* Only failures about memory come with numbers. */
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  EXPECT(cairn_error_memory_fault(error, &fault) == CAIRN_STATUS_NOT_FOUND);

  /* The error object may be left out. */
  EXPECT(cairn_device_open(instance, "abacus", NULL, &device, NULL) == CAIRN_STATUS_NOT_FOUND);

  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
