// What is known about seconds: a profile, measured on a machine, a model of a device that is not there, or the rates
// of the processor at hand.
// Plain values with a JSON form each (runtime/costs/README.md).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/costs/rates.h"
#include "runtime/plan/problem.h"

namespace cairn::costs {

// Seconds of one kind of op, by signature (op, operands as the kernel gets them, attributes).
struct OpCost {
  std::string op;     // "linear"
  std::string dtype;  // of its arithmetic: scaling by class needs it
  double median_seconds = 0;
  double spread_seconds = 0;    // interquartile range
  double modelled_seconds = 0;  // what the analytic model says, without the launch
  int64_t count = 0;            // samples
};

// Of several ways to compute an op that a backend has, the one to take (kernels::Signature::choice): with it,
// the bits of a run follow from the profile, and from no measurement of the run's own.
struct KernelChoice {
  std::string choice;
  double seconds = 0, own_seconds = 0;  // with it, and by the backend's own choice
  int64_t workspace_bytes = 0;
};

struct LinkCost {
  plan::Link link;                     // its capacity_bytes is 0: profiles have no capacities
  double stated_bytes_per_second = 0;  // throttle it was measured under; 0: none
};

struct Profile {
  Machine machine;
  double launch_seconds = 0;                    // from the end of one op to the begin of the next
  std::map<std::string, OpCost> ops;            // by signature
  std::vector<LinkCost> links;                  // at most one per tier and stated rate
  std::map<std::string, KernelChoice> choices;  // by signature, where not the backend's own

  const LinkCost* find_link(std::string_view tier, double stated) const;
  void set_link(LinkCost link);  // in place of the one with its tier and stated rate
};

struct DeviceModel {
  std::string name;
  std::vector<std::string> sources;  // of the numbers
  int64_t memory_bytes = 0;
  double f32_flops_per_second = 0, bf16_flops_per_second = 0, f16_flops_per_second = 0;
  double memory_bytes_per_second = 0;
  double launch_seconds = 0;
  // The rate at which the processors of the machine around the device stream through their memory; 0: not known, and nothing
  // is updated on the host.
  double host_memory_bytes_per_second = 0;
  // The device has memory of its own: offloading to the host frees device memory, and plans have no packed weights,
  // which are the CPU's.
  bool separate_memory = true;
  std::vector<plan::Link> links;  // capacity_bytes 0: not limited
  // The disk's rates for the processors around the device, which do not go over the device's own link; none: the same as the
  // device's.
  std::optional<plan::Link> host_disk = {};
};

// Where rates come from.
inline constexpr std::string_view kRatesMeasured = "measured", kRatesCached = "cached", kRatesFile = "file";
struct RateOrigin {
  std::string source;  // one of those words, or "model"
  std::string path;    // the file that holds them; "": none
  std::string notice;  // a warning: why they are not kept, or why a file with rates is not used
};

// What a plan's seconds come from: one of the three, or none where rates could not be measured.
struct Table {
  std::optional<Profile> profile;
  std::optional<DeviceModel> model;
  std::optional<Rates> rates;
  RateOrigin origin = {};  // of rates
};

// A profile or a device model, by its "format". kCorruptFile / kInvalidArgument naming the place.
Table from_json(std::string_view text);
std::string to_json(const Profile& profile);

}  // namespace cairn::costs
