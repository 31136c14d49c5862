// Stands in for pages and pictures where CAIRN_REPORTS is off.
#include "runtime/base/error.h"
#include "runtime/plan/plan.h"

namespace cairn::plan {
namespace {

[[noreturn]] void left_out(std::string_view what) {
  fail(Code::kUnsupported, "the plan as ", what,
       ": this libcairn was built with CAIRN_REPORTS=OFF and renders JSON alone; build it with "
       "-DCAIRN_REPORTS=ON");
}

}  // namespace

std::string to_html(const Problem&, const Plan&, const ReportOptions&) { left_out("an HTML page"); }
std::string to_svg(const Problem&, const Plan&, const ReportOptions&) { left_out("an SVG picture"); }

}  // namespace cairn::plan
