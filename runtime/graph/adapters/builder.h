// Adds ops with adapters to a graph that has rules for them. Internal to runtime/graph.
#pragma once
#include "runtime/graph/graph.h"

namespace cairn::graph {

class AdapterBuilder {
 public:
  explicit AdapterBuilder(Graph& graph) : g_(graph), known_(graph.adapters_) {}

  // kInvalidArgument: the rule has a number out of range, or a pattern that is empty.
  void add(AdapterRule rule);
  // The op, with an adapter if a rule names its weight. kInvalidArgument: a weight that has one is used again, two patterns
  // name it, or an adapter of the kind cannot be there. The graph is then as before.
  std::vector<ValueId> op(std::string_view name, std::vector<ValueId> in, Attrs attrs);
  // Freezes what no rule trains. trains: kInvalidArgument if a pattern matches nothing.
  void finish(bool trains);

 private:
  struct Site;
  // An op whose weight adapters are for.
  struct Row {
    std::string_view op;
    size_t weight;    // its operand
    bool by_default;  // for rules without targets
    bool dense;       // one product: with norms of rows, and the largest singular values
    std::vector<ValueId> (AdapterBuilder::*make)(const Site&);  // nullptr: there is no place for an adapter
  };
  static const Row* find(std::string_view op);

  bool any(const char* list, const std::vector<ModulePattern>& patterns, std::string_view module);
  const AdapterRule* rule_for(const Row& row, std::string_view op, std::string_view module);
  void refuse_reuse(std::string_view op, const std::vector<ValueId>& in) const;
  bool saved(std::string_view parameter);
  void check_patterns() const;

  std::vector<ValueId> linear(const Site& site);
  std::vector<ValueId> table(const Site& site);
  std::vector<ValueId> experts(const Site& site);
  ValueId with_norms(const Site& site, ValueId dropped, ValueId up);
  ValueId row_scales(const Site& site);  // of DoRA: magnitude / norm

  ValueId parameter(const Site& site, std::string_view suffix, std::vector<int64_t> dims, Init init,
                    double scale);
  // An op that makes one value, which is named after the module.
  ValueId one(const Site& site, std::string_view what, std::string_view op, std::vector<ValueId> in,
              Attrs attrs = {});
  ValueId scaled(const Site& site, std::string_view what, ValueId x, double factor);

  Graph& g_;
  Adapters& known_;
};

}  // namespace cairn::graph
