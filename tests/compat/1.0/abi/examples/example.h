/* What the examples share: stop with the message of the library when a call fails. */
#ifndef CAIRN_EXAMPLE_H_
#define CAIRN_EXAMPLE_H_

#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"

static cairn_error_t* error; /* made by main */

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cairn_status_t status_ = (call);                                                 \
    if (status_ != CAIRN_STATUS_OK) {                                                      \
      fprintf(stderr, "%s: %s\n", cairn_status_name(status_), cairn_error_message(error)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

/* What an example claims about itself. */
#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#endif /* CAIRN_EXAMPLE_H_ */
