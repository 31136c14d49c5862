// Renderings of a plan: text in, no decisions.
#include "capi/src/boundary.h"
#include "capi/src/plan.h"
#include "runtime/io/plan_file.h"
#include "runtime/report/sweep.h"

namespace cairn::capi {
namespace {

using Renderer = std::string (*)(const plan::Problem&, const plan::Plan&, const plan::ReportOptions&);

std::string file(const plan::Problem& problem, const plan::Plan& plan, const plan::ReportOptions&) {
  const std::vector<std::byte> bytes = io::encode_plan(problem, plan);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr Renderer kRenderers[] = {
    [](const plan::Problem& problem, const plan::Plan& plan, const plan::ReportOptions&) {
      return plan::to_json(problem, plan, true);
    },
    [](const plan::Problem& problem, const plan::Plan&, const plan::ReportOptions&) {
      return plan::to_json(problem);
    },
    [](const plan::Problem& problem, const plan::Plan& plan, const plan::ReportOptions& options) {
      plan::ReportOptions quick = options;
      quick.curve_budgets = 0;
      return plan::to_html(problem, plan, quick);
    },
    plan::to_svg,
    file,
    [](const plan::Problem& problem, const plan::Plan&, const plan::ReportOptions& options) {
      return plan::to_json(problem, plan::sweep(problem, -1, options.other_form));
    },
    plan::to_html,
};
static_assert(std::size(kRenderers) == CAIRN_RENDER_REPORT + 1);

}  // namespace

std::string render(const plan::Problem& problem, const plan::Plan& plan, uint32_t kind, const char* title,
                   const std::vector<const char*>& categories, const plan::Problem* other_form) {
  in_enum(kind, CAIRN_RENDER_REPORT, "kind");
  plan::ReportOptions options;
  options.other_form = other_form;
  std::string_view text = title == nullptr ? "cairn plan" : title;
  options.title = text.substr(0, text.find('\n'));
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    text.remove_prefix(end + 1);
    options.facts.emplace_back(text.substr(0, text.find('\n')));
  }
  options.categories.assign(categories.begin(), categories.end());
  return kRenderers[kind](problem, plan, options);
}

}  // namespace cairn::capi
