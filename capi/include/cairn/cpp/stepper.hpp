// Chapter 6: micro-batches, accumulation, the optimizer's update.
#ifndef CAIRN_CPP_STEPPER_HPP_
#define CAIRN_CPP_STEPPER_HPP_

#include <string>
#include <utility>
#include <vector>

#include "session.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Schedules that follow each other: Schedules().add("linear", 100).set("start_factor", 0.1).add("cosine").
class Schedules {
 public:
  Schedules& add(std::string name, uint64_t steps = 0) {
    stages_.push_back({std::move(name), steps, {}, {}});
    return *this;
  }
  // A parameter of the one added last; each element of a list, one by one. Before any was added there is nothing to set.
  Schedules& set(std::string parameter, double value) { return set({std::move(parameter), {}, value}); }
  Schedules& set(std::string parameter, std::string word) {
    return set({std::move(parameter), std::move(word), 0.0});
  }
  // Makes `options` point into this object, which must not change until they were read.
  void apply_to(cairn_stepper_options_t& options) {
    pointers_.clear();
    for (Stage& stage : stages_) {
      stage.pointers.clear();
      for (const Setting& s : stage.settings)
        stage.pointers.push_back({s.name.c_str(), s.word.empty() ? nullptr : s.word.c_str(), s.value});
      pointers_.push_back({stage.name.c_str(), stage.steps, stage.pointers.data(), stage.pointers.size()});
    }
    options.schedule = 0;
    options.schedules = pointers_.data();
    options.schedule_count = pointers_.size();
  }
  bool empty() const noexcept { return stages_.empty(); }

 private:
  struct Setting {
    std::string name, word;
    double value;
  };
  struct Stage {
    std::string name;
    uint64_t steps;
    std::vector<Setting> settings;
    std::vector<cairn_schedule_value_t> pointers;
  };
  Schedules& set(Setting setting) {
    if (!stages_.empty()) stages_.back().settings.push_back(std::move(setting));
    return *this;
  }
  std::vector<Stage> stages_;
  std::vector<cairn_schedule_t> pointers_;
};

// As cairn_stepper_options_t, which says what each means and what is the default; it holds the texts it is given.
class StepperOptions {
 public:
  StepperOptions& seed(uint64_t seed) { return set(raw_.seed, seed); }  // of dropout
  // The highest and, where the schedule ends, the lowest.
  StepperOptions& rate(double highest, double lowest = 0) {
    raw_.minimum_rate = lowest;
    return set(raw_.rate, highest);
  }
  StepperOptions& warmup_steps(uint64_t steps) { return set(raw_.warmup_steps, steps); }
  // The warm-up as a count of samples, tokens ..., of which a step takes `per_step`.
  StepperOptions& warmup_units(uint64_t units, uint64_t per_step) {
    raw_.step_units = per_step;
    return set(raw_.warmup_units, units);
  }
  StepperOptions& total_steps(uint64_t steps) { return set(raw_.total_steps, steps); }
  StepperOptions& schedule(uint32_t schedule) { return set(raw_.schedule, schedule); }  // CAIRN_SCHEDULE_*
  StepperOptions& schedule(Schedules schedules) {
    schedules_ = std::move(schedules);
    return *this;
  }
  StepperOptions& clip_norm(double norm) { return set(raw_.clip_norm, norm); }  // 0: none
  StepperOptions& micro_steps(uint32_t count) { return set(raw_.micro_steps, count); }
  StepperOptions& weight_decay(double decay) { return set(raw_.weight_decay, decay); }
  StepperOptions& betas(double beta1, double beta2) {
    raw_.beta1 = beta1;
    return set(raw_.beta2, beta2);
  }
  StepperOptions& eps(double eps) { return set(raw_.eps, eps); }
  // group: as PlanOptions::hyper.
  StepperOptions& hyper(std::string name, double value, std::optional<std::string> group = std::nullopt) {
    hypers_.push_back({std::move(group), std::move(name), value});
    return *this;
  }
  // Of plans with CAIRN_AMP_FP16; 0: the default.
  StepperOptions& loss_scale(double initial, double growth = 0, double backoff = 0, uint32_t interval = 0) {
    raw_.loss_scale_growth = growth;
    raw_.loss_scale_backoff = backoff;
    raw_.loss_scale_interval = interval;
    return set(raw_.loss_scale, initial);
  }

  // Gives call() the options for cairn.h, which point into what lives as long as the call.
  template <class Call>
  auto with_raw(const Call& call) const {
    cairn_stepper_options_t raw = raw_;
    Schedules schedules = schedules_;
    if (!schedules.empty()) schedules.apply_to(raw);
    const std::vector<cairn_hyper_t> hypers = detail::raw(hypers_);
    raw.hypers = hypers.data();
    raw.hyper_count = hypers.size();
    return call(raw);
  }

 private:
  template <class T>
  StepperOptions& set(T& field, T value) {
    field = value;
    return *this;
  }
  cairn_stepper_options_t raw_ = CAIRN_STEPPER_OPTIONS_INIT;
  Schedules schedules_;
  std::vector<detail::Hyper> hypers_;
};

// Rates of `count` steps from `first` on, at most 2^27; momenta, if given, gets what cairn_schedule_rates says. Any thread.
inline Outcome<std::vector<double>> schedule_rates(const cairn_stepper_options_t& options, uint64_t first,
                                                   size_t count, std::vector<double>* momenta = nullptr) {
  constexpr size_t most = size_t{1} << 27;
  if (count > most)
    return detail::failed<std::vector<double>>(
        Error(CAIRN_STATUS_INVALID_ARGUMENT, "count is " + std::to_string(count) + "; at most " +
                                                 std::to_string(most) +
                                                 " are given at once: ask for them in parts"));
  std::vector<double> rates(count), other(momenta != nullptr ? count : 0);
  return detail::call(
      {},
      [&](auto* error) {
        return cairn_schedule_rates(&options, first, count, rates.data(), momenta ? other.data() : nullptr,
                                    error);
      },
      [&] {
        if (momenta != nullptr) *momenta = std::move(other);
        return std::move(rates);
      });
}
inline Outcome<std::vector<double>> schedule_rates(const StepperOptions& options, uint64_t first,
                                                   size_t count, std::vector<double>* momenta = nullptr) {
  return options.with_raw(
      [&](const cairn_stepper_options_t& raw) { return schedule_rates(raw, first, count, momenta); });
}

// The state machine of training. One call at a time, and none of its session meanwhile, but for cancel() and usage().
class Stepper : public detail::Handle<cairn_stepper_t, cairn_stepper_retain, cairn_stepper_release> {
 public:
  using Handle::Handle;
  static Outcome<Stepper> create(const Session& session,
                                 const cairn_stepper_options_t& options = CAIRN_STEPPER_OPTIONS_INIT) {
    return detail::make<Stepper>({}, [&](auto* out, auto* error) {
      return cairn_stepper_create(session.get(), &options, out, error);
    });
  }
  static Outcome<Stepper> create(const Session& session, const StepperOptions& options) {
    return options.with_raw([&](const cairn_stepper_options_t& raw) { return create(session, raw); });
  }

  // One micro-batch on the inputs written; the last one of an effective batch updates the parameters. The report's outcome is
  // CAIRN_STEP_ACCUMULATED, APPLIED, SKIPPED_NONFINITE, SKIPPED_EMPTY or GATHERED. blocks: until it is done. errors: CANCELLED,
  // DEVICE_LOST, IO, OUT_OF_MEMORY, NON_FINITE (plans with fuse_update).
  Outcome<cairn_step_report_t> micro() {
    return reported([&](auto* out, auto* error) { return cairn_stepper_micro(handle_, out, error); });
  }
  // The same by another session on the stepper's store.
  Outcome<cairn_step_report_t> micro(const Session& program) {
    return reported(
        [&](auto* out, auto* error) { return cairn_stepper_micro_on(handle_, program.get(), out, error); });
  }
  // Ends the effective batch early. errors: WRONG_STATE (nothing accumulated).
  Outcome<cairn_step_report_t> apply() {
    return reported([&](auto* out, auto* error) { return cairn_stepper_apply(handle_, out, error); });
  }
  // Discards what was accumulated.
  Outcome<void> discard() {
    return detail::call({}, [&](auto* error) { return cairn_stepper_discard(handle_, error); });
  }
  // Where the stepper stands. threads: const.
  Outcome<cairn_step_report_t> report() const {
    return reported([&](auto* out, auto* error) { return cairn_stepper_report(handle_, out, error); });
  }
  // Options of later steps; seed is kept. errors: WRONG_STATE (in the middle of an effective batch).
  Outcome<void> configure(const cairn_stepper_options_t& options) {
    return detail::call({}, [&](auto* error) { return cairn_stepper_configure(handle_, &options, error); });
  }
  Outcome<void> configure(const StepperOptions& options) {
    return options.with_raw([&](const cairn_stepper_options_t& raw) { return configure(raw); });
  }
  // group: a pattern, "" for parameters that no group names, nullptr as in cairn.h.
  Outcome<void> set_hyper(Text name, double value, Text group = nullptr) {
    return detail::call({name, group}, [&](auto* error) {
      return cairn_stepper_set(handle_, group.c_str(), name.c_str(), value, error);
    });
  }
  Outcome<double> hyper(Text name, Text group = nullptr) const {  // threads: const
    return detail::fill({name, group}, 0.0, [&](auto* out, auto* error) {
      return cairn_stepper_get(handle_, group.c_str(), name.c_str(), out, error);
    });
  }

  // Saves everything into a new directory, with the metadata and copies of the files; all or nothing. blocks: until durable.
  // errors: IO, CORRUPT_FILE (reads back otherwise), INVALID_ARGUMENT (the directory holds other files).
  Outcome<void> save(Text directory, Span<const cairn_metadata_t> metadata = {},
                     Span<const char* const> files = {}) {
    return detail::call({directory}, [&](auto* error) {
      return cairn_stepper_save(handle_, directory.c_str(), metadata.data(), metadata.size(), files.data(),
                                files.size(), error);
    });
  }
  // The same by options, which say also whether frozen parameters are stored; they borrow their texts.
  Outcome<void> save(Text directory, const cairn_save_options_t& options) {
    return detail::call({directory}, [&](auto* error) {
      return cairn_stepper_save_as(handle_, directory.c_str(), &options, error);
    });
  }
  // Goes on exactly where the saved one was. errors: CORRUPT_FILE, WRONG_STATE.
  Outcome<void> restore(const Checkpoint& checkpoint) {
    return detail::call({},
                        [&](auto* error) { return cairn_stepper_restore(handle_, checkpoint.get(), error); });
  }

 private:
  template <class Call>
  static Outcome<cairn_step_report_t> reported(const Call& call) {
    return detail::fill({}, cairn_step_report_t CAIRN_STEP_REPORT_INIT, call);
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_STEPPER_HPP_
