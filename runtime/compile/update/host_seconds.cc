#include "runtime/compile/update/host_seconds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/update/host_updates.h"
#include "runtime/compile/update/streamed.h"
#include "runtime/compile/update/traffic.h"
#include "runtime/plan/residency/traffic.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// Steps of the share of updates to defer: first over all shares, then around the best one.
constexpr double kDeferredStep = 1.0 / 16, kFineDeferredStep = 1.0 / 64;

double bytes_of(const Lowered& plan, int32_t value) {
  return static_cast<double>(stored_bytes(*plan.joint, value));
}
bool on_disk(const Lowered& plan, int32_t value) {
  return plan.host_disk && plan.where(value, Point::kHostUpdate).tier == Tier::kDisk;
}

// Bytes through the host's memory, and to and from the disk.
struct HostWork {
  double memory = 0, read = 0, written = 0;
  void read_from_disk(double bytes) {
    read += bytes;
    memory += bytes;
  }
  void write_to_disk(double bytes) {
    written += bytes;
    memory += bytes;
  }
};

// 0: the rates are not known.
double seconds_of(const Lowered& plan, const HostWork& work) {
  const double rate = plan.host_memory_bytes_per_second, memory = rate > 0 ? work.memory / rate : 0;
  if (!plan.host_disk || work.read + work.written == 0) return memory;
  const plan::Link& disk = *plan.host_disk;
  const double piece = static_cast<double>(std::max<int64_t>(host_piece_bytes(plan), 1));
  const auto way = [&](double bytes, double each) {
    return bytes / each + std::ceil(bytes / piece) * disk.latency_seconds;
  };
  return std::max(memory,
                  plan::seconds_of_both(way(work.written, disk.out_bytes_per_second),
                                        way(work.read, disk.in_bytes_per_second), disk.both_ways_factor));
}

// The work of one update alone.
HostWork work_of(const Lowered& plan, const JointOp& update) {
  HostWork work{query_of(*plan.joint, update).work.bytes};
  const std::vector<int32_t> made = made_on_host(plan, update);
  for (size_t k = 1; k < made.size(); ++k) work.memory += bytes_of(plan, made[k]);
  std::vector<int32_t> changed = {made[0]};
  const std::span<const int32_t> states = states_of(update);
  changed.insert(changed.end(), states.begin(), states.end());
  std::vector<int32_t> read = changed;
  read.push_back(update.in[update_op::kGrad]);
  changed.insert(changed.end(), made.begin() + 1, made.end());
  for (const int32_t v : read)
    if (on_disk(plan, v)) work.read_from_disk(bytes_of(plan, v));
  for (const int32_t v : changed)
    if (on_disk(plan, v)) work.write_to_disk(bytes_of(plan, v));
  return work;
}
// The work of an update and of the copies of what it makes; concurrently with backward, also of the copy of its
// gradient.
HostWork work_beside_copy(const Lowered& plan, const JointOp& update) {
  HostWork work = work_of(plan, update);
  if (plan.updates_beside_backward()) {
    const int32_t gradient = update.in[update_op::kGrad];
    work.memory += bytes_of(plan, gradient);
    if (on_disk(plan, gradient)) work.write_to_disk(bytes_of(plan, gradient));
  }
  for (const int32_t v : made_on_host(plan, update)) {
    if (plan.problem_value[at(v)] < 0) continue;
    work.memory += bytes_of(plan, v);
    if (on_disk(plan, v)) work.read_from_disk(bytes_of(plan, v));
  }
  return work;
}
double seconds_beside_copy(const Lowered& plan, const JointOp& update) {
  return seconds_of(plan, work_beside_copy(plan, update));
}

// The seconds for which copies of the device's own updates occupy the host's memory and the disk. stays: of the bytes
// that may be kept on the device, so many are.
double device_copies_seconds(const Lowered& plan, double stays) {
  HostWork work;
  double stays_in = stays, stays_out = stays;
  for (const auto& [value, crossing] : update_crossings(plan)) {
    const bool home = !plan.offloaded.contains(value), disk = on_disk(plan, value);
    const auto crossed = [&](int64_t bytes, double& room) {
      const double stay = home ? std::min(room, static_cast<double>(bytes)) : 0;
      room -= stay;
      return static_cast<double>(bytes) - stay;
    };
    const double in = crossed(crossing.in, stays_in), out = crossed(crossing.out, stays_out);
    if (disk || plan.link_tier[at(crossing.link)] == Tier::kHost) work.memory += in + out;
    if (!disk) continue;
    work.read_from_disk(in);
    work.write_to_disk(out);
  }
  return seconds_of(plan, work);
}

// The seconds of the disk that forward takes, other than for first copies of what updates on the host make.
double forward_disk_seconds(const Planned& plan) {
  if (!plan.streams_on_host()) return 0;
  const size_t disk = link_to(plan, Tier::kDisk);
  std::vector<uint8_t> counted(plan.problem.values.size());
  each_on_host(plan, [&](const JointOp& update) {
    for (const int32_t v : made_on_host(plan, update))
      if (plan.problem_value[at(v)] >= 0) counted[at(plan.problem_value[at(v)])] = 1;
  });
  HostWork work;
  for (const plan::Step& step : plan.plan.steps) {
    if (step.kind == plan::StepKind::kRun && step.index >= plan.problem.backward_begin) break;
    if ((step.kind != plan::StepKind::kIn && step.kind != plan::StepKind::kOut) || at(step.tier) != disk)
      continue;
    const auto bytes = static_cast<double>(plan.problem.values[at(step.index)].bytes);
    if (step.kind == plan::StepKind::kOut) work.write_to_disk(bytes);
    if (step.kind == plan::StepKind::kIn && !std::exchange(counted[at(step.index)], uint8_t{0}))
      work.read_from_disk(bytes);
  }
  return seconds_of(plan, work);
}

// By how much a run takes longer than planned, with its deferred updates and those concurrent with backward.
double wait_beside_backward(const Planned& plan, double plan_seconds) {
  std::vector<double> ready(plan.problem.values.size(), 0);
  double now = forward_disk_seconds(plan);
  for (const int32_t i : host_update_order(plan, true)) {
    const JointOp& update = plan.joint->ops(graph::kUpdate)[at(i)];
    now += seconds_beside_copy(plan, update);
    for (const int32_t v : copied_by_host_update(plan, update)) ready[at(v)] = now;
  }
  const plan::Timeline line = plan::simulate(plan.problem, plan.plan, ready);
  std::vector<double> copied(plan.problem.values.size(),
                             0);  // problem value -> seconds, at the end of its last copy
  for (size_t s = 0; s < plan.plan.steps.size(); ++s) {
    const plan::Step& step = plan.plan.steps[s];
    if (step.kind == plan::StepKind::kIn || step.kind == plan::StepKind::kOut)
      copied[at(step.index)] = line.step_span[s][1];
  }
  for (const int32_t i : host_update_order(plan, false)) {
    const JointOp& update = plan.joint->ops(graph::kUpdate)[at(i)];
    for (const int32_t v : copied_by_host_update(plan, update)) now = std::max(now, copied[at(v)]);
    now += seconds_beside_copy(plan, update);
  }
  return std::max(now, line.seconds) - plan_seconds;
}

}  // namespace

double least_seconds_with_host_updates(const Lowered& plan) {
  if (plan.host_updated.empty()) return 0;
  // Each run makes all updates once.
  if (plan.updates_beside_backward()) return host_seconds(plan);
  const plan::Problem& problem = plan.problem;
  const size_t count = problem.values.size();
  double updates = device_copies_seconds(plan, static_cast<double>(problem.budget_bytes));
  std::vector<uint8_t> is_weight(count), must_leave(count), is_changed(count);
  each_on_host(plan, [&](const JointOp& update) {
    updates += seconds_beside_copy(plan, update);  // none of these values is kept on the device
    for (const int32_t v : made_on_host(plan, update))
      if (plan.problem_value[at(v)] >= 0) is_weight[at(plan.problem_value[at(v)])] = 1;
    must_leave[at(plan.problem_value[at(update.in[update_op::kGrad])])] = 1;
  });
  const std::vector<size_t> first = first_readers(problem);
  for (const plan::Op& op : problem.ops)
    for (const int32_t v : op.outputs) is_changed[at(v)] = 1;
  // The seconds from an op on: of its and all later ops, or of their copies. What they change is sent back, and what
  // they only read is fetched, but for as many bytes as the device can hold.
  struct Moved {
    double leaves = 0, may_stay = 0, in = 0;
  };
  std::vector<Moved> moved(problem.links.size());
  std::vector<double> rest(problem.ops.size() + 1, 0);
  const auto room = static_cast<double>(problem.budget_bytes);
  double ops = 0;
  std::vector<uint8_t> is_counted(count);
  const auto each_new = [&](const std::vector<int32_t>& values, bool changed, const auto& visit) {
    for (const int32_t v : values)
      if (problem.values[at(v)].at_home() && (is_changed[at(v)] != 0) == changed &&
          !std::exchange(is_counted[at(v)], uint8_t{1}))
        visit(v, moved[at(problem.values[at(v)].home)], static_cast<double>(problem.values[at(v)].bytes));
  };
  for (size_t o = problem.ops.size(); o-- > 0;) {
    ops += problem.ops[o].seconds;
    each_new(problem.ops[o].outputs, true, [&](int32_t v, Moved& of, double bytes) {
      (must_leave[at(v)] ? of.leaves : of.may_stay) += bytes;
    });
    each_new(problem.ops[o].inputs, false, [&](int32_t, Moved& of, double bytes) { of.in += bytes; });
    rest[o] = ops;
    for (size_t l = 0; l < moved.size(); ++l) {
      const plan::Link& link = problem.links[l];
      const double out = moved[l].leaves + std::max(0.0, moved[l].may_stay - room);
      rest[o] = std::max(rest[o],
                         plan::seconds_of_both(out / link.out_bytes_per_second,
                                               std::max(0.0, moved[l].in - room) / link.in_bytes_per_second,
                                               link.both_ways_factor));
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < count; ++v)
    if (is_weight[v])
      least = std::min(least, static_cast<double>(problem.values[v].bytes) /
                                      problem.links[at(problem.values[v].home)].in_bytes_per_second +
                                  rest[first[v]]);
  return updates + least;
}

std::vector<double> earliest_with_host_updates(const Lowered& plan) {
  const plan::Problem& problem = plan.problem;
  std::vector<double> earliest(problem.ops.size(), 0);
  if (plan.updates_beside_backward()) return earliest;
  const std::vector<size_t> first = first_readers(problem);
  each_on_host(plan, [&](const JointOp& update) {
    size_t op = problem.ops.size();
    for (const int32_t v : made_on_host(plan, update))
      if (plan.problem_value[at(v)] >= 0) op = std::min(op, first[at(plan.problem_value[at(v)])]);
    if (op < problem.ops.size()) earliest[op] += seconds_beside_copy(plan, update);
  });
  double all = device_copies_seconds(plan, static_cast<double>(problem.budget_bytes));
  for (double& op : earliest) op = all += op;
  return earliest;
}

double host_seconds(const Lowered& plan) {
  double seconds = 0;
  each_on_host(plan, [&](const JointOp& update) { seconds += seconds_beside_copy(plan, update); });
  return seconds;
}

double wait_saved_on_device(const Lowered& plan) {
  struct Moved {
    double in = 0, out = 0;
  };
  std::map<Tier, Moved> moved;
  HostWork work;
  each_on_host(plan, [&](const JointOp& update) {
    std::vector<int32_t> changed = {update.out[update_op::kParameter]};
    const std::span<const int32_t> states = states_of(update);
    changed.insert(changed.end(), states.begin(), states.end());
    const auto move = [&](int32_t value, bool out) {
      const double bytes = bytes_of(plan, value);
      Moved& of = moved[on_disk(plan, value) ? Tier::kDisk : Tier::kHost];
      of.in += bytes;
      work.memory += bytes;
      if (on_disk(plan, value)) work.read_from_disk(bytes);
      if (!out) return;
      of.out += bytes;
      work.memory += bytes;
      if (on_disk(plan, value)) work.write_to_disk(bytes);
    };
    for (const int32_t v : changed) move(v, true);
    move(update.in[update_op::kGrad], false);
  });
  double on_device = 0;
  for (const auto& [tier, of] : moved) {
    const plan::Link& link = plan.problem.links[link_to(plan, tier)];
    on_device += plan::seconds_of_both(of.out / link.out_bytes_per_second, of.in / link.in_bytes_per_second,
                                       link.both_ways_factor);
  }
  return host_seconds(plan) + std::max(0.0, on_device - seconds_of(plan, work));
}

double host_wait_seconds(const Planned& plan, double device_seconds) {
  if (plan.host_updated.empty()) return 0;
  const plan::Timeline line = plan::simulate(plan.problem, plan.plan);
  if (plan.updates_beside_backward()) return wait_beside_backward(plan, line.seconds);
  // problem value -> seconds, at the begin of its first copy
  std::vector<double> fetched(plan.problem.values.size(), -1);
  for (size_t s = 0; s < plan.plan.steps.size(); ++s) {
    const plan::Step& step = plan.plan.steps[s];
    if (step.kind == plan::StepKind::kIn && fetched[at(step.index)] < 0)
      fetched[at(step.index)] = line.step_span[s][0];
  }
  double now = device_copies_seconds(plan, 0) + forward_disk_seconds(plan) - device_seconds;
  double latest = -std::numeric_limits<double>::infinity();
  std::vector<double> ready(plan.problem.values.size(), 0);
  for (const int32_t i : host_update_order(plan, true)) {
    const JointOp& update = plan.joint->ops(graph::kUpdate)[at(i)];
    now += seconds_beside_copy(plan, update);
    for (const int32_t v : made_on_host(plan, update))
      if (const int32_t stored = plan.problem_value[at(v)]; stored >= 0) {
        ready[at(stored)] = now;
        latest = std::max(latest, now - fetched[at(stored)]);
      }
  }
  if (latest <= 0) return latest;
  return std::max(0.0, plan::simulate(plan.problem, plan.plan, ready).seconds - line.seconds);
}

double host_rest_seconds(const Planned& plan) {
  if (!plan.updates_beside_backward()) return 0;
  return std::max(0.0, plan::simulate(plan.problem, plan.plan).seconds - host_seconds(plan));
}

std::set<int32_t> choose_deferred(const Planned& from) {
  if (!from.updates_beside_backward()) return from.host_deferred;
  Planned plan = from;
  plan.host_deferred.clear();
  const double plan_seconds = plan::simulate(plan.problem, plan.plan).seconds;
  // Spread evenly, by their seconds: the host then has work all through backward, and forward waits for nothing.
  std::vector<std::pair<int32_t, double>> all;  // weight
  for (const int32_t i : host_update_order(plan, false)) {
    const JointOp& update = plan.joint->ops(graph::kUpdate)[at(i)];
    all.emplace_back(update.out[update_op::kParameter], seconds_beside_copy(plan, update));
  }
  const auto wait = [&](double share) {
    plan.host_deferred.clear();
    double passed = 0, deferred = 0;
    for (const auto& [weight, seconds] : all) {
      passed += seconds;
      if (deferred + seconds / 2 > share * passed) continue;
      deferred += seconds;
      plan.host_deferred.insert(weight);
    }
    return wait_beside_backward(plan, plan_seconds);
  };
  double best = 0, least = wait(0);
  const auto look_at = [&](double share) {
    if (!(least > 0) || share < 0 || share > 1) return;
    const double now = wait(share);
    if (now >= least) return;
    least = now;
    best = share;
  };
  for (double share = kDeferredStep; share <= 1; share += kDeferredStep) look_at(share);
  const double middle = best;
  for (double off = kFineDeferredStep; off < kDeferredStep; off += kFineDeferredStep)
    for (const double way : {-1, 1}) look_at(middle + way * off);
  wait(best);
  return plan.host_deferred;
}

double device_update_seconds(const Lowered& plan, const costs::Model& costs) {
  double seconds = 0;
  each_on_host(
      plan, [&](const JointOp& update) { seconds += costs.seconds(query_of(*plan.joint, update)).seconds; });
  return seconds;
}

}  // namespace cairn::engine
