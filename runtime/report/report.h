// Pieces of the report shared by the HTML page and the SVG picture.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/text.h"
#include "runtime/report/sweep.h"

namespace cairn::plan {

inline constexpr int kPictureWidth = 1180, kPlotLeft = 86, kPlotRight = 1160;

// Okabe and Ito's colours, told apart with any colour vision and on light and dark ground; greys for what
// never moves. The same thing has the same colour in every picture.
namespace color {
inline constexpr std::string_view kGrey = "#9aa5b1", kSlate = "#64748b", kSand = "#c9b79c", kBlue = "#0072b2",
                                  kSky = "#56b4e9", kOrange = "#e69f00", kGreen = "#009e73",
                                  kMint = "#7fcfb6", kPurple = "#cc79a7", kYellow = "#d9cb3a",
                                  kVermillion = "#d55e00";
}

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

// Per step asked for (ascending): the values then on the device that are not persistent, the largest `most`.
std::vector<std::vector<int32_t>> owners(const Problem&, const Index&, const Plan&,
                                         const std::vector<int32_t>& steps, size_t most);

// Step at which most bytes are alive, and the values then on the device, largest first.
struct PeakView {
  int32_t step = -1;
  int64_t bytes = 0, workspace = 0;
  std::vector<int32_t> values;
};
PeakView view_peak(const Problem&, const Index&, const Plan&);

// Fragments: <svg> elements that fill kPictureWidth. They need picture_style() around them once.
std::string_view picture_style();
std::string memory_picture(const Problem&, const Plan&, const Timeline&, const Categories&,
                           std::string_view title);
std::string lanes_picture(const Problem&, const Plan&, const Timeline&);
// Seconds over budget. The sweep must have points.
std::string curve_picture(const Problem&, const Plan&, const Sweep&);
// Those of the baselines that differ from the ones before them.
std::vector<Baseline> distinct_baselines(const Sweep&);
// The same as sentences and a table.
std::string curve_words(const Problem&, const Plan&, const Sweep&);

// The table of values: rows as data for page_script(), the first of them as HTML for pages without scripts.
std::string values_section(const Problem&, const Index&, const Plan&);
std::string_view page_style();
std::string_view page_script();

// Begins an <svg> element of this height, `name` for those who cannot see it.
std::string open_svg(int height, std::string_view name);
// Steps of 1, 2 or 5 times a power (of two for bytes, of ten else) that give about `count` ticks.
double tick(double range, int count, bool binary);
// The same for seconds up to `most`, whose words differ from tick to tick.
double seconds_tick(double range, int count, double most);
std::string tick_seconds(double seconds);  // "200 ms", not "200.00 ms"
// About as wide as a text is drawn.
double text_width(std::string_view text, double font_size);
std::string percent(double share);
// " (+3.2 %)" and so on: seconds over those of keeping everything.
std::string over(double seconds, double keep_all_seconds);

// Name of the op a step runs, or of what else it does.
std::string step_words(const Problem&, const Step&);
std::string_view decision_name(Decision);
std::string_view decision_color(Decision);

}  // namespace cairn::plan
