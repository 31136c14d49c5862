// The table of values: columns as data for the page's script, and the first rows for pages without scripts.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

constexpr size_t kMaxRows = 60'000;  // of the data
constexpr size_t kPlainRows = 50;    // in HTML
constexpr size_t kMaxLetters = 160;  // of a name, a region, a reason

// Texts by number, each once.
class Words {
 public:
  size_t operator()(const std::string& text) {
    const auto [at, fresh] = number_.emplace(text, list_.size());
    if (fresh) list_.push_back(&at->first);
    return at->second;
  }
  const std::vector<const std::string*>& list() const { return list_; }

 private:
  std::unordered_map<std::string, size_t> number_;
  std::vector<const std::string*> list_;
};

std::string decision_words(const Problem& p, const ValuePlan& value) {
  const std::string name(decision_name(value.decision));
  return value.decision == Decision::kOffload ? cat(name, " to ", p.links[value.tier].tier) : name;
}

std::string region_words(const Problem& p, const Index& index, size_t v) {
  const int32_t region = index.maker[v] >= 0 ? p.ops[index.maker[v]].region : -1;
  return region >= 0 ? p.regions[region].name : "";
}

template <class List, class Each>
void column(std::string& out, std::string_view name, const List& list, const Each& each) {
  out += cat(out.back() == '{' ? "\"" : ",\n\"", name, "\":[");
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ',';
    first = false;
    each(item);
  }
  out += ']';
}

// {"name": [...], "bytes": [...], ...}; region, decision and reason are indices of the lists that follow.
std::string data(const Problem& p, const Index& index, const Plan& plan, const std::vector<size_t>& rows) {
  std::string out = "{";
  Words regions, decisions, reasons;
  std::vector<std::string> colors;
  const auto text = [&](const std::string& s) { append_script_string(out, shortened(s, kMaxLetters)); };
  const auto number = [&](auto x) { append_number(out, x); };
  column(out, "name", rows, [&](size_t v) { text(p.values[v].name); });
  column(out, "bytes", rows, [&](size_t v) { number(p.values[v].bytes); });
  column(out, "region", rows, [&](size_t v) { number(regions(region_words(p, index, v))); });
  column(out, "decision", rows, [&](size_t v) {
    const size_t known = decisions.list().size(), k = decisions(decision_words(p, plan.values[v]));
    if (k == known) colors.emplace_back(decision_color(plan.values[v].decision));
    number(k);
  });
  column(out, "reason", rows, [&](size_t v) { number(reasons(plan.values[v].reason)); });
  column(out, "offset", rows, [&](size_t v) { number(plan.values[v].offset); });
  column(out, "first", rows, [&](size_t v) { number(plan.values[v].first_step); });
  column(out, "last", rows, [&](size_t v) { number(plan.values[v].last_step); });
  const auto said = [&](const std::string* s) { text(*s); };
  column(out, "regions", regions.list(), said);
  column(out, "decisions", decisions.list(), said);
  column(out, "reasons", reasons.list(), said);
  column(out, "colors", colors, text);
  return out + "}";
}

}  // namespace

std::string values_section(const Problem& p, const Index& index, const Plan& plan) {
  std::vector<size_t> order(p.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p.values[a].bytes > p.values[b].bytes; });
  const size_t left_out = order.size() - std::min(order.size(), kMaxRows);
  order.resize(order.size() - left_out);
  std::string out =
      "<section><h2>Values</h2>\n<div class='tools' id='values-tools'><input id='values-search' "
      "type='search' "
      "placeholder='name, region or reason' aria-label='filter'><select id='values-which' "
      "aria-label='decision'><option value=''>all decisions</option></select><output id='values-count'>"
      "</output></div>\n<div class='scroll' id='values-box' tabindex='0'><table id='values'><colgroup><col "
      "style='width:21%'><col style='width:88px'><col style='width:10%'><col style='width:142px'><col><col "
      "style='width:138px'><col style='width:124px'></colgroup><thead><tr><th>value</th><th "
      "class='n'>bytes</th>"
      "<th>region</th><th>decision</th><th>reason</th><th class='n'>offset</th><th "
      "class='n'>instructions</th></tr>"
      "</thead><tbody>\n";
  for (size_t k = 0; k < std::min(order.size(), kPlainRows); ++k) {
    const size_t v = order[k];
    const ValuePlan& value = plan.values[v];
    out += cat("<tr><td>", label(p.values[v].name, kMaxLetters), "</td><td class='n'>",
               human_bytes(p.values[v].bytes), "</td><td>", label(region_words(p, index, v), kMaxLetters),
               "</td><td><i style='background:", decision_color(value.decision), "'></i>",
               label(decision_words(p, value), kMaxLetters), "</td><td>", label(value.reason, kMaxLetters),
               "</td><td class='n'>", value.offset, "</td><td class='n'>", value.first_step, " \xe2\x80\x93 ",
               value.last_step, "</td></tr>\n");
  }
  out += "</tbody></table></div>\n";
  if (order.size() > kPlainRows)
    out += cat("<noscript><p>The largest ", kPlainRows, " of ", p.values.size(),
               " values; sorting, searching and the others need scripts.</p></noscript>\n");
  if (left_out > 0) out += cat("<p>", left_out, " smaller values are left out of this page.</p>\n");
  return cat(out, "<script type='application/json' id='values-data'>", data(p, index, plan, order),
             "</script></section>\n");
}

}  // namespace cairn::plan
