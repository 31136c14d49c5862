// Chapter 4: what a plan is made with.
#ifndef CAIRN_CPP_PLAN_OPTIONS_HPP_
#define CAIRN_CPP_PLAN_OPTIONS_HPP_

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "instance.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

class Plan;
class Session;

// Seconds of ops and links that plans are made with. Calls that measure run for seconds: nothing else should.
class Costs : public detail::Handle<cairn_costs_t, cairn_costs_retain, cairn_costs_release> {
 public:
  using Handle::Handle;
  // An empty profile of a device, to be filled.
  static Outcome<Costs> create(const Device& device) {
    return detail::make<Costs>(
        {}, [&](auto* out, auto* error) { return cairn_costs_create(device.get(), out, error); });
  }
  // A profile or the model of a device. errors: CORRUPT_FILE (not JSON, another format).
  static Outcome<Costs> read(const Instance& instance, std::string_view json) {
    return detail::make<Costs>({}, [&](auto* out, auto* error) {
      return cairn_costs_read(instance.get(), json.data(), json.size(), out, error);
    });
  }
  // Copies to and from a tier. errors of all that fills a profile: WRONG_STATE (a device model); IO (disk tier).
  Outcome<void> measure_link(const Device& device, uint32_t tier) {
    return detail::call(
        {}, [&](auto* error) { return cairn_costs_measure_link(handle_, device.get(), tier, error); });
  }
  // What the kernels of a plan's ops have to choose from; returns how many ops were timed.
  inline Outcome<uint64_t> measure_kernels(const Plan& plan, const Device& device);
  // The session's last traced run; of its step, seconds as the caller saw them and as its report says, 0: not known.
  inline Outcome<void> add_run(const Session& session, double step_seconds = 0, double optimizer_seconds = 0);
  // errors: WRONG_STATE (a device model). threads: const.
  Outcome<std::string> json() const {
    return detail::make_text({},
                             [&](auto* out, auto* error) { return cairn_costs_json(handle_, out, error); });
  }
};

namespace detail {

// Texts, hyper-parameters by name, as cairn.h takes them: "" is a text, nullopt is NULL.
inline const char* c_str(const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; }
struct Hyper {
  std::optional<std::string> group;
  std::string name;
  double value;
};
inline std::vector<cairn_hyper_t> raw(const std::vector<Hyper>& hypers) {
  std::vector<cairn_hyper_t> raw;
  for (const Hyper& hyper : hypers) raw.push_back({c_str(hyper.group), hyper.name.c_str(), hyper.value});
  return raw;
}

}  // namespace detail

// As cairn_plan_options_t, which says what each means and what is the default; it holds the texts it is given.
//   PlanOptions().budget_bytes(1 << 30).optimizer("sgd").hyper("momentum", 0.9).group("*.bias").hyper("weight_decay", 0, "*.bias")
class PlanOptions {
 public:
  PlanOptions& budget_bytes(uint64_t bytes) { return set(raw_.budget_bytes, bytes); }
  PlanOptions& budget_share(double share) { return set(raw_.budget_share, share); }
  PlanOptions& smallest_budget(bool yes = true) { return set(raw_.smallest_budget, yes ? 1u : 0u); }
  PlanOptions& link_bytes_per_second(double rate) { return set(raw_.link_bytes_per_second, rate); }
  PlanOptions& amp(uint32_t mode) { return set(raw_.amp, mode); }  // CAIRN_AMP_*
  PlanOptions& parameters(uint32_t dtype) { return set(raw_.parameters, dtype); }
  // Parameters whose names match are stored so instead; of several that match, the last counts.
  PlanOptions& format(std::string pattern, std::string format) {
    formats_.push_back({std::move(pattern), std::move(format)});
    return *this;
  }
  PlanOptions& no_optimizer(bool yes = true) { return set(raw_.no_optimizer, yes ? 1u : 0u); }
  PlanOptions& policy(uint32_t policy) { return set(raw_.policy, policy); }  // CAIRN_REGION_*
  // Regions whose paths match have this policy instead of their own; of several that match, the last counts. tier:
  // with OFFLOAD: CAIRN_TIER_*; 0: the first.
  PlanOptions& region(std::string pattern, uint32_t policy, uint32_t tier = 0) {
    regions_.push_back({std::move(pattern), policy, tier});
    return *this;
  }
  PlanOptions& micro_steps(uint32_t count) { return set(raw_.micro_steps, count); }
  PlanOptions& fuse_update(bool yes = true) { return set(raw_.fuse_update, yes ? 1u : 0u); }
  // The decay of an average of every trained parameter, "PARAMETER/ema"; 0: none.
  PlanOptions& ema(double decay) { return set(raw_.ema, decay); }
  // Where offloading may go, first choice first: CAIRN_TIER_*, at most four.
  PlanOptions& tiers(Span<const uint32_t> tiers) {
    raw_.tier_count = static_cast<uint32_t>(tiers.size());
    for (size_t i = 0; i < std::min<size_t>(tiers.size(), 4); ++i) raw_.tiers[i] = tiers[i];
    return *this;
  }
  // force: also a profile of another machine.
  PlanOptions& costs(Costs costs, bool force = false) {
    costs_ = std::move(costs);
    return set(raw_.force_costs, force ? 1u : 0u);
  }
  PlanOptions& optimizer(std::string name) {
    optimizer_ = std::move(name);
    return *this;
  }
  // Parameters whose names match a pattern, as a group of their own, with an optimizer of their own where one is named.
  PlanOptions& group(std::string pattern, std::optional<std::string> optimizer = std::nullopt) {
    groups_.push_back({std::move(pattern), std::move(optimizer)});
    return *this;
  }
  // group: nullopt: of all that have it; "": of the parameters that no group names.
  PlanOptions& hyper(std::string name, double value, std::optional<std::string> group = std::nullopt) {
    hypers_.push_back({std::move(group), std::move(name), value});
    return *this;
  }
  // Ops of that name and region (nullopt: any) have another class: "half", "full", "follow", "default".
  PlanOptions& amp_rule(std::string amp_class, std::optional<std::string> op,
                        std::optional<std::string> region = std::nullopt) {
    rules_.push_back({std::move(amp_class), std::move(op), std::move(region)});
    return *this;
  }

  // Gives call() the options for cairn.h, which point into this object and into what lives as long as the call.
  template <class Call>
  auto with_raw(const Call& call) const {
    cairn_plan_options_t raw = raw_;
    std::vector<cairn_parameter_group_t> groups;
    for (const Group& group : groups_)
      groups.push_back({group.pattern.c_str(), detail::c_str(group.optimizer)});
    std::vector<cairn_amp_rule_t> rules;
    for (const Rule& rule : rules_)
      rules.push_back({detail::c_str(rule.op), detail::c_str(rule.region), rule.amp_class.c_str()});
    const std::vector<cairn_hyper_t> hypers = detail::raw(hypers_);
    std::vector<cairn_region_policy_t> regions;
    for (const RegionPolicy& region : regions_)
      regions.push_back({region.pattern.c_str(), region.policy, region.tier});
    raw.costs = costs_.get();
    raw.optimizer = detail::c_str(optimizer_);
    raw.groups = groups.data();
    raw.group_count = static_cast<uint32_t>(groups.size());
    raw.hypers = hypers.data();
    raw.hyper_count = static_cast<uint32_t>(hypers.size());
    raw.amp_rules = rules.data();
    raw.amp_rule_count = static_cast<uint32_t>(rules.size());
    raw.region_policies = regions.data();
    raw.region_policy_count = static_cast<uint32_t>(regions.size());
    std::vector<cairn_parameter_format_t> formats;
    for (const Format& format : formats_) formats.push_back({format.pattern.c_str(), format.format.c_str()});
    raw.formats = formats.data();
    raw.format_count = static_cast<uint32_t>(formats.size());
    return call(raw);
  }

 private:
  struct Group {
    std::string pattern;
    std::optional<std::string> optimizer;
  };
  struct Rule {
    std::string amp_class;
    std::optional<std::string> op, region;
  };
  struct RegionPolicy {
    std::string pattern;
    uint32_t policy, tier;
  };
  struct Format {
    std::string pattern, format;
  };
  template <class T>
  PlanOptions& set(T& field, T value) {
    field = value;
    return *this;
  }

  cairn_plan_options_t raw_ = CAIRN_PLAN_OPTIONS_INIT;
  Costs costs_;
  std::optional<std::string> optimizer_;
  std::vector<Group> groups_;
  std::vector<detail::Hyper> hypers_;
  std::vector<Rule> rules_;
  std::vector<RegionPolicy> regions_;
  std::vector<Format> formats_;
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_PLAN_OPTIONS_HPP_
