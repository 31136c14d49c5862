// Shape rule of rope.
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

void check_flag(const Operands& o, std::string_view name) {
  const int64_t flag = o.attrs().integer(name);
  o.check_attr(flag == 0 || flag == 1, name, flag, "it must be 0 or 1");
}

}  // namespace

void shape_rope(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank(0, 3);
  const int64_t heads = o.attrs().integer("heads");
  o.check_attr(heads > 0, "heads", heads, "it must be positive");
  if (o.attrs().has("columns")) {
    o.check(o.shape(0).last() % heads == 0, 0, "its last dimension is no multiple of heads = ", heads);
  } else {
    o.check(o.shape(0).last() % (2 * heads) == 0, 0,
            "its last dimension is no multiple of 2 * heads = ", 2 * heads);
  }
  const int64_t width = o.shape(0).last() / heads, columns = o.attrs().integer("columns", width);
  o.check_attr(columns > 0 && columns <= width && columns % 2 == 0, "columns", columns,
               "it must be even, positive and at most a head's width, ", width);
  if (o.has(1)) {
    o.integers(1);
    o.check_pair(o.shape(1) == without_last(o.shape(0)), 1, 0, "it must be of shape ",
                 to_string(without_last(o.shape(0))), ", a position for each row");
  }
  const double base = o.attrs().real("base", 10000.0), factor = o.attrs().real("factor", 1);
  o.check_attr(base > 0, "base", base, "it must be positive");
  o.check_attr(factor > 0, "factor", factor, "it must be positive");
  check_flag(o, "inverse");
  check_flag(o, "interleaved");
  const std::vector<double> frequencies = o.attrs().reals("frequencies");
  if (o.attrs().has("frequencies"))
    o.check_attr(static_cast<int64_t>(frequencies.size()) == columns / 2, "frequencies",
                 cat("a list of ", frequencies.size()), "it must have ", columns / 2,
                 " numbers, one for each pair of columns");
  o.put(o[0]);
}

}  // namespace cairn::ops
