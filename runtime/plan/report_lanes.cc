// The lanes: what computes and what is copied, when. What is narrower than a pixel is merged.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/plan/report.h"

namespace cairn::plan {
namespace {

constexpr int kRow = 30, kBar = 20, kTop = 34;

struct Kind {
  std::string_view name, color;
};
constexpr Kind kForward = {"forward", "#2b6cb0"}, kBackward = {"backward", "#8b62b5"},
               kAgain = {"run again", "#dd8a2f"}, kOut = {"copy out", "#2f9e73"},
               kIn = {"copy in", "#4ba3a8"}, kStall = {"compute waits", "#e6b8b2"};

struct Bar {
  double begin, end;
  const Kind* kind;
  size_t step;
  int count = 1;
};

// Joins neighbours of one kind that together stay under a pixel and a half.
std::vector<Bar> merged(const std::vector<Bar>& bars, double pixel) {
  std::vector<Bar> out;
  for (const Bar& bar : bars) {
    if (bar.end <= bar.begin) continue;
    if (!out.empty() && out.back().kind == bar.kind && bar.begin - out.back().end < pixel / 4 &&
        bar.end - out.back().begin < 1.5 * pixel) {
      out.back().end = bar.end;
      out.back().count += bar.count;
    } else {
      out.push_back(bar);
    }
  }
  return out;
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
      const Kind* kind = ran[step.index] ? &kAgain : step.index < p.turnaround ? &kForward : &kBackward;
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
  const int height = kTop + kRow * static_cast<int>(lanes.size());
  std::string out = cat(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ", kPictureWidth, " ", height,
      "' font-family='system-ui, Helvetica, Arial, sans-serif' font-size='11.5' fill='#20262e' role='img'>");
  int x = kPlotLeft;
  std::vector<const Kind*> used;
  for (const Lane& lane : lanes)
    for (const Bar& bar : lane.bars)
      if (bar.end > bar.begin && std::find(used.begin(), used.end(), bar.kind) == used.end())
        used.push_back(bar.kind);
  for (const Kind* kind : used) {
    out += cat("<rect x='", x, "' y='6' width='11' height='11' rx='2' fill='", kind->color, "'/><text x='",
               x + 16, "' y='15.5'>", kind->name, "</text>");
    x += 38 + 6 * static_cast<int>(kind->name.size());
  }
  for (size_t k = 0; k < lanes.size(); ++k) {
    const int y = kTop + kRow * static_cast<int>(k);
    out += cat("<text text-anchor='end' x='", kPlotLeft - 8, "' y='", y + 14, "'>", escaped(lanes[k].name),
               "</text><rect x='", kPlotLeft, "' y='", y, "' width='", width, "' height='", kBar,
               "' fill='#f3f5f7'/>");
    for (const Bar& bar : merged(lanes[k].bars, scale > 0 ? 1 / scale : 0)) {
      out += cat("<rect x='", fixed(kPlotLeft + bar.begin * scale, 2), "' y='", y, "' width='",
                 fixed(std::max(.3, (bar.end - bar.begin) * scale - .15), 2), "' height='", kBar, "' fill='",
                 bar.kind->color, "'><title>", bar.kind->name, ": ",
                 escaped(step_words(p, plan.steps[bar.step])));
      if (bar.count > 1) out += cat(" and ", bar.count - 1, " more");
      out += cat("\n", human_seconds(bar.end - bar.begin), " from ", human_seconds(bar.begin),
                 "</title></rect>");
    }
  }
  return out + "</svg>\n";
}

}  // namespace cairn::plan
