// A program: a flat list of instructions over the queues of a device. Running one takes no decision and no memory.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/device/device.h"

namespace cairn::engine {

enum class Opcode : uint8_t { kLaunch, kCopy, kRecord, kWait, kBegin, kEnd };

// What `a` is, by opcode:
//   kLaunch         an index into Program::launches
//   kCopy           an index into Program::copies; one submission does the `count` copies that begin there
//   kRecord, kWait  an event; in CompiledPlan::beside_backward, -1 - v is the end of the last copy of problem value v
//   kBegin, kEnd    an index into Program::ranges: bytes of a tier come into use or fall free, for the memory ledger
struct Instruction {
  Opcode opcode;
  device::Lane lane;  // the queue that gets it
  int32_t a;
};

// In which of a step's micro-batches something is done: the first one overwrites what later ones add to.
enum class Micro : uint8_t { kAny, kFirst, kLater };

struct Launch {
  int32_t kernel;                          // CompiledPlan::kernels
  int32_t first_operand, inputs, outputs;  // Program::operands[first .. first + inputs + outputs)
  int64_t workspace_offset, workspace_bytes;
  Tier workspace_tier;
  uint32_t accumulates,
      first_writer;  // outputs as bits: it adds to them; it is the first of a step to write them
  Micro micro;
  bool deferred;       // it makes an update of the previous step
  uint32_t in_place;   // Call::in_place
  uint32_t random_op;  // RandomKey::op
  int32_t joint_op;    // the op, within the program's phase, for traces; -1 - v: a sum of the joint value v
  bool of_update;      // joint_op counts within the update phase, whatever the program's phase is
};

// A tensor in the device's arena, or in that of a tier that kernels reach. offset < 0: the operand is left out.
struct Operand {
  TensorDesc desc;
  int64_t offset = -1;
  Tier tier = Tier::kDevice;
  bool within = false;  // a part of a larger tensor: it is aligned to its elements only, not to kAlignment
};

struct CopyJob {
  Tier to, from;
  int64_t to_offset, from_offset, bytes;
  int32_t value;              // the problem value that moves; of several neighbours moved as one, the first
  int32_t count = 1;          // number of copies that an instruction does; set in its first copy
  Micro micro = Micro::kAny;  // in which micro-batches it is done
  // A run may leave out its deferred updates, or make nothing but them. Copies are done or left out with what they
  // serve.
  enum class Serves : uint8_t { kRest, kUpdates, kBoth };
  Serves serves = Serves::kRest;
};

struct Range {
  Tier tier;
  int64_t offset, bytes;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Launch> launches;
  std::vector<Operand> operands;
  std::vector<CopyJob> copies;
  std::vector<Range> ranges;
  int32_t events = 0;
  // Of a micro-batch in parts (graph::Part): the instruction that each begins with, and the end. Else empty.
  std::vector<int32_t> parts = {};
};

}  // namespace cairn::engine
