// Pieces of the report shared by the HTML page and the SVG picture.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/text.h"

namespace cairn::plan {

inline constexpr int kPictureWidth = 1180, kPlotLeft = 86, kPlotRight = 1160;

// Categories of values, and what each has on the device over time.
struct Categories {
  std::vector<std::string> names, colors;  // persistent first, workspace last
  std::vector<int32_t> of_value;
  int32_t workspace() const { return static_cast<int32_t>(names.size()) - 1; }
};
Categories categorize(const Problem&, const Index&, const Plan&, const ReportOptions&);

// One sample of memory for a stretch of time: the fullest moment in it.
struct Sample {
  std::vector<int64_t> bytes;  // per category
  int64_t total = 0;
  int32_t step = -1;
};
std::vector<Sample> sample_memory(const Problem&, const Index&, const Plan&, const Timeline&,
                                  const Categories&, int columns);

// Step at which most bytes are alive, and the values then on the device, largest first.
struct PeakView {
  int32_t step = -1;
  int64_t bytes = 0, workspace = 0;
  std::vector<int32_t> values;
};
PeakView view_peak(const Problem&, const Index&, const Plan&);

// Fragments: <svg> elements that fill kPictureWidth.
std::string memory_picture(const Problem&, const Plan&, const Timeline&, const Categories&,
                           std::string_view title);
std::string lanes_picture(const Problem&, const Plan&, const Timeline&);

// Name of the op a step runs, or of what else it does.
std::string step_words(const Problem&, const Step&);

}  // namespace cairn::plan
