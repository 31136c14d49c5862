// Seconds of an op or a link: measured where the profile has its signature, else modelled.
//   modelled:  max(FLOPs / rate, bytes / memory rate)                        (a roofline)
//   scaled:    modelled * (measured / modelled seconds of the profile's ops of the same class, summed)
// A class is an op with the dtype of its arithmetic; ops of a class that the profile lacks take the ratio of
// all. With rates, the ratio is that of the class at the op's modelled seconds, between the sizes measured; a class
// that they lack takes that of the op in another dtype, or of a product or an addition, by what the op is bound by. Of a
// GPU, whose ops take some time to begin, seconds are on the line between the sizes measured.
// Every op pays launch_seconds on top.
#pragma once
#include <map>
#include <memory>

#include "runtime/costs/table.h"
#include "runtime/device/device.h"
#include "runtime/ops/ops.h"

namespace cairn::costs {

Machine machine_of(const device::DeviceInfo& info);

struct Query {
  std::string_view op;
  DType dtype = DType::kF32;  // of the arithmetic: bf16 as soon as one operand is
  ops::Work work;
  std::string signature;
};

struct Answer {
  double seconds = 0;  // launch included
  bool measured = false;
};

// Ops that are no rows of the op table, for what a step does around its plan.
inline constexpr std::string_view kOptimizerOp = "optimizer";  // norm and update, once per step
inline constexpr std::string_view kHostOp = "host";            // inputs in, loss out, once per micro-batch

// What long products and streams through memory come to.
struct Sustained {
  double f32_flops_per_second = 0, bf16_flops_per_second = 0, memory_bytes_per_second = 0;
};

class Model {
 public:
  // table: nullptr for the device's own rates.
  Model(const device::DeviceInfo& info, std::shared_ptr<const Table> table);

  double modelled(const ops::Work& work, DType dtype) const;  // no launch
  Answer seconds(const Query& query) const;
  double launch_seconds() const { return launch_seconds_; }
  Sustained sustained() const;
  // capacity_bytes of the host tier follows from the machine's memory; of the disk tier it is `disk_bytes`.
  // stated: rate that the host link is throttled to, 0: none.
  plan::Link host_link(double stated) const;
  // probed: what the disk's own probe found, which a table's link goes before; nullptr: nothing is known.
  plan::Link disk_link(int64_t disk_bytes, const plan::Link* probed = nullptr) const;
  bool knows_disk() const;  // the table has its link
  // The disk as the host reads and writes it, where this is the device's link to it. probed: as above.
  plan::Link host_disk_link(const plan::Link& disk, const plan::Link* probed) const;

 private:
  struct Ratio {
    double modelled_seconds, ratio;
  };
  static void sort(std::vector<Ratio>& list);
  double ratio(const Query& query, double modelled) const;
  static double on_line(const std::vector<Ratio>& list, double modelled);  // seconds
  const std::vector<Ratio>* rates_of(const Query& query) const;            // nullptr: there are none for it
  plan::Link measured_link(plan::Link otherwise, double stated) const;

  std::shared_ptr<const Table> table_;
  double f32_ = 0, bf16_ = 0, f16_ = 0, memory_ = 0, launch_seconds_ = 0;
  double link_ = 0;        // bytes per second to and from the host where nothing is stated or measured
  bool separate_ = false;  // its directions share no memory
  int64_t host_bytes_ = 0;
  std::map<std::string, double, std::less<>> ratios_;             // by class; "" for all
  std::map<std::string, std::vector<Ratio>, std::less<>> rates_;  // by class, ascending
};

}  // namespace cairn::costs
