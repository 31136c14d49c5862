// Cases of mixtures of experts: some of few rows, of many, and without rows.
#pragma once
#include "tests/conformance/cases.h"

namespace cairn::conformance {

// Which of `experts` choice i goes to.
using Choose = int64_t (*)(int64_t i, int64_t experts);
inline int64_t spread(int64_t i, int64_t experts) { return (i * 7 + i / 3) % experts; }
inline int64_t skewed(int64_t i, int64_t experts) { return i % 5 == 4 ? experts - 1 : experts / 2; }
inline constexpr Choose kChooses[] = {spread, skewed};

// What group_rows makes of choices.
struct Grouped {
  Operand order, places, starts;
  Grouped(std::vector<int64_t> lead, int64_t k, int64_t experts, Choose choose) {
    int64_t count = k;
    for (const int64_t size : lead) count *= size;
    lead.push_back(k);
    order = I({count}, 0), places = I(std::move(lead), 0), starts = I({experts + 1}, 0);
    places.given.resize(static_cast<size_t>(count));
    for (int64_t e = 0; e < experts; ++e) {
      starts.given.push_back(static_cast<int32_t>(order.given.size()));
      for (int64_t i = 0; i < count; ++i) {
        if (choose(i, experts) != e) continue;
        places.given[static_cast<size_t>(i)] = static_cast<int32_t>(order.given.size());
        order.given.push_back(static_cast<int32_t>(i));
      }
    }
    starts.given.push_back(static_cast<int32_t>(count));
  }
};

inline void add_moved_rows(std::vector<Case>& to, std::vector<int64_t> lead, int64_t k, int64_t width) {
  for (const Choose choose : kChooses) {
    const Grouped groups(lead, k, 4, choose);
    std::vector<int64_t> x = lead;
    x.push_back(width);
    const Operand rows = T({groups.order.shape[0], width}), weights = P(groups.places.shape, 0.1, 1);
    to.push_back({"gather_rows", {T(x), groups.order, groups.places}, {}});
    to.push_back({"gather_rows", {T(x), groups.order, groups.places, weights}, {}});
    to.push_back({"combine_rows", {rows, groups.order, groups.places}, {}});
    to.push_back({"combine_rows", {rows, groups.order, groups.places, weights}, {}});
  }
}

inline void add_grouped(std::vector<Case>& to, int64_t m, int64_t experts, int64_t n, int64_t k) {
  for (const Choose choose : kChooses)
    for (const int64_t transposed : {0, 1}) {
      const Operand starts = Grouped({}, m, experts, choose).starts, x = T({m, k});
      const std::vector<int64_t> w = transposed ? std::vector{experts, k, n} : std::vector{experts, n, k};
      const Attrs attrs{{"transposed", transposed}};
      to.push_back({"grouped_linear", {x, P(w), starts, P({experts, n})}, attrs});
      to.push_back({"grouped_linear", {x, P(w), starts}, attrs});
      to.push_back({"grouped_linear", {x, T(w), starts}, attrs});  // weights of the activations' type
    }
}

inline void add_experts(std::vector<Case>& to) {
  for (const std::vector<int64_t>& lead : {std::vector<int64_t>{}, {3}, {2, 3}}) {
    std::vector<int64_t> logits = lead;
    logits.push_back(5);
    for (const int64_t k : {1, 2, 5})
      for (const int64_t normalise : {0, 1})
        to.push_back({"route", {T(logits, -2, 2)}, {{"k", k}, {"normalise", normalise}}});
    for (const int64_t k : {1, 2, 3}) add_moved_rows(to, lead, k, 4);
  }
  for (const int64_t experts : {1, 2, 5}) add_grouped(to, 7, experts, 3, 4);
}

inline void add_backend_experts(std::vector<Case>& to) {
  for (const int64_t experts : {1, 7, 33, 64, 130})
    for (const int64_t k : {int64_t{1}, std::min<int64_t>(8, experts), experts})
      for (const int64_t normalise : {0, 1}) {
        const Attrs attrs{{"k", k}, {"normalise", normalise}};
        to.push_back({"route", {T({9, experts}, -8, 8)}, attrs});
        to.push_back({"route", {whole(T({9, experts}))}, attrs});  // many are equal
      }
  for (const int64_t width : {1, 7, 33, 64, 129, 1000}) add_moved_rows(to, {2, 9}, 3, width);
  add_moved_rows(to, {40}, 8, 65);
  add_grouped(to, 1, 3, 33, 7);
  add_grouped(to, 33, 8, 64, 129);
  add_grouped(to, 129, 5, 7, 33);
  add_grouped(to, 130, 3, 96, 64);
  add_grouped(to, 300, 2, 65, 256);
}

}  // namespace cairn::conformance
