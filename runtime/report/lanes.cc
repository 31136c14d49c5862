// The lanes: what computes and what is copied, when. What is too narrow to be seen is drawn together.
#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

constexpr int kRow = 30, kBar = 20, kLanesTop = 34;

struct Kind {
  std::string_view name, color;
};
constexpr Kind kForward = {"forward", color::kBlue}, kBackward = {"backward", color::kSky},
               kAgain = {"run again", color::kOrange}, kOut = {"copy out", color::kGreen},
               kIn = {"copy in", color::kMint}, kStall = {"compute waits", ""};

std::string paint(const Kind& kind) {
  return kind.color.empty() ? "class='stall' fill-opacity='.38'" : cat("fill='", kind.color, "'");
}

constexpr const Kind* kOrder[] = {&kForward, &kBackward, &kAgain, &kOut, &kIn, &kStall};

struct Bar {
  double begin, end;
  const Kind* kind;
  size_t step;
};

// Neighbours too narrow to be seen one by one, together: seconds by kind, in kOrder.
struct Cluster {
  double begin = 0, end = 0;
  std::array<double, std::size(kOrder)> seconds = {};
  size_t step = 0;
  int count = 0;

  void add(const Bar& bar) {
    if (count++ == 0) {
      begin = bar.begin;
      step = bar.step;
    }
    end = bar.end;
    for (size_t k = 0; k < std::size(kOrder); ++k)
      if (kOrder[k] == bar.kind) seconds[k] += bar.end - bar.begin;
  }
};

std::vector<Cluster> clustered(const std::vector<Bar>& bars, double pixel) {
  std::vector<Cluster> out;
  bool open = false;
  for (const Bar& bar : bars) {
    if (bar.end <= bar.begin) continue;
    const bool wide = bar.end - bar.begin >= 2 * pixel;
    if (wide || !open || bar.begin - out.back().end > pixel / 4 || bar.end - out.back().begin > 4 * pixel)
      out.emplace_back();
    out.back().add(bar);
    open = !wide;
  }
  return out;
}

std::string words(const Problem& p, const Plan& plan, const Cluster& c) {
  std::string out;
  for (size_t k = 0; k < std::size(kOrder); ++k)
    if (c.seconds[k] > 0)
      out += c.count == 1 ? cat(kOrder[k]->name, ": ")
                          : cat(kOrder[k]->name, " ", human_seconds(c.seconds[k]), "\n");
  out += label(step_words(p, plan.steps[c.step]), 60);
  if (c.count > 1) out += cat(" and ", c.count - 1, " more");
  return out + cat("\n", human_seconds(c.end - c.begin), " from ", human_seconds(c.begin));
}

}  // namespace

std::string lanes_picture(const Problem& p, const Plan& plan, const Timeline& line) {
  struct Lane {
    std::string name;
    std::vector<Bar> bars;
  };
  std::vector<Lane> lanes = {{"compute", {}}};
  for (const Link& link : p.links) {
    lanes.push_back({cat("to ", link.tier), {}});
    lanes.push_back({cat("from ", link.tier), {}});
  }
  std::vector<uint8_t> ran(p.ops.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const auto [begin, end] = line.step_span[s];
    if (step.kind == StepKind::kRun) {
      const Kind* kind = ran[step.index] ? &kAgain : step.index < p.backward_begin ? &kForward : &kBackward;
      ran[step.index] = 1;
      lanes[0].bars.push_back({begin, end, kind, s});
    } else if (step.kind == StepKind::kWaitIn || step.kind == StepKind::kWaitOut) {
      lanes[0].bars.push_back({begin, end, &kStall, s});
    } else if (step.kind == StepKind::kOut || step.kind == StepKind::kIn) {
      const bool out = step.kind == StepKind::kOut;
      lanes[1 + 2 * step.tier + (out ? 0 : 1)].bars.push_back({begin, end, out ? &kOut : &kIn, s});
    }
  }
  lanes.erase(std::remove_if(lanes.begin() + 1, lanes.end(), [](const Lane& l) { return l.bars.empty(); }),
              lanes.end());
  const double width = kPlotRight - kPlotLeft, scale = line.seconds > 0 ? width / line.seconds : 0;
  const int height = kLanesTop + kRow * static_cast<int>(lanes.size());
  std::string out = open_svg(height, "Lanes of compute and copies over one forward and backward");
  double x = kPlotLeft;
  std::vector<const Kind*> used;
  for (const Lane& lane : lanes)
    for (const Bar& bar : lane.bars)
      if (bar.end > bar.begin && std::find(used.begin(), used.end(), bar.kind) == used.end())
        used.push_back(bar.kind);
  for (const Kind* kind : used) {
    out += cat("<rect x='", fixed(x, 1), "' y='6' width='11' height='11' rx='2' ", paint(*kind),
               "/><text x='", fixed(x + 16, 1), "' y='15.5' class='s'>", kind->name, "</text>");
    x += 32 + text_width(kind->name, 11.5);
  }
  for (size_t k = 0; k < lanes.size(); ++k) {
    const int y = kLanesTop + kRow * static_cast<int>(k);
    out += cat("<text text-anchor='end' class='s' x='", kPlotLeft - 8, "' y='", y + 14, "'>",
               label(lanes[k].name, 10), "</text><rect class='lane' x='", kPlotLeft, "' y='", y, "' width='",
               width, "' height='", kBar, "'/>");
    for (const Cluster& c : clustered(lanes[k].bars, scale > 0 ? 1 / scale : 0)) {
      const double left = kPlotLeft + c.begin * scale, across = std::max(.3, (c.end - c.begin) * scale - .15);
      out += "<g>";
      double top = y;
      for (size_t i = 0; i < std::size(kOrder); ++i) {  // several kinds: stacked by their share of the time
        if (c.seconds[i] <= 0) continue;
        const double part = kBar * c.seconds[i] / (c.end - c.begin);
        out += cat("<rect x='", fixed(left, 2), "' y='", fixed(top, 1), "' width='", fixed(across, 2),
                   "' height='", fixed(part, 1), "' ", paint(*kOrder[i]), "/>");
        top += part;
      }
      out += cat("<title>", words(p, plan, c), "</title></g>");
    }
  }
  return out + "</svg>\n";
}

}  // namespace cairn::plan
