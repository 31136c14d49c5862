// The solvers of the last few problems. A problem that is asked about again, at any budget, gets the same solver.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/plan/problem.h"

namespace cairn::plan {

// A Solver is made from a problem, to which it keeps a reference, and a number of threads.
template <class Solver>
class Recent {
 public:
  explicit Recent(int threads) : threads_(threads) {}

  // Returns question(solver of the problem). A solver that throws is dropped, as its state is unknown.
  template <class Question>
  auto ask(const Problem& p, Question question) {
    Solver& solver = find(p);
    try {
      return question(solver);
    } catch (...) {
      entries_.erase(entries_.begin());
      throw;
    }
  }

 private:
  static constexpr size_t kMostProblems = 6;
  struct Entry {
    Entry(const Problem& problem, int threads) : p(problem), solver(p, threads) {}
    const Problem p;
    Solver solver;
  };

  Solver& find(const Problem& p) {
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
      const Problem& other = entry->p;
      return other.backward_begin == p.backward_begin && other.links == p.links &&
             other.regions == p.regions && other.values == p.values && other.ops == p.ops;
    });
    if (known != entries_.end()) {
      std::rotate(entries_.begin(), known, known + 1);
    } else {
      check(p);
      entries_.insert(entries_.begin(), std::make_unique<Entry>(p, threads_));
      if (entries_.size() > kMostProblems) entries_.pop_back();
    }
    return entries_.front()->solver;
  }

  const int threads_;
  std::vector<std::unique_ptr<Entry>> entries_;  // in order of use, the latest first
};

}  // namespace cairn::plan
