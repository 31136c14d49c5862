// One self-contained page: nothing loaded from elsewhere.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxPeak = 14;  // of the peak's largest values

std::string card(std::string_view value, std::string_view words) {
  return cat("<div class='card'><b>", value, "</b><span>", words, "</span></div>\n");
}

std::string cards(const Problem& p, const Plan& plan, const Timeline& line) {
  std::string out = "<div class='cards'>\n";
  out += card(human_bytes(plan.arena_bytes), p.budget_bytes > 0
                                                 ? cat("arena, of a budget of ", human_bytes(p.budget_bytes))
                                                 : std::string("arena; no budget was given"));
  const double share = plan.keep_all_seconds > 0 ? plan.predicted_seconds / plan.keep_all_seconds - 1 : 0;
  out += card(human_seconds(plan.predicted_seconds),
              share < 5e-7 ? std::string("forward and backward, as if everything were kept")
                           : cat("forward and backward, +", percent(share), " over keeping everything"));
  out += card(percent(plan.gap),
              cat("over the lower bound of ", human_seconds(plan.bound_seconds), " for any plan"));
  out += card(human_bytes(plan.totals.keep_bytes), "kept for backward");
  out += card(human_bytes(plan.totals.recompute_bytes),
              cat("recomputed, in ", human_seconds(line.recompute_seconds)));
  for (size_t t = 0; t < p.links.size(); ++t)
    out += card(human_bytes(plan.totals.offload_bytes[t]),
                cat("offloaded to ", label(p.links[t].tier, 24), "; ",
                    line.stall_seconds > 0 ? "compute waits " + human_seconds(line.stall_seconds)
                                           : "compute never waits"));
  return out + "</div>\n";
}

// What the plan is of: "word: text" lines as a list.
std::string facts_section(const ReportOptions& options) {
  if (options.facts.empty()) return "";
  std::string out = "<dl>";
  for (const std::string& fact : options.facts) {
    const size_t colon = std::min(fact.find(": "), fact.size());
    const std::string_view text = std::string_view(fact).substr(std::min(colon + 2, fact.size()));
    out += cat("<dt>", label(std::string_view(fact).substr(0, colon), 40), "</dt><dd>", label(text, 2000),
               "</dd>");
  }
  return out + "</dl>\n";
}

std::string bar(std::string_view name, std::string_view color, int64_t bytes, int64_t most) {
  const double share = most > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(most) : 0;
  return cat("<div class='bar'><div title='", label(name, 400), "'>", label(name),
             "</div><div><i style='width:", fixed(share, 2), "%;background:", color, "'></i></div><u>",
             human_bytes(bytes), "</u></div>\n");
}

std::string peak_section(const Problem& p, const Index& index, const Plan& plan, const Categories& c) {
  const PeakView peak = view_peak(p, index, plan);
  if (peak.step < 0) return "";
  std::string out =
      cat("<section><h2>What forms the peak</h2><p>", human_bytes(peak.bytes), " are alive at instruction ",
          peak.step, ", <b>", label(step_words(p, plan.steps[peak.step])), "</b>, in an arena of ",
          human_bytes(plan.arena_bytes), " (",
          percent(peak.bytes > 0 ? static_cast<double>(plan.arena_bytes) / static_cast<double>(peak.bytes) - 1
                                 : 0),
          " lost to the layout).</p>\n");
  std::vector<int64_t> sums(c.names.size(), 0);
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].persistent) sums[c.of_value[v]] += p.values[v].bytes;
  for (int32_t v : peak.values) sums[c.of_value[v]] += p.values[v].bytes;
  sums[c.workspace()] = peak.workspace;
  const int64_t most = *std::max_element(sums.begin(), sums.end());
  for (size_t k = 0; k < sums.size(); ++k)
    if (sums[k] > 0) out += bar(c.names[k], c.colors[k], sums[k], most);
  if (peak.values.empty()) return out + "</section>\n";
  out += "<p style='margin-top:14px'>The largest values alive there that are not persistent:</p>\n";
  const int64_t largest = p.values[peak.values[0]].bytes;
  int64_t rest = 0;
  for (size_t k = 0; k < peak.values.size(); ++k) {
    const int32_t v = peak.values[k];
    if (k < kMaxPeak)
      out += bar(p.values[v].name, c.colors[c.of_value[v]], p.values[v].bytes, largest);
    else
      rest += p.values[v].bytes;
  }
  if (rest > 0)
    out += cat("<p style='margin-top:8px'>and ", peak.values.size() - kMaxPeak, " more, together ",
               human_bytes(rest), "</p>\n");
  return out + "</section>\n";
}

std::string curve_section(const Problem& p, const Plan& plan, const ReportOptions& options) {
  if (options.curve_budgets == 0 || p.ops.empty()) return "";
  Sweep found = sweep(p, options.curve_budgets, options.other_form);
  const SweepPoint own = {p.budget_bytes > 0 ? p.budget_bytes : plan.arena_bytes,
                          plan.arena_bytes,
                          plan.predicted_seconds,
                          plan.bound_seconds,
                          plan.gap,
                          plan.solve_seconds,
                          plan.totals,
                          plan.tier_arena_bytes};
  // A budget beyond what keeping everything takes would only widen the picture.
  const auto at = std::find_if(found.points.begin(), found.points.end(), [&](const SweepPoint& point) {
    return point.budget_bytes <= own.budget_bytes;
  });
  if (found.points.empty() ||
      (at != found.points.begin() && (at == found.points.end() || at->budget_bytes != own.budget_bytes)))
    found.points.insert(at, own);
  return cat("<section><div class='picture'>", curve_picture(p, plan, found), "</div>",
             curve_words(p, plan, found), "</section>\n");
}

}  // namespace

std::string to_html(const Problem& p, const Plan& plan, const ReportOptions& options) {
  const Index index(p);
  const Timeline line = simulate(p, plan);
  const Categories c = categorize(p, index, plan, options);
  const std::string title = options.title.empty() ? "Memory plan" : options.title;
  return cat(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"><title>",
      label(title), "</title><style>", page_style(), "</style>", picture_style(), "</head><body><main>\n<h1>",
      label(title), "</h1><p>", p.ops.size(), " ops (", p.backward_begin, " forward), ", p.values.size(),
      " values; ", plan.steps.size(), " instructions, planned in ", human_seconds(plan.solve_seconds),
      "</p>\n", facts_section(options), cards(p, plan, line), curve_section(p, plan, options), "<section>",
      "<div class='picture'>",
      memory_picture(p, plan, line, c, "Device memory over one forward and backward"),
      lanes_picture(p, plan, line), "</div></section>\n", peak_section(p, index, plan, c),
      values_section(p, index, plan), "</main><script>", page_script(), "</script></body></html>\n");
}

}  // namespace cairn::plan
