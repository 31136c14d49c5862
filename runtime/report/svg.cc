// The memory over time, stacked by category.
#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

constexpr int kPlotTop = 66, kPlotHeight = 300, kPictureHeight = kPlotTop + kPlotHeight + 46;
constexpr int kColumns = 537;  // two pixels each
constexpr int kHovers = 179;
constexpr size_t kOwners = 5;  // named per hover

class Picture {
 public:
  Picture(const Problem& p, const Plan& plan, const Timeline& line, const Categories& c)
      : p_(p),
        plan_(plan),
        line_(line),
        c_(c),
        index_(p),
        samples_(sample_memory(p, index_, plan, line, c, kColumns)),
        peak_(view_peak(p, index_, plan)) {
    // A budget far above the peak is named in a note instead of squeezing the picture.
    budget_shown_ =
        p.budget_bytes > 0 && static_cast<double>(p.budget_bytes) < 1.6 * static_cast<double>(peak_.bytes);
    top_ =
        1.06 * static_cast<double>(std::max<int64_t>({1, peak_.bytes, budget_shown_ ? p.budget_bytes : 0}));
    // Where persistent bytes dwarf the rest, the axis starts inside them.
    const auto persistent = static_cast<double>(index_.persistent_bytes);
    foot_ = persistent > .5 * top_ ? std::max(0.0, persistent - .18 * (top_ - persistent)) : 0;
  }

  std::string draw(std::string_view title) {
    return cat(open_svg(kPictureHeight, title), "<rect width='100%' height='100%' class='bg'/><text x='",
               kPlotLeft, "' y='22' font-size='15' font-weight='600'>", label(title), "</text>", legend(),
               axes(), areas(), backward_begin(), budget(), peak(), hovers(), "</svg>\n");
  }

 private:
  double y(double bytes) const {
    return kPlotTop + kPlotHeight * (1 - (std::max(bytes, foot_) - foot_) / (top_ - foot_));
  }
  double x(double seconds) const {
    return kPlotLeft + (line_.seconds > 0 ? kWidth * seconds / line_.seconds : 0);
  }

  std::string legend() const {
    std::string out;
    double x = kPlotLeft;
    for (size_t k = 0; k < c_.names.size(); ++k) {
      int64_t most = 0;
      for (const Sample& s : samples_) most = std::max(most, s.bytes[k]);
      const std::string name = shortened(c_.names[k], 24);
      const double width = 32 + text_width(name, 11.5);
      if (y(0) - y(static_cast<double>(most) + foot_) < .3 || x + width > kPlotRight)
        continue;  // not to be seen
      out += cat("<rect x='", fixed(x, 1), "' y='38' width='11' height='11' rx='2' fill='", c_.colors[k],
                 "'/><text x='", fixed(x + 16, 1), "' y='47.5' class='s'>", escaped(name), "<title>at most ",
                 human_bytes(most), "</title></text>");
      x += width;
    }
    return out;
  }

  std::string axes() const {
    std::string out;
    const double byte_tick = tick(top_ - foot_, 6, true);
    for (double b = std::ceil(foot_ / byte_tick) * byte_tick; b < top_; b += byte_tick)
      out += cat("<line class='g' x1='", kPlotLeft, "' x2='", kPlotRight, "' y1='", fixed(y(b), 1), "' y2='",
                 fixed(y(b), 1), "'/><text class='t' text-anchor='end' x='", kPlotLeft - 8, "' y='",
                 fixed(y(b) + 4, 1), "'>", human_bytes(static_cast<int64_t>(b)), "</text>");
    const double time_tick = seconds_tick(line_.seconds, 8, line_.seconds);
    for (int k = 0; line_.seconds > 0 && k * time_tick <= line_.seconds; ++k)
      out += cat("<text class='t' text-anchor='middle' x='", fixed(x(k * time_tick), 1), "' y='",
                 kPlotTop + kPlotHeight + 18, "'>", k == 0 ? "0" : tick_seconds(k * time_tick), "</text>");
    if (foot_ > 0)
      out += cat("<text class='t' text-anchor='end' x='", kPlotRight, "' y='22'>the axis starts at ",
                 human_bytes(static_cast<int64_t>(foot_)), ", inside the persistent values</text>");
    if (p_.budget_bytes > 0 && !budget_shown_)
      out += cat("<text class='t' text-anchor='end' x='", kPlotRight, "' y='", kPlotTop + 12, "'>budget ",
                 human_bytes(p_.budget_bytes), ", above the picture</text>");
    return out;
  }

  // From the top of the stack to its foot, so that each covers the one before.
  std::string areas() const {
    std::vector<int64_t> below(samples_.size(), 0);
    std::vector<std::string> paths;
    for (size_t k = 0; k < c_.names.size(); ++k) {
      bool any = false;
      std::string path = cat("M", kPlotLeft, ",", fixed(y(0), 1));
      std::string last;
      for (size_t i = 0; i < samples_.size(); ++i) {
        any |= samples_[i].bytes[k] > 0;
        below[i] += samples_[i].bytes[k];
        const std::string height = fixed(y(static_cast<double>(below[i])), 1);
        if (height == last) continue;
        path += cat("H", fixed(kPlotLeft + kWidth * static_cast<double>(i) / kColumns, 1), "V", height);
        last = height;
      }
      if (any)
        paths.push_back(cat("<path fill='", c_.colors[k], "' d='", path, "H", kPlotRight, "V", fixed(y(0), 1),
                            "Z'><title>", label(c_.names[k]), "</title></path>"));
    }
    std::string out;
    for (size_t k = paths.size(); k-- > 0;) out += paths[k];
    return out;
  }

  std::string backward_begin() const {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind != StepKind::kRun || plan_.steps[s].index != p_.backward_begin) continue;
      if (line_.seconds <= 0) break;
      const double at = x(line_.step_span[s][0]);
      return cat("<line class='rule' x1='", fixed(at, 1), "' x2='", fixed(at, 1), "' y1='", kPlotTop,
                 "' y2='", kPlotTop + kPlotHeight,
                 "' stroke-opacity='.5' stroke-dasharray='2 3'/><text class='t' ", "text-anchor='middle' x='",
                 fixed(std::clamp(at, kPlotLeft + 45.0, kPlotRight - 45.0), 1), "' y='",
                 kPlotTop + kPlotHeight + 36, "'>backward begins</text>");
    }
    return "";
  }

  std::string budget() const {
    if (!budget_shown_) return "";
    const std::string at = fixed(y(static_cast<double>(p_.budget_bytes)), 1);
    return cat("<line class='limit' x1='", kPlotLeft, "' x2='", kPlotRight, "' y1='", at, "' y2='", at,
               "' stroke-width='1.4' stroke-dasharray='6 4'/><text x='", kPlotLeft + 6, "' y='",
               fixed(y(static_cast<double>(p_.budget_bytes)) - 5, 1), "' class='s limit-t'>budget ",
               human_bytes(p_.budget_bytes), "</text>");
  }

  std::string peak() const {
    for (size_t i = 0; i < samples_.size() && peak_.step >= 0; ++i) {
      if (samples_[i].total != peak_.bytes) continue;
      const double px = kPlotLeft + kWidth * (static_cast<double>(i) + .5) / kColumns,
                   py = y(static_cast<double>(peak_.bytes));
      const bool left = px > kPlotLeft + kWidth / 2;
      const std::string words = cat("peak ", human_bytes(peak_.bytes), " at ",
                                    shortened(step_words(p_, plan_.steps[peak_.step]), 44));
      const double box = 14 + text_width(words, 11.5);
      return cat("<circle cx='", fixed(px, 1), "' cy='", fixed(py, 1),
                 "' r='3.8' class='ink edge'/><rect x='", fixed(left ? px - 10 - box : px + 10, 1), "' y='",
                 fixed(py + 8, 1), "' width='", fixed(box, 1),
                 "' height='19' rx='4' class='box'/><text class='s' x='",
                 fixed(left ? px - 10 - box / 2 : px + 10 + box / 2, 1), "' y='", fixed(py + 21.5, 1),
                 "' text-anchor='middle'>", escaped(words), "</text>");
    }
    return "";
  }

  std::string hovers() const {
    std::vector<const Sample*> fullest(kHovers, nullptr);
    std::vector<int32_t> steps;
    for (int h = 0; h < kHovers; ++h) {
      for (int i = h * kColumns / kHovers; i < (h + 1) * kColumns / kHovers; ++i)
        if (fullest[h] == nullptr || samples_[i].total > fullest[h]->total) fullest[h] = &samples_[i];
      if (fullest[h]->step >= 0) steps.push_back(fullest[h]->step);
    }
    // Steps never go back in time: ascending.
    const std::vector<std::vector<int32_t>> named = owners(p_, index_, plan_, steps, kOwners);
    size_t next = 0;
    std::string out;
    for (int h = 0; h < kHovers; ++h) {
      const Sample& sample = *fullest[h];
      out += cat("<rect class='h' x='", fixed(kPlotLeft + kWidth * h / kHovers, 1), "' y='", kPlotTop,
                 "' width='", fixed(kWidth / kHovers, 2), "' height='", kPlotHeight, "'><title>",
                 human_bytes(sample.total));
      if (sample.step >= 0) out += cat(" at ", label(step_words(p_, plan_.steps[sample.step]), 60));
      for (size_t k = 0; k < c_.names.size(); ++k)
        if (sample.bytes[k] > 0) out += cat("\n", human_bytes(sample.bytes[k]), "  ", label(c_.names[k], 24));
      if (sample.step >= 0) {
        const std::vector<int32_t>& list = named[next++];
        if (!list.empty()) out += "\nlargest besides persistent:";
        for (int32_t v : list)
          out += cat("\n", human_bytes(p_.values[v].bytes), "  ", label(p_.values[v].name, 60));
      }
      out += "</title></rect>";
    }
    return out;
  }

  static constexpr double kWidth = kPlotRight - kPlotLeft;

  const Problem& p_;
  const Plan& plan_;
  const Timeline& line_;
  const Categories& c_;
  Index index_;
  std::vector<Sample> samples_;
  PeakView peak_;
  bool budget_shown_ = false;
  double top_ = 1, foot_ = 0;
};

}  // namespace

std::string memory_picture(const Problem& p, const Plan& plan, const Timeline& line, const Categories& c,
                           std::string_view title) {
  return Picture(p, plan, line, c).draw(title);
}

std::string to_svg(const Problem& p, const Plan& plan, const ReportOptions& options) {
  const Timeline line = simulate(p, plan);
  const std::string title = options.title.empty()
                                ? "Device memory over one forward and backward"
                                : cat("Device memory over one forward and backward: ", options.title);
  std::string svg = memory_picture(p, plan, line, categorize(p, Index(p), plan, options), title);
  svg.insert(svg.find('>') + 1, picture_style());
  return svg;
}

}  // namespace cairn::plan
