// The trade-off curve in sentences and as a table.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

bool same(const Baseline& a, const Baseline& b) {
  return a.arena_bytes == b.arena_bytes && a.seconds == b.seconds;
}

// The fastest of the curve within these bytes; nullptr if none is.
const SweepPoint* within(const Sweep& sweep, int64_t bytes) {
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : sweep.points)
    if (point.arena_bytes <= bytes && (best == nullptr || point.seconds < best->seconds)) best = &point;
  return best;
}

}  // namespace

std::vector<Baseline> distinct_baselines(const Sweep& sweep) {
  std::vector<Baseline> list;
  for (const Baseline& b : sweep.baselines)
    if (std::none_of(list.begin(), list.end(), [&](const Baseline& other) { return same(b, other); }))
      list.push_back(b);
  return list;
}

std::string curve_words(const Problem& p, const Plan& plan, const Sweep& sweep) {
  std::string out;
  for (const Baseline& b : distinct_baselines(sweep)) {
    const SweepPoint* ours = within(sweep, b.arena_bytes);
    if (b.name == "keep_all" || ours == nullptr || sweep.keep_all_seconds <= 0) continue;
    const double share = ours->seconds / sweep.keep_all_seconds - 1;
    out += cat("<p>By hand, ", escaped(b.words), ": ", human_bytes(b.arena_bytes), " and <b>+",
               percent(b.seconds / sweep.keep_all_seconds - 1),
               "</b>. Within the same bytes this planner takes <b>",
               share < 5e-6 ? std::string("no longer than keeping everything") : "+" + percent(share),
               "</b>.</p>\n");
  }
  out +=
      "<details><summary>The curve as a table</summary><div class='scroll'><table><thead><tr>"
      "<th class='n'>budget</th><th class='n'>of keep-all</th><th class='n'>predicted</th>"
      "<th class='n'>slower</th><th class='n'>bound</th><th class='n'>gap</th><th class='n'>kept</th>"
      "<th class='n'>recomputed</th>";
  for (const Link& link : p.links) out += cat("<th class='n'>to ", label(link.tier, 24), "</th>");
  out += "</tr></thead><tbody>\n";
  const auto whole = static_cast<double>(sweep.baselines.front().arena_bytes);
  const auto cell = [&](std::string_view text) { out += cat("<td class='n'>", text, "</td>"); };
  for (const SweepPoint& point : sweep.points) {
    out += point.budget_bytes == (plan.budget_bytes > 0 ? plan.budget_bytes : plan.arena_bytes)
               ? "<tr class='now'>"
               : "<tr>";
    cell(human_bytes(point.budget_bytes));
    cell(percent(static_cast<double>(point.budget_bytes) / std::max(1.0, whole)));
    cell(human_seconds(point.seconds));
    cell(sweep.keep_all_seconds > 0 ? percent(point.seconds / sweep.keep_all_seconds - 1) : "");
    cell(human_seconds(point.bound_seconds));
    cell(percent(point.gap));
    cell(human_bytes(point.totals.keep_bytes));
    cell(human_bytes(point.totals.recompute_bytes));
    for (int64_t bytes : point.totals.offload_bytes) cell(human_bytes(bytes));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

}  // namespace cairn::plan
