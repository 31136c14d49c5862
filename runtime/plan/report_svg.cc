// The memory over time, stacked by category.
#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/plan/report.h"

namespace cairn::plan {
namespace {

constexpr int kTop = 66, kPlotHeight = 300, kHeight = kTop + kPlotHeight + 46;
constexpr int kColumns = 537;  // two pixels each
constexpr int kHovers = 179;

// A step of 1, 2 or 5 times a power (of two for bytes, of ten else) that gives about `count` ticks.
double tick(double range, int count, bool binary) {
  if (range <= 0) return 1;
  const double raw = range / count;
  if (binary) return std::exp2(std::ceil(std::log2(raw)));
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double m : {1.0, 2.0, 5.0})
    if (raw <= m * power) return m * power;
  return 10 * power;
}

// "200 ms", not "200.00 ms".
std::string tick_words(double seconds) {
  std::string words = human_seconds(seconds);
  const size_t unit = words.find(' ');
  size_t end = unit;
  while (end > 0 && words[end - 1] == '0') --end;
  if (end > 0 && words[end - 1] == '.') --end;
  return words.find('.') < unit ? words.substr(0, end) + words.substr(unit) : words;
}

std::string legend(const Categories& c, const std::vector<Sample>& samples) {
  std::string out;
  int x = kPlotLeft;
  for (size_t k = 0; k < c.names.size(); ++k) {
    int64_t most = 0;
    for (const Sample& s : samples) most = std::max(most, s.bytes[k]);
    if (most == 0) continue;
    out += cat("<rect x='", x, "' y='38' width='11' height='11' rx='2' fill='", c.colors[k], "'/><text x='",
               x + 16, "' y='47.5' class='s'>", escaped(c.names[k]), "<title>at most ", human_bytes(most),
               "</title></text>");
    x += 34 + static_cast<int>(static_cast<double>(c.names[k].size()) * 6.3);
  }
  return out;
}

}  // namespace

std::string memory_picture(const Problem& p, const Plan& plan, const Timeline& line, const Categories& c,
                           std::string_view title) {
  const Index index(p);
  const std::vector<Sample> samples = sample_memory(p, index, plan, line, c, kColumns);
  const PeakView peak = view_peak(p, index, plan);
  const auto budget = p.budget_bytes > 0 ? p.budget_bytes : plan.arena_bytes;
  // A budget far above the peak is named in a note instead of squeezing the picture.
  const bool budget_shown =
      p.budget_bytes > 0 && static_cast<double>(budget) < 1.6 * static_cast<double>(peak.bytes);
  const double top =
      1.06 * static_cast<double>(std::max<int64_t>({1, peak.bytes, budget_shown ? budget : 0}));
  // Where persistent bytes dwarf the rest, the axis starts inside them.
  const auto persistent = static_cast<double>(index.persistent_bytes);
  const double foot = persistent > .5 * top ? std::max(0.0, persistent - .18 * (top - persistent)) : 0;
  const double width = kPlotRight - kPlotLeft;
  const auto y = [&](double bytes) {
    return kTop + kPlotHeight * (1 - (std::max(bytes, foot) - foot) / (top - foot));
  };
  const auto x = [&](double seconds) {
    return kPlotLeft + (line.seconds > 0 ? width * seconds / line.seconds : 0);
  };
  std::string out = cat(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ", kPictureWidth, " ", kHeight,
      "' font-family='system-ui, Helvetica, Arial, sans-serif' font-size='12' fill='#20262e' role='img'>"
      "<style>.s{font-size:11.5px}.t{font-size:11px;fill:#6a7380}.g{stroke:#e7eaee}</style>"
      "<rect width='100%' height='100%' fill='#fff'/><text x='",
      kPlotLeft, "' y='22' font-size='15' font-weight='600'>", escaped(title), "</text>", legend(c, samples));
  const double byte_tick = tick(top - foot, 6, true);
  for (double b = std::ceil(foot / byte_tick) * byte_tick; b < top; b += byte_tick)
    out += cat("<line class='g' x1='", kPlotLeft, "' x2='", kPlotRight, "' y1='", fixed(y(b), 1), "' y2='",
               fixed(y(b), 1), "'/><text class='t' text-anchor='end' x='", kPlotLeft - 8, "' y='",
               fixed(y(b) + 4, 1), "'>", human_bytes(static_cast<int64_t>(b)), "</text>");
  const double time_tick = tick(line.seconds, 8, false);
  for (int k = 0; line.seconds > 0 && k * time_tick <= line.seconds; ++k)
    out += cat("<text class='t' text-anchor='middle' x='", fixed(x(k * time_tick), 1), "' y='",
               kTop + kPlotHeight + 18, "'>", k == 0 ? "0" : tick_words(k * time_tick), "</text>");
  if (foot > 0)
    out +=
        cat("<text class='t' text-anchor='end' x='", kPlotRight, "' y='", kTop - 6, "'>the axis starts at ",
            human_bytes(static_cast<int64_t>(foot)), ", inside the persistent values</text>");
  // Areas, from the top of the stack to its foot, so that each covers the one before.
  std::vector<int64_t> below(samples.size(), 0);
  std::vector<std::string> areas;
  for (size_t k = 0; k < c.names.size(); ++k) {
    bool any = false;
    std::string path = cat("M", kPlotLeft, ",", fixed(y(0), 1));
    for (size_t i = 0; i < samples.size(); ++i) {
      any |= samples[i].bytes[k] > 0;
      below[i] += samples[i].bytes[k];
      const double left = kPlotLeft + width * static_cast<double>(i) / kColumns;
      path += cat("L", fixed(left, 1), ",", fixed(y(static_cast<double>(below[i])), 1), "H",
                  fixed(left + width / kColumns, 1));
    }
    if (any)
      areas.push_back(cat("<path fill='", c.colors[k], "' d='", path, "V", fixed(y(0), 1), "Z'><title>",
                          escaped(c.names[k]), "</title></path>"));
  }
  for (size_t k = areas.size(); k-- > 0;) out += areas[k];
  // The turnaround, the budget, the peak.
  for (size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == StepKind::kRun && plan.steps[s].index == p.turnaround && line.seconds > 0) {
      const std::string at = fixed(x(line.step_span[s][0]), 1);
      out += cat("<line x1='", at, "' x2='", at, "' y1='", kTop, "' y2='", kTop + kPlotHeight,
                 "' stroke='#20262e' stroke-opacity='.45' stroke-dasharray='2 3'/><text class='t' "
                 "text-anchor='middle' x='",
                 at, "' y='", kTop + kPlotHeight + 36, "'>backward begins</text>");
      break;
    }
  if (budget_shown)
    out += cat("<line x1='", kPlotLeft, "' x2='", kPlotRight, "' y1='",
               fixed(y(static_cast<double>(budget)), 1), "' y2='", fixed(y(static_cast<double>(budget)), 1),
               "' stroke='#b3261e' stroke-width='1.4' stroke-dasharray='6 4'/>", "<text x='", kPlotLeft + 6,
               "' y='", fixed(y(static_cast<double>(budget)) - 5, 1), "' class='s' fill='#b3261e'>budget ",
               human_bytes(budget), "</text>");
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].total != peak.bytes || peak.step < 0) continue;
    const double px = kPlotLeft + width * (static_cast<double>(i) + .5) / kColumns,
                 py = y(static_cast<double>(peak.bytes));
    const bool left = px > kPlotLeft + width / 2;
    const std::string words =
        cat("peak ", human_bytes(peak.bytes), " at ", step_words(p, plan.steps[peak.step]));
    const double box = 14 + 6.1 * static_cast<double>(words.size());
    out += cat("<circle cx='", fixed(px, 1), "' cy='", fixed(py, 1),
               "' r='3.6' fill='#20262e' stroke='#fff'/><rect x='", fixed(left ? px - 10 - box : px + 10, 1),
               "' y='", fixed(py + 8, 1), "' width='", fixed(box, 1),
               "' height='19' rx='4' fill='#fff' fill-opacity='.9' stroke='#c3c9d1'/><text class='s' x='",
               fixed(left ? px - 17 : px + 17, 1), "' y='", fixed(py + 21.5, 1), "' text-anchor='",
               left ? "end" : "start", "'>", escaped(words), "</text>");
    break;
  }
  for (int h = 0; h < kHovers; ++h) {
    const Sample* fullest = nullptr;
    for (int i = h * kColumns / kHovers; i < (h + 1) * kColumns / kHovers; ++i)
      if (fullest == nullptr || samples[i].total > fullest->total) fullest = &samples[i];
    out += cat("<rect x='", fixed(kPlotLeft + width * h / kHovers, 1), "' y='", kTop, "' width='",
               fixed(width / kHovers, 2), "' height='", kPlotHeight, "' fill='transparent'><title>",
               human_bytes(fullest->total));
    if (fullest->step >= 0) out += cat(" at ", escaped(step_words(p, plan.steps[fullest->step])));
    for (size_t k = 0; k < c.names.size(); ++k)
      if (fullest->bytes[k] > 0) out += cat("\n", escaped(c.names[k]), ": ", human_bytes(fullest->bytes[k]));
    out += "</title></rect>";
  }
  if (p.budget_bytes > 0 && !budget_shown)
    out += cat("<text class='t' text-anchor='end' x='", kPlotRight, "' y='", kTop + 12, "'>budget ",
               human_bytes(budget), ", above the picture</text>");
  return out + "</svg>\n";
}

std::string to_svg(const Problem& p, const Plan& plan, const ReportOptions& options) {
  const Timeline line = simulate(p, plan);
  const std::string title = options.title.empty() ? "Device memory over one step"
                                                  : cat("Device memory over one step: ", options.title);
  return memory_picture(p, plan, line, categorize(p, Index(p), plan, options), title);
}

}  // namespace cairn::plan
