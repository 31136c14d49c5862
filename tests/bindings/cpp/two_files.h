// For a file that is compiled twice into one program, each time in another way: MAIN in one of them, in both SECOND, the name of the
// other's function. `int THIS_FILE()` does the file's part, and ends with second_file().
#pragma once
#include "check.h"

int SECOND();
#if defined(MAIN)
#define THIS_FILE main
#else
#define THIS_FILE SECOND
#endif

// The exit code; of main() with the other file's.
static int second_file() {
#if defined(MAIN)
  CHECK(SECOND() == 0);
#endif
  return check::failed == 0 ? 0 : 1;
}
