// The trade-off curve: seconds per step over the budget, for this planner, the bound, and what people do by
// hand.
#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

constexpr int kCurveTop = 66, kCurveHeight = 290, kBottom = kCurveTop + kCurveHeight,
              kCurvePicture = kBottom + 62;
constexpr int kRight = kPlotRight - 62;  // room for percents
constexpr double kFont = 11.5;

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

struct Look {
  std::string_view name, color;
};
constexpr Look kByHand[] = {
    {"keep_all", color::kSlate}, {"per_layer", color::kVermillion}, {"sqrt_n", color::kPurple}};

std::string_view color_of(const Baseline& b) {
  for (const Look& look : kByHand)
    if (look.name == b.name) return look.color;
  return color::kGrey;
}

// A marker of a shape of its own, so that colours are not needed to tell them apart.
std::string marker(const Baseline& b, double x, double y) {
  const std::string paint = cat("' fill='", color_of(b), "' class='edge' stroke-width='1.2'");
  if (b.name == "per_layer")
    return cat("<path d='M", fixed(x, 1), ",", fixed(y - 7, 1), "l7,7l-7,7l-7,-7Z", paint);
  if (b.name == "sqrt_n") return cat("<path d='M", fixed(x, 1), ",", fixed(y - 7, 1), "l7,12h-14Z", paint);
  return cat("<path d='M", fixed(x - 5.5, 1), ",", fixed(y - 5.5, 1), "h11v11h-11Z", paint);
}

std::string short_words(const Baseline& b) {
  return b.name == "keep_all" ? "keep all" : b.name == "per_layer" ? "per layer" : "\xe2\x88\x9an groups";
}

class Curve {
 public:
  Curve(const Problem& p, const Plan& plan, const Sweep& sweep)
      : p_(p),
        plan_(plan),
        sweep_(sweep),
        by_hand_(distinct_baselines(sweep)),
        keep_all_(sweep.keep_all_seconds) {
    double least = static_cast<double>(sweep.points.back().budget_bytes), most = 0;
    for (const SweepPoint& point : sweep.points)
      most = std::max(most, static_cast<double>(point.budget_bytes));
    double highest = plan.predicted_seconds, farthest = plan.predicted_seconds;
    for (const Baseline& b : by_hand_) {
      most = std::max(most, static_cast<double>(b.arena_bytes));
      least = std::min(least, static_cast<double>(b.arena_bytes));
      highest = std::max(highest, b.seconds);
    }
    for (const SweepPoint& point : sweep.points) farthest = std::max(farthest, point.seconds);
    most = std::max(most, static_cast<double>(plan.arena_bytes));
    // Wide enough that bytes differ in the digits that the axis shows.
    const double margin = std::max({1.0, .03 * (most - least), .05 * most - (most - least) / 2});
    left_ = std::max(0.0, least - margin);
    right_ = most + margin;
    // The last bytes can cost many times the step: what is far above everything else is cut off.
    const double usual = std::max({highest - keep_all_, .02 * keep_all_, 1e-12});
    clipped_ = farthest - keep_all_ > 3 * usual;
    top_ = keep_all_ + 1.1 * (clipped_ ? 1.6 * usual : std::max(usual, farthest - keep_all_));
    foot_ = keep_all_ - .06 * (top_ - keep_all_);
  }

  std::string draw() {
    // Labels keep off the budget's line, so that is drawn before them: a call's arguments have no order.
    const std::string line = budget(), marks = markers();
    std::string out = cat(
        open_svg(kCurvePicture, "Seconds of forward and backward over the budget"),
        "<rect width='100%' height='100%' class='bg'/><text x='", kPlotLeft,
        "' y='22' font-size='15' font-weight='600'>Seconds of forward and backward over the budget</text>",
        legend(), axes(), "<clipPath id='curve-plot'><rect x='", kPlotLeft, "' y='", kCurveTop - 4,
        "' width='", kRight - kPlotLeft, "' height='", kCurveHeight + 4,
        "'/></clipPath><g clip-path='url(#curve-plot)'>", lines(), "</g>", line, marks, cut_off(), hovers());
    return out + "</svg>\n";
  }

 private:
  double x(double bytes) const {
    return kPlotLeft + (kRight - kPlotLeft) * (bytes - left_) / (right_ - left_);
  }
  double y(double seconds) const { return kBottom - kCurveHeight * (seconds - foot_) / (top_ - foot_); }
  double px(const SweepPoint& point) const { return x(static_cast<double>(point.budget_bytes)); }

  std::string legend() const {
    std::string out;
    double at = kPlotLeft;
    const auto add = [&](std::string_view mark, std::string_view words) {
      out += cat("<g transform='translate(", fixed(at, 1), ",44)'>", mark, "</g><text class='s' x='",
                 fixed(at + 24, 1), "' y='47.5'>", words, "</text>");
      at += 40 + text_width(words, kFont);
    };
    add(cat("<path d='M0,0h18' stroke='", color::kBlue, "' stroke-width='2.6'/>"), "this planner");
    add(cat("<path d='M0,0h18v5h-18Z' fill='", color::kGreen,
            "' fill-opacity='.2'/><path d='M0,0h18' stroke='", color::kGreen, "' stroke-width='1.6'/>"),
        "lower bound: no plan is below");
    for (const Baseline& b : by_hand_) add(cat(marker(b, 9, 0), "/>"), escaped(b.words));
    return out;
  }

  std::string axes() const {
    std::string out;
    const double step = seconds_tick(top_ - foot_, 8, top_);
    for (double s = std::ceil(foot_ / step) * step; s <= top_; s += step)
      out += cat("<text class='t' text-anchor='end' x='", kPlotLeft - 8, "' y='", fixed(y(s) + 4, 1), "'>",
                 tick_seconds(s), "</text>");
    if (keep_all_ > 0) {
      const double share = tick((top_ - keep_all_) / keep_all_, 6, false);
      for (int k = 0; keep_all_ * (1 + k * share) <= top_; ++k) {
        const std::string at = fixed(y(keep_all_ * (1 + k * share)), 1);
        out += cat("<line class='g' x1='", kPlotLeft, "' x2='", kRight, "' y1='", at, "' y2='", at,
                   "'/><text class='t' x='", kRight + 8, "' y='", at, "' dy='4'>", k ? "+" : "",
                   trimmed_percent(k * share), "</text>");
      }
    }
    const double bytes = tick(right_ - left_, 12, true);
    for (double b = std::ceil(left_ / bytes) * bytes; b <= right_; b += bytes)
      if (x(b) > kPlotLeft + 20 && x(b) < kRight - 20)
        out += cat("<text class='t' text-anchor='middle' x='", fixed(x(b), 1), "' y='", kBottom + 18, "'>",
                   human_bytes(static_cast<int64_t>(b)), "</text><line class='g' x1='", fixed(x(b), 1),
                   "' x2='", fixed(x(b), 1), "' y1='", kBottom, "' y2='", kBottom + 5, "'/>");
    const auto persistent = p_.persistent_bytes();
    return cat(out, "<line class='g' x1='", kPlotLeft, "' x2='", kRight, "' y1='", kBottom, "' y2='", kBottom,
               "'/><text class='t' text-anchor='middle' x='", (kPlotLeft + kRight) / 2, "' y='", kBottom + 52,
               "'>budget of the device",
               persistent > 0 ? cat("; ", human_bytes(persistent), " of it are persistent") : std::string(),
               "</text>");
  }

  static std::string trimmed_percent(double share) {
    std::string digits = fixed(100 * share, 4);
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
    return digits + " %";
  }

  template <class Seconds>
  std::string path(const Seconds& seconds) const {
    std::string d;
    for (size_t k = sweep_.points.size(); k-- > 0;)
      d += cat(d.empty() ? "M" : "L", fixed(px(sweep_.points[k]), 1), ",",
               fixed(std::max(-1e5, y(seconds(sweep_.points[k]))), 1));
    return d + cat("H", kRight);
  }

  std::string lines() const {
    const auto planned = [](const SweepPoint& point) { return point.seconds; };
    const auto bound = [](const SweepPoint& point) { return point.bound_seconds; };
    std::string out;
    for (const Baseline& b : by_hand_)  // a plan that fits a budget fits any larger one
      out += cat("<path fill='none' stroke='", color_of(b), "' stroke-opacity='.55' stroke-dasharray='1 4' ",
                 "stroke-width='1.6' stroke-linecap='round' d='M",
                 fixed(x(static_cast<double>(b.arena_bytes)), 1), ",", fixed(y(b.seconds), 1), "H", kRight,
                 "'/>");
    out =
        cat("<path stroke='none' fill='", color::kGreen, "' fill-opacity='.13' d='", path(bound), "V",
            kBottom, "H", fixed(px(sweep_.points.back()), 1), "Z'/><path fill='none' stroke='", color::kGreen,
            "' stroke-width='1.6' d='", path(bound), "'/>", out, "<path fill='none' stroke='", color::kBlue,
            "' stroke-width='2.4' stroke-linejoin='round' d='", path(planned), "'/>");
    for (const SweepPoint& point : sweep_.points)
      out += cat("<circle cx='", fixed(px(point), 1), "' cy='", fixed(std::max(-1e5, y(point.seconds)), 1),
                 "' r='3' fill='", color::kBlue, "' class='edge'/>");
    return out;
  }

  std::string budget() {
    const bool given = p_.budget_bytes > 0;
    const double at = x(static_cast<double>(given ? p_.budget_bytes : plan_.arena_bytes));
    std::string words = given ? cat("budget ", human_bytes(p_.budget_bytes)) : std::string("no budget given");
    if (at > kRight)
      return cat("<text class='s limit-t' text-anchor='end' x='", kRight - 6, "' y='", kCurveTop + 8, "'>",
                 words, ", beyond the picture</text>");
    // Its words stand below the axis, where no label of the curve is.
    const double half = text_width(words, kFont) / 2;
    taken_.push_back({at - 5, kCurveTop - 0.0, at + 5, kBottom - 0.0});
    return cat("<line class='limit' stroke-width='1.4' stroke-dasharray='6 4' x1='", fixed(at, 1), "' x2='",
               fixed(at, 1), "' y1='", kCurveTop - 4, "' y2='", kBottom + 5,
               "'/><text class='s limit-t' text-anchor='middle' x='",
               fixed(std::clamp(at, kPlotLeft + half, kRight - half), 1), "' y='", kBottom + 33, "'>", words,
               "</text>");
  }

  std::string markers() {
    std::string out;
    struct Mark {
      double x, y;
      std::string words;
    };
    std::vector<Mark> marks;
    for (const Baseline& b : by_hand_) {
      const double mx = x(static_cast<double>(b.arena_bytes)), my = y(b.seconds);
      out += cat(marker(b, mx, my), "><title>", escaped(b.words), "\n", human_bytes(b.arena_bytes), "\n",
                 human_seconds(b.seconds), over(b.seconds, keep_all_), "</title></path>");
      marks.push_back({mx, my,
                       b.name == "keep_all" ? short_words(b)
                                            : cat(short_words(b), " +", percent(b.seconds / keep_all_ - 1))});
    }
    const double mx = x(static_cast<double>(plan_.arena_bytes)),
                 my = std::max(kCurveTop - 0.0, y(plan_.predicted_seconds));
    out += cat("<circle class='ring' stroke-width='2' r='7.5' cx='", fixed(mx, 1), "' cy='", fixed(my, 1),
               "'/><circle r='4' fill='", color::kBlue, "' class='edge' cx='", fixed(mx, 1), "' cy='",
               fixed(my, 1), "'/>");
    const double share = keep_all_ > 0 ? plan_.predicted_seconds / keep_all_ - 1 : 0;
    marks.insert(marks.begin(), {mx, my, share < 5e-7 ? "this plan" : cat("this plan +", percent(share))});
    for (const Mark& mark : marks) taken_.push_back({mark.x - 8, mark.y - 8, mark.x + 8, mark.y + 8});
    for (size_t k = 0; k < marks.size(); ++k) out += place(marks[k].x, marks[k].y, marks[k].words, k == 0);
    return out;
  }

  // Where it covers least: around the marker, not over other labels, markers or the curve.
  std::string place(double mx, double my, std::string_view words, bool bold) {
    const double width = text_width(words, kFont) * (bold ? 1.12 : 1);
    constexpr double kHalf = 8;
    struct Spot {
      double x, y;
    };
    std::vector<Spot> spots;
    for (double away : {0.0, 14.0, 30.0})
      for (const Spot& s : {Spot{mx + 12 + away / 2, my - away}, Spot{mx - width / 2, my - 18 - away},
                            Spot{mx + 10, my - 14 - away}, Spot{mx - width / 2, my + 18 + away},
                            Spot{mx + 10, my + 14 + away}, Spot{mx - 12 - width, my + away},
                            Spot{mx - 12 - width, my - 14 - away}, Spot{mx - 12 - width, my + 14 + away}})
        spots.push_back(s);
    double least = INFINITY;
    Box best{};
    for (const Spot& s : spots) {
      const Box box{s.x, s.y - kHalf, s.x + width, s.y + kHalf};
      double cost = 1e-3 * (std::abs(s.x - mx) + std::abs(s.y - my));
      if (box.left < kPlotLeft + 2 || box.right > kRight - 2 || box.top < kCurveTop - 6 ||
          box.bottom > kBottom - 1)
        cost += 100;
      for (const Box& other : taken_) cost += box.meets(other) ? 10 : 0;
      cost += 2 * covered(box);
      if (cost >= least) continue;
      least = cost;
      best = box;
    }
    taken_.push_back(best);
    return cat("<text class='s halo", bold ? " b" : "", "' x='", fixed(best.left, 1), "' y='",
               fixed((best.top + best.bottom) / 2 + 4, 1), "'>", words, "</text>");
  }

  // Of 20 places along each piece of the curve, how many lie in the box.
  int covered(const Box& box) const {
    int count = 0;
    const auto look = [&](double ax, double ay, double bx, double by) {
      for (int k = 0; k < 20; ++k) {
        const double cx = ax + (bx - ax) * k / 20, cy = ay + (by - ay) * k / 20;
        count += cx > box.left && cx < box.right && cy > box.top && cy < box.bottom;
      }
    };
    for (size_t k = 0; k + 1 < sweep_.points.size(); ++k)
      look(px(sweep_.points[k]), y(sweep_.points[k].seconds), px(sweep_.points[k + 1]),
           y(sweep_.points[k + 1].seconds));
    for (const Baseline& b : by_hand_)
      look(x(static_cast<double>(b.arena_bytes)), y(b.seconds), kRight, y(b.seconds));
    return count;
  }

  std::string cut_off() const {
    if (!clipped_) return "";
    const SweepPoint& last = sweep_.points.back();
    return cat("<text class='t' text-anchor='end' x='", kPlotRight,
               "' y='22'>above the picture: ", human_seconds(last.seconds), over(last.seconds, keep_all_),
               " under the smallest budget, ", human_bytes(last.budget_bytes), "</text>");
  }

  std::string hovers() const {
    std::string out;
    for (size_t k = 0; k < sweep_.points.size(); ++k) {
      const SweepPoint& point = sweep_.points[k];
      const double right = k == 0 ? kRight : (px(point) + px(sweep_.points[k - 1])) / 2;
      const double left =
          k + 1 == sweep_.points.size() ? kPlotLeft : (px(point) + px(sweep_.points[k + 1])) / 2;
      out += cat("<rect class='h' x='", fixed(left, 1), "' y='", kCurveTop, "' width='",
                 fixed(std::max(0.0, right - left), 1), "' height='", kCurveHeight, "'><title>budget ",
                 human_bytes(point.budget_bytes), "\npredicted ", human_seconds(point.seconds),
                 over(point.seconds, keep_all_), "\nbound ", human_seconds(point.bound_seconds), ", gap ",
                 percent(point.gap), "\n", human_bytes(point.totals.keep_bytes), " kept, ",
                 human_bytes(point.totals.recompute_bytes), " recomputed");
      for (size_t t = 0; t < p_.links.size(); ++t)
        if (point.totals.offload_bytes[t] > 0)
          out += cat("\n", human_bytes(point.totals.offload_bytes[t]), " offloaded to ",
                     label(p_.links[t].tier, 24));
      out += "</title></rect>";
    }
    // Their own hovers lie below the strips: small ones on top.
    for (const Baseline& b : by_hand_)
      out +=
          cat("<circle class='h' r='9' cx='", fixed(x(static_cast<double>(b.arena_bytes)), 1), "' cy='",
              fixed(y(b.seconds), 1), "'><title>", escaped(b.words), "\nneeds ", human_bytes(b.arena_bytes),
              "\npredicted ", human_seconds(b.seconds), over(b.seconds, keep_all_), "</title></circle>");
    return out;
  }

  const Problem& p_;
  const Plan& plan_;
  const Sweep& sweep_;
  std::vector<Baseline> by_hand_;
  double keep_all_, left_ = 0, right_ = 1, foot_ = 0, top_ = 1;
  bool clipped_ = false;
  std::vector<Box> taken_;
};

}  // namespace

std::string curve_picture(const Problem& p, const Plan& plan, const Sweep& sweep) {
  return Curve(p, plan, sweep).draw();
}

}  // namespace cairn::plan
