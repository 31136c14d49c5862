// The planner's input, free of any tensor library (the JSON form is in runtime/plan/json/README.md). Bytes are exact;
// seconds come from the cost model. A problem is a plain value: build it, check() it, solve it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/policy.h"

namespace cairn::plan {

struct Value {
  std::string name;
  int64_t bytes = 0;
  bool persistent = false;  // on the device from start to end
  // Index into Problem::links: the value is in that tier at the beginning and has to be there at the end; -1: it
  // lives in no tier. With `persistent`: it is there, or on the device, all the time, as the plan chooses. An op with
  // the value among its inputs reads its present content, and needs it on the device. An op with the value among its
  // outputs changes it, in place if the op reads it, else by writing over all of it. Any number of ops may change it.
  // None of these ops runs again after that, nor does an op that read the value before such a change.
  int32_t home = -1;
  // What living in a tier costs besides the plan's copies, such as a slower update of the value between plans. It
  // counts where plans are compared, not in their seconds.
  double home_seconds = 0;
  // With `home` set: the content at the beginning is not used. One op changes the value, and writes over all of it.
  // If the plan keeps it on the device, it is there from that op to the end of the last op, and takes no memory
  // before.
  bool fresh = false;

  bool at_home() const { return home >= 0 && !persistent; }
  bool operator==(const Value&) const = default;
};

struct Op {
  std::string name;
  double seconds = 0;
  int64_t workspace_bytes = 0;
  std::vector<int32_t> inputs;   // indices into Problem::values
  std::vector<int32_t> outputs;  // each value is made by at most one op
  bool recomputable = true;
  int32_t region = -1;  // index into Problem::regions; -1: none

  bool operator==(const Op&) const = default;
};

// Regions nest: parent < index, or -1.
struct Region {
  std::string name;  // full path, "h0/attn"
  int32_t parent = -1;
  Policy policy = Policy::kPlannerDecides;
  int32_t offload_tier = -1;  // index into Problem::links, for Policy::kOffload; -1: the first

  bool operator==(const Region&) const = default;
};

struct Link {
  std::string tier;  // name of the tier: "host", "disk", ...
  double latency_seconds = 0;
  double out_bytes_per_second = 1;
  double in_bytes_per_second = 1;
  double both_ways_factor = 1;
  int64_t capacity_bytes = 0;
  // Where copies and kernels share memory or processors: the share of its speed that compute keeps while a copy is
  // under way on the link, and the share of its rate that a copy keeps while compute runs. 1: neither slows the
  // other.
  double busy_factor = 1;
  double busy_rate_factor = 1;

  bool competes() const { return busy_factor < 1 || busy_rate_factor < 1; }

  bool operator==(const Link&) const = default;
};

struct Problem {
  std::vector<Value> values;
  std::vector<Op> ops;         // in execution order
  int32_t backward_begin = 0;  // ops from here on are the backward part
  std::vector<Region> regions;
  std::vector<Link> links;
  int64_t budget_bytes = 0;

  int64_t persistent_bytes() const;
  double op_seconds() const;  // of all ops, each once
};

// kInvalidArgument naming the place: indices out of range, names twice, a value made twice or read before it
// is made, negative or non-finite numbers, sums that overflow.
void check(const Problem&);

}  // namespace cairn::plan
