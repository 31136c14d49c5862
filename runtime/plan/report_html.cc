// One self-contained page: no scripts, nothing loaded from elsewhere.
#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/plan/report.h"

namespace cairn::plan {
namespace {

constexpr size_t kMostRows = 2000;  // of the table of values
constexpr size_t kMostPeak = 14;    // of the peak's largest values

constexpr std::string_view kStyle = R"(
:root { color-scheme: light }
body { margin: 0; background: #f4f6f8; color: #20262e; font: 14px/1.45 system-ui, Helvetica, Arial, sans-serif }
main { max-width: 1220px; margin: 0 auto; padding: 28px 20px 60px }
h1 { font-size: 22px; margin: 0 0 4px } h2 { font-size: 16px; margin: 0 0 10px }
p { margin: 0 0 12px; color: #55606d }
section { background: #fff; border: 1px solid #e1e5ea; border-radius: 10px; padding: 18px 20px; margin-top: 16px }
svg { display: block; width: 100%; height: auto }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px; margin-top: 16px }
.card { background: #fff; border: 1px solid #e1e5ea; border-radius: 10px; padding: 12px 14px }
.card b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums }
.card span { color: #55606d; font-size: 12.5px }
.bar { display: grid; grid-template-columns: minmax(160px, 300px) 1fr 96px; gap: 12px; align-items: center; margin: 3px 0; font-size: 13px }
.bar div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.bar i { display: block; height: 14px; border-radius: 3px; min-width: 1px }
.bar u { text-decoration: none; text-align: right; font-variant-numeric: tabular-nums }
.scroll { max-height: 640px; overflow: auto }
table { border-collapse: collapse; width: 100%; font-size: 13px }
th { position: sticky; top: 0; background: #fff; text-align: left; border-bottom: 2px solid #e1e5ea; padding: 6px 10px; font-weight: 600 }
td { border-bottom: 1px solid #eef1f4; padding: 4px 10px; vertical-align: top } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.tag { border-radius: 9px; padding: 1px 8px; font-size: 12px; white-space: nowrap }
.keep { background: #dbe8f6; color: #1d4f86 } .recompute { background: #fae6cf; color: #8a4f0f }
.offload { background: #d4efe3; color: #1b6a4b } .persistent { background: #e6e9ed; color: #4a535e }
)";

std::string card(std::string_view value, std::string_view words) {
  return cat("<div class='card'><b>", value, "</b><span>", words, "</span></div>\n");
}

std::string percent(double x) { return cat(fixed(100 * x, x < .1 ? 2 : 1), " %"); }

std::string cards(const Problem& p, const Plan& plan, const Timeline& line) {
  std::string out = "<div class='cards'>\n";
  out += card(human_bytes(plan.arena_bytes), p.budget_bytes > 0
                                                 ? cat("arena, of a budget of ", human_bytes(p.budget_bytes))
                                                 : std::string("arena; no budget was given"));
  out += card(human_seconds(plan.predicted_seconds),
              plan.keep_all_seconds > 0
                  ? cat("a step; ", percent(plan.predicted_seconds / plan.keep_all_seconds - 1),
                        " over keeping everything")
                  : std::string("a step"));
  out += card(percent(plan.gap),
              cat("over the lower bound of ", human_seconds(plan.bound_seconds), " for any plan"));
  out += card(human_bytes(plan.totals.keep_bytes), "kept for backward");
  out += card(human_bytes(plan.totals.recompute_bytes),
              cat("recomputed, in ", human_seconds(line.recompute_seconds)));
  for (size_t t = 0; t < p.links.size(); ++t)
    out += card(human_bytes(plan.totals.offload_bytes[t]),
                cat("offloaded to ", escaped(p.links[t].tier), "; ",
                    line.stall_seconds > 0 ? "compute waits " + human_seconds(line.stall_seconds)
                                           : "compute never waits"));
  return out + "</div>\n";
}

std::string bar(std::string_view name, std::string_view color, int64_t bytes, int64_t most) {
  const double share = most > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(most) : 0;
  return cat("<div class='bar'><div title='", escaped(name), "'>", escaped(name),
             "</div><div><i style='width:", fixed(share, 2), "%;background:", color, "'></i></div><u>",
             human_bytes(bytes), "</u></div>\n");
}

std::string peak_section(const Problem& p, const Index& index, const Plan& plan, const Categories& c) {
  const PeakView peak = view_peak(p, index, plan);
  if (peak.step < 0) return "";
  std::string out =
      cat("<section><h2>What forms the peak</h2><p>", human_bytes(peak.bytes), " are alive at step ",
          peak.step, ", <b>", escaped(step_words(p, plan.steps[peak.step])), "</b>, in an arena of ",
          human_bytes(plan.arena_bytes), " (",
          fixed(peak.bytes > 0
                    ? 100.0 * static_cast<double>(plan.arena_bytes) / static_cast<double>(peak.bytes) - 100
                    : 0,
                2),
          " % lost to the layout).</p>\n");
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
    if (k < kMostPeak)
      out += bar(p.values[v].name, c.colors[c.of_value[v]], p.values[v].bytes, largest);
    else
      rest += p.values[v].bytes;
  }
  if (rest > 0)
    out += cat("<p style='margin-top:8px'>and ", peak.values.size() - kMostPeak, " more, together ",
               human_bytes(rest), "</p>\n");
  return out + "</section>\n";
}

std::string table_section(const Problem& p, const Index& index, const Plan& plan) {
  constexpr std::string_view kNames[] = {"keep", "recompute", "offload", "persistent"};
  std::vector<size_t> order(p.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p.values[a].bytes > p.values[b].bytes; });
  std::string out =
      "<section><h2>Values, the largest first</h2><div class='scroll'><table><thead><tr><th>value</th><th "
      "class='n'>bytes</th>"
      "<th>region</th><th>decision</th><th>reason</th><th class='n'>offset</th><th class='n'>lifetime "
      "(steps)</th></tr></thead><tbody>\n";
  for (size_t k = 0; k < std::min(order.size(), kMostRows); ++k) {
    const size_t v = order[k];
    const ValuePlan& value = plan.values[v];
    const std::string_view kind = kNames[static_cast<size_t>(value.decision)];
    const int32_t region = index.maker[v] >= 0 ? p.ops[index.maker[v]].region : -1;
    out += cat(
        "<tr><td>", escaped(p.values[v].name), "</td><td class='n' title='", p.values[v].bytes, "'>",
        human_bytes(p.values[v].bytes), "</td><td>", region >= 0 ? escaped(p.regions[region].name) : "",
        "</td><td><span class='tag ", kind, "'>", kind,
        value.decision == Decision::kOffload ? cat(" to ", escaped(p.links[value.tier].tier)) : std::string(),
        "</span></td><td>", escaped(value.reason), "</td><td class='n'>", value.offset, "</td><td class='n'>",
        value.first_step, " – ", value.last_step, "</td></tr>\n");
  }
  out += "</tbody></table></div>";
  if (order.size() > kMostRows)
    out += cat("<p style='margin-top:10px'>", order.size() - kMostRows, " smaller values are not shown.</p>");
  return out + "</section>\n";
}

}  // namespace

std::string to_html(const Problem& p, const Plan& plan, const ReportOptions& options) {
  const Index index(p);
  const Timeline line = simulate(p, plan);
  const Categories c = categorize(p, index, plan, options);
  const std::string title = options.title.empty() ? "Memory plan" : options.title;
  return cat(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'>"
      "<title>",
      escaped(title), "</title><style>", kStyle, "</style></head><body><main>\n<h1>", escaped(title),
      "</h1><p>", p.ops.size(), " ops (", p.turnaround, " forward), ", p.values.size(), " values; ",
      plan.steps.size(), " steps, planned in ", human_seconds(plan.solve_seconds), "</p>\n",
      cards(p, plan, line), "<section>", memory_picture(p, plan, line, c, "Device memory over one step"),
      lanes_picture(p, plan, line), "</section>\n", peak_section(p, index, plan, c),
      table_section(p, index, plan), "</main></body></html>\n");
}

}  // namespace cairn::plan
