// A heap that fails on demand. malloc and its kin are defined in this program, so every allocation of every
// library in it comes through here, from whatever thread.
#pragma once

namespace heap {

enum class Failing {
  kOne,   // one allocation fails, the next ones succeed
  kRest,  // that one and all later ones fail, until the heap is whole again
};

// What became of a call.
struct Outcome {
  long failed_at = -1;  // number of the allocation that failed first; -1: none
  long calls = 0;       // allocations asked for
};

// From here on allocation number `at` fails (counted from 0, over all threads); -1: none.
void arm(long at, Failing failing);
Outcome disarm();

// Blocks that were given out and not taken back.
long live();

}  // namespace heap
