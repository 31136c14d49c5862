// How the parameters of adapters start that are made of the weight of their module (graph::Init::kRowNorms, kPrincipal): once
// that weight has its numbers, where a session is initialised and where weights are imported.
#pragma once
#include <set>
#include <span>
#include <vector>

#include "runtime/exec/session.h"

namespace cairn::engine {

// Of one module. Values of the joint graph; -1: it has none.
struct AdapterStart {
  int32_t weight = -1;
  int32_t norms = -1, magnitude = -1;  // get the norms of the weight's rows
  int32_t a = -1, b = -1;  // get its largest singular values, s b a, which are taken off the weight
  double scale = 1;        // s

  bool principal() const { return a >= 0 && b >= 0; }
};

class AdapterStarts {
 public:
  // given: values that have numbers of their own. A magnitude among them is left as it is; so are the weight and the matrices
  // of a module one of whose matrices is.
  explicit AdapterStarts(Session& session, const std::set<int32_t>& given = {});

  // All of the weight must be in memory, as float32, before it is stored: hand it to take_principal() first. For importers that
  // store it in a format that rounds; others need not ask.
  bool wants_matrix(int32_t weight) const;
  // Of such a weight: writes the matrices of its adapter, and takes their product off `matrix`. Costs a float64 copy of some
  // rows and columns (exec/singular.h) besides.
  void take_principal(int32_t weight, std::span<float> matrix);
  // Once the weight is stored. Nothing where no adapter starts by it. Takes the matrices off it where nobody has yet.
  void stored(int32_t weight);
  void all_stored();

  // After the host wrote a weight by its own hand: what divides by the norms of its rows has them as they are now.
  static void written(Session& session, int32_t weight);

 private:
  AdapterStart* find(int32_t weight);

  Session& session_;
  std::vector<AdapterStart> starts_;
  std::set<int32_t> taken_;  // weights
};

}  // namespace cairn::engine
