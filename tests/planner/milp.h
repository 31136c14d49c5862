// An exact integer program for problems without links, in the manner of Checkmate (Jain et al.: Checkmate,
// MLSys 2020), and the solver CBC as a program of its own to solve it.
//
// Stage t ends with the first run of op t. Within a stage ops run in the problem's order, each at most once:
//   R[t,i]  op i runs in stage t (R[t,t] = 1; only i <= t; not again what may not run twice)
//   S[t,v]  value v is on the device between the stages t - 1 and t
//   R[t,i] <= S[t,u] + R[t,maker(u)]            for inputs u of i
//   S[t,v] <= S[t-1,v] + R[t-1,maker(v)]
// A value is alive at op k of stage t iff k < maker and S[t,v]; or k = maker and R[t,k]; or k >= maker and a
// reader at or behind k runs in the stage, or S[t+1,v]. What is alive at an op and its workspace fit beside
// the persistent values. The seconds of all R are minimised.
//
// Every plan of the solver is one of these but for offsets, so the program's optimum is at most its seconds;
// a plan in which an op runs twice before the next first run is none of them.
#pragma once
#include <optional>
#include <string>

#include "runtime/plan/index.h"

namespace cairn::plan {

struct Milp {
  std::string lp;  // CPLEX LP format; the objective counts shares of total_seconds
  int variables = 0, rows = 0;
};

Milp make_milp(const Problem&, const Index&, int64_t budget_bytes);

struct MilpResult {
  bool proven = false;      // `seconds` is the optimum
  bool infeasible = false;  // proven
  double seconds = 0;       // of the best found; infinite if none
};

bool have_cbc();
// At most about `limit_seconds`. Throws std::runtime_error if cbc cannot be run or says what is not
// understood.
MilpResult solve_with_cbc(const Milp&, double total_seconds, double limit_seconds);

}  // namespace cairn::plan
