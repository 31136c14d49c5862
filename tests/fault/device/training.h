// Small runs from nothing to a digest, for failing calls: layers kept, on the host, on disk; optimizer state
// on disk under the smallest budget; updates inside the backward part; a checkpoint in the middle.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/step/stepper.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::test {

struct Kind {
  const char* name;
  std::vector<std::string> tiers;  // of the layers' activations, in turn; none: all are kept
  int layers;
  uint64_t micros;
  int threads;
  bool memory;          // the disk tier lies in memory, which is faster; else where temporary files do
  bool state = false;   // under the smallest budget, in bfloat16: optimizer state lives on the disk tier
  bool fused = false;   // updates inside the backward part, after every micro-batch
  bool saves = false;   // saves half-way, and in the end goes back there once more
  int64_t one_in = 60;  // of its points where that makes many, unless the campaign is a long one
};

// From nothing to a digest. What has been made stays when a call fails: the next try goes on with it.
class Training {
 public:
  // For a device as the kind's, which sessions open for themselves.
  static std::shared_ptr<const engine::CompiledPlan> plan(const Kind& kind);

  Training(const Kind& kind, std::shared_ptr<const engine::CompiledPlan> plan)
      : kind_(kind), plan_(std::move(plan)) {}

  // Opens, loads and trains, from wherever the last try ended. kIo: the disk is lost, and what lived there.
  std::string all();
  void close();                    // the session, not the device
  int64_t reserved_bytes() const;  // of all tiers of the device

 private:
  void load();
  void train();
  void feed(const char* name, uint64_t index);
  uint64_t done() const;  // micro-batches

  const Kind& kind_;
  const std::shared_ptr<const engine::CompiledPlan> plan_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<engine::Session> session_;
  std::unique_ptr<step::Stepper> stepper_;
  Scratch scratch_;
  bool saved_ = false, restored_ = false;
  std::string first_;  // digest at the end; empty: not there yet
};

}  // namespace cairn::test
