#include "runtime/plan/residency/exposed.h"

#include <algorithm>

#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

std::vector<double> exposed_seconds(const Problem& p) {
  const std::vector<std::vector<HomeUse>> uses = home_uses(p);
  const size_t ops = p.ops.size();
  std::vector<double> exposed(p.values.size(), 0);
  // The copies of each link so far, in the order of the ops that need them, and by how much they delay the ops.
  struct Way {
    std::vector<double> busy;
    std::vector<bool> seen;
    double ops = 0, late = 0;
  };
  const auto copy = [&](Way& way, const HomeUse& use, double bytes_per_second) {
    if (way.seen[static_cast<size_t>(use.value)]) return;
    way.seen[static_cast<size_t>(use.value)] = true;
    const Value& value = p.values[static_cast<size_t>(use.value)];
    double& busy = way.busy[static_cast<size_t>(value.home)];
    busy += static_cast<double>(value.bytes) / bytes_per_second;
    const double more = std::max(0.0, busy - way.ops - way.late);
    way.late += more;
    exposed[static_cast<size_t>(use.value)] += more;
  };
  const Way none{std::vector<double>(p.links.size(), 0), std::vector<bool>(p.values.size(), false)};
  const auto link_of = [&](const HomeUse& use) -> const Link& {
    return p.links[static_cast<size_t>(p.values[static_cast<size_t>(use.value)].home)];
  };
  Way in = none;
  for (size_t o = 0; o < ops; ++o) {
    for (const HomeUse& use : uses[o])
      if (use.reads) copy(in, use, link_of(use).in_bytes_per_second);
    in.ops += p.ops[o].seconds;
  }
  Way out = none;
  for (size_t o = ops; o-- > 0;) {
    for (const HomeUse& use : uses[o])
      if (use.changes) copy(out, use, link_of(use).out_bytes_per_second);
    out.ops += p.ops[o].seconds;
  }
  return exposed;
}

}  // namespace cairn::plan
