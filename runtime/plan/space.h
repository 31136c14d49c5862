// The plans this solver considers. A Candidate is a point in a small space of families; choices() turns it
// into a choice per value. The list does not depend on the budget, so a larger budget never makes a plan
// slower.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/schedule.h"

namespace cairn::plan {

// Explicit region policies hold in every candidate; the rest applies to values the planner decides about.
struct Candidate {
  int32_t cheap = 0;      // that many ops are run again, in order of seconds per byte freed
  int32_t partition = 0;  // which cut of the forward ops into units
  int32_t group = 1;      // so many units are run again as one
  int32_t groups = 0;     // the first so many groups keep only what other groups read
  int32_t offload = 0;    // that many values leave over the links, the earliest made first
  Pace pace;
};

class Space {
 public:
  Space(const Problem&, const Index&);

  Choices choices(const Candidate&) const;
  std::vector<Candidate> grid() const;
  int32_t group_count(const Candidate& c) const {
    return (partitions_[c.partition].units + c.group - 1) / c.group;
  }
  // Whether the grid is fine enough for the problem's size; else a search between its points pays.
  bool fine() const { return p_.ops.size() <= 400; }
  // What an explicit policy says about a value; kPlannerDecides if none.
  Policy policy(int32_t value) const { return policy_[value]; }

 private:
  // Ops by unit. A value is inside a group if its maker and all its forward readers are: low..high are their
  // units.
  struct Partition {
    int32_t units = 0;
    std::vector<int32_t> low, high;  // per value; low -1: outside of all units
  };

  void obey_policies();
  void add_partition(const std::vector<int32_t>& unit_of_op, int32_t units);
  void partition_by_region();
  void order_cheap();
  void order_offload();
  bool is_free(int32_t v) const { return free_[v]; }

  const Problem& p_;
  const Index& index_;
  std::vector<Policy> policy_;
  std::vector<uint8_t> free_;  // the planner decides, and the value can matter after the turnaround
  Choices fixed_;
  std::vector<Partition> partitions_;
  std::vector<int32_t> cheap_;  // ops
  struct Offload {
    int32_t value;
    Choice link;
  };
  std::vector<Offload> offload_;
  int32_t hidden_ = 0;  // the first so many of offload_ can leave during forward
};

}  // namespace cairn::plan
