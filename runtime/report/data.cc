// What the report shows, counted from the steps.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

struct Named {
  std::string_view name, color;
};
constexpr Named kKnown[] = {
    // by what the planner does with a value
    {"persistent", color::kGrey},
    {"kept for backward", color::kBlue},
    {"recomputed", color::kOrange},
    {"offloaded", color::kGreen},
    {"made by backward", color::kSky},
    {"short-lived", color::kPurple},
    // by what a value is for
    {"parameter", color::kSlate},
    {"optimizer", color::kGrey},
    {"gradient", color::kPurple},
    {"packed", color::kSand},
    {"input", color::kYellow},
    {"output", color::kMint},
    {"average", color::kGreen},
    {"scratch", color::kGreen},
    {"effective", color::kGreen},
    {"activation", color::kBlue},
    {"backward", color::kSky},
};
constexpr std::string_view kOthers[] = {color::kSlate, color::kBlue,   color::kOrange, color::kGreen,
                                        color::kSky,   color::kPurple, color::kYellow, color::kGrey};

// Bytes on the device, step by step.
class Memory {
 public:
  Memory(const Problem& p, const Index& index) : p_(p), index_(index), here_(p.values.size(), 0) {}

  // Calls change(value, bytes gained) for each value that comes with, or goes by, the step.
  template <class Change>
  void take(const Step& step, const Change& change) {
    if (step.kind == StepKind::kRun) {
      for (int32_t v : index_.outputs[step.index]) put(v, true, change);
    } else if (step.kind == StepKind::kIn || step.kind == StepKind::kFree) {
      put(step.index, step.kind == StepKind::kIn, change);
    }
  }
  bool here(size_t v) const { return here_[v]; }

 private:
  template <class Change>
  void put(int32_t v, bool there, const Change& change) {
    if (here_[v] == there) return;
    here_[v] = there;
    change(v, there ? p_.values[v].bytes : -p_.values[v].bytes);
  }

  const Problem& p_;
  const Index& index_;
  std::vector<uint8_t> here_;
};

}  // namespace

Categories categorize(const Problem& p, const Index& index, const Plan& plan, const ReportOptions& options) {
  Categories c;
  const auto slot = [&](const std::string& name) {
    const auto found = std::find(c.names.begin(), c.names.end(), name);
    if (found == c.names.end()) c.names.push_back(name);
    return static_cast<int32_t>(found - c.names.begin());
  };
  if (options.categories.size() == p.values.size()) {
    // What the planner moves has the planner's names: that is what the picture is about.
    const auto name_of = [&](size_t v) -> std::string {
      const Decision d = plan.values[v].decision;
      return d == Decision::kRecompute ? "recomputed"
             : d == Decision::kOffload ? "offloaded"
                                       : options.categories[v];
    };
    // From the bottom: what never leaves, what forward keeps, what is moved, what backward makes.
    const auto layer = [&](size_t v) {
      const Decision d = plan.values[v].decision;
      return p.values[v].persistent                                 ? 0
             : d == Decision::kRecompute || d == Decision::kOffload ? 2
             : index.maker[v] >= p.backward_begin                   ? 3
                                                                    : 1;
    };
    for (int pass = 0; pass < 4; ++pass)
      for (size_t v = 0; v < p.values.size(); ++v)
        if (layer(v) == pass) slot(name_of(v));
    for (size_t v = 0; v < p.values.size(); ++v) c.of_value.push_back(slot(name_of(v)));
  } else {
    c.names = {"persistent", "kept for backward", "recomputed",
               "offloaded",  "made by backward",  "short-lived"};
    for (size_t v = 0; v < p.values.size(); ++v) {
      const Decision d = plan.values[v].decision;
      const auto i = static_cast<int32_t>(v);
      c.of_value.push_back(p.values[v].persistent               ? 0
                           : d == Decision::kRecompute          ? 2
                           : d == Decision::kOffload            ? 3
                           : index.maker[v] >= p.backward_begin ? 4
                           : index.saved(i, p.backward_begin)   ? 1
                                                                : 5);
    }
  }
  for (size_t k = 0; k < c.names.size(); ++k) {
    const auto known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                    [&](const Named& row) { return row.name == c.names[k]; });
    c.colors.emplace_back(known != std::end(kKnown) ? known->color : kOthers[k % std::size(kOthers)]);
  }
  c.names.emplace_back("workspace");
  c.colors.emplace_back(color::kVermillion);
  return c;
}

std::vector<Sample> sample_memory(const Problem& p, const Index& index, const Plan& plan,
                                  const Timeline& line, const Categories& categories, int columns) {
  std::vector<Sample> samples(columns);
  Sample now;
  now.bytes.assign(categories.names.size(), 0);
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].persistent) now.bytes[categories.of_value[v]] += p.values[v].bytes;
  now.total = index.persistent_bytes;
  Memory memory(p, index);
  double time = 0;
  const auto column = [&](double t) {
    return line.seconds > 0 ? std::clamp(static_cast<int>(t / line.seconds * columns), 0, columns - 1) : 0;
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    memory.take(step, [&](int32_t v, int64_t bytes) {
      now.bytes[categories.of_value[v]] += bytes;
      now.total += bytes;
    });
    const bool run = step.kind == StepKind::kRun;
    const int64_t workspace = run ? p.ops[step.index].workspace_bytes : 0;
    const bool takes_time = run || step.kind == StepKind::kWaitIn || step.kind == StepKind::kWaitOut;
    const double end = takes_time ? line.step_span[s][1] : time;
    now.bytes[categories.workspace()] = workspace;
    now.total += workspace;
    now.step = static_cast<int32_t>(s);
    for (int k = column(time); k <= column(end); ++k)
      if (samples[k].step < 0 || now.total > samples[k].total) samples[k] = now;
    now.total -= workspace;
    now.bytes[categories.workspace()] = 0;
    time = end;
  }
  for (Sample& sample : samples)  // after the last step, or without any
    if (sample.step < 0) sample = now;
  return samples;
}

PeakView view_peak(const Problem& p, const Index& index, const Plan& plan) {
  PeakView peak;
  peak.bytes = index.persistent_bytes;
  int64_t alive = index.persistent_bytes;
  {
    Memory memory(p, index);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      memory.take(step, [&](int32_t, int64_t bytes) { alive += bytes; });
      const int64_t workspace = step.kind == StepKind::kRun ? p.ops[step.index].workspace_bytes : 0;
      if (alive + workspace <= peak.bytes && peak.step >= 0) continue;
      peak.bytes = alive + workspace;
      peak.workspace = workspace;
      peak.step = static_cast<int32_t>(s);
    }
  }
  Memory memory(p, index);
  for (int32_t s = 0; s <= peak.step; ++s) memory.take(plan.steps[s], [](int32_t, int64_t) {});
  for (size_t v = 0; v < p.values.size(); ++v)
    if (memory.here(v)) peak.values.push_back(static_cast<int32_t>(v));
  std::stable_sort(peak.values.begin(), peak.values.end(),
                   [&](int32_t a, int32_t b) { return p.values[a].bytes > p.values[b].bytes; });
  return peak;
}

std::vector<std::vector<int32_t>> owners(const Problem& p, const Index& index, const Plan& plan,
                                         const std::vector<int32_t>& steps, size_t most) {
  std::vector<std::vector<int32_t>> found;
  Memory memory(p, index);
  int32_t next = 0;
  for (int32_t step : steps) {
    for (; next <= step; ++next) memory.take(plan.steps[next], [](int32_t, int64_t) {});
    std::vector<int32_t> here;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (memory.here(v)) here.push_back(static_cast<int32_t>(v));
    const size_t count = std::min(most, here.size());
    std::partial_sort(
        here.begin(), here.begin() + static_cast<int64_t>(count), here.end(), [&](int32_t a, int32_t b) {
          return p.values[a].bytes != p.values[b].bytes ? p.values[a].bytes > p.values[b].bytes : a < b;
        });
    here.resize(count);
    found.push_back(std::move(here));
  }
  return found;
}

std::string_view decision_name(Decision d) {
  constexpr std::string_view kNames[] = {"keep", "recompute", "offload", "persistent"};
  return kNames[static_cast<size_t>(d)];
}

std::string_view decision_color(Decision d) {
  constexpr std::string_view kColors[] = {color::kBlue, color::kOrange, color::kGreen, color::kGrey};
  return kColors[static_cast<size_t>(d)];
}

std::string step_words(const Problem& p, const Step& step) {
  constexpr std::string_view kWords[] = {
      "", "free ", "copy out ", "wait for copy out of ", "copy in ", "wait for copy in of ", "drop "};
  if (step.kind == StepKind::kRun) return p.ops[step.index].name;
  return cat(kWords[static_cast<size_t>(step.kind)], p.values[step.index].name);
}

}  // namespace cairn::plan
