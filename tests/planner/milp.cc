#include "tests/planner/milp.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace cairn::plan {
namespace {

constexpr int kZero = -1, kOne = -2;  // a variable, or one of these

class Model {
 public:
  int variable(const std::string& name, bool whole) {
    names_.push_back(name);
    whole_.push_back(whole);
    return static_cast<int>(names_.size()) - 1;
  }
  void cost(int variable, double factor) { objective_ << " + " << factor << " " << names_[variable] << "\n"; }
  void constant(double cost) { fixed_ += cost; }

  // sum of factor * variable <= right
  void at_most(std::map<int, double> sum, double right) {
    for (const auto& [v, factor] : sum)
      if (v == kOne) right -= factor;
    sum.erase(kOne);
    sum.erase(kZero);
    double most = 0;
    for (const auto& [v, factor] : sum) most += std::max(0.0, factor);  // variables are 0..1
    if (most <= right) return;
    rows_ << "r" << row_++ << ":";
    if (sum.empty()) {  // 0 <= right does not hold
      rows_ << " 0 one <= -1\n";
      return;
    }
    for (const auto& [v, factor] : sum)
      if (factor != 0) rows_ << (factor < 0 ? " - " : " + ") << std::abs(factor) << " " << names_[v] << "\n";
    rows_ << " <= " << right << "\n";
  }
  // a <= b + c
  void at_most(int a, int b, int c) {
    std::map<int, double> sum;
    sum[a] += 1;
    sum[b] -= 1;
    sum[c] -= 1;
    at_most(std::move(sum), 0);
  }
  // A variable that is 1 where a or b is.
  int either(int a, int b, const std::string& name) {
    if (a == kOne || b == kOne) return kOne;
    if (a == b || b == kZero) return a;
    if (a == kZero) return b;
    const int v = variable(name, false);
    at_most(a, v, kZero);
    at_most(b, v, kZero);
    return v;
  }

  Milp text() const {
    std::ostringstream out;
    out.precision(15);
    out << "minimize\nobj: " << fixed_ << " one\n" << objective_.str() << "subject to\n" << rows_.str();
    out << "unit: one = 1\nbounds\n";
    for (const std::string& name : names_) out << " 0 <= " << name << " <= 1\n";
    out << "generals\n";
    for (size_t v = 0; v < names_.size(); ++v)
      if (whole_[v]) out << " " << names_[v] << "\n";
    out << "end\n";
    return {out.str(), static_cast<int>(names_.size()), row_};
  }

 private:
  std::vector<std::string> names_;
  std::vector<bool> whole_;
  std::ostringstream objective_ = precise(), rows_ = precise();
  double fixed_ = 0;
  int row_ = 0;

  static std::ostringstream precise() {
    std::ostringstream stream;
    stream.precision(15);
    return stream;
  }
};

class Builder {
 public:
  Builder(const Problem& p, const Index& index, int64_t budget) : p_(p), index_(index) {
    unit_ = 0;  // bytes are counted in their greatest common divisor: small whole numbers
    for (const Value& v : p.values) unit_ = std::gcd(unit_, v.bytes);
    for (const Op& op : p.ops) unit_ = std::gcd(unit_, op.workspace_bytes);
    if (unit_ == 0) unit_ = 1;
    room_ = std::floor(static_cast<double>(budget - index.persistent_bytes) / static_cast<double>(unit_));
    const size_t ops = p.ops.size();
    run_.assign(ops, std::vector<int>(ops, kZero));
    held_.assign(ops + 1, std::vector<int>(p.values.size(), kZero));
  }

  Milp build() {
    const auto ops = static_cast<int32_t>(p_.ops.size());
    for (int32_t t = 0; t < ops; ++t) declare(t);
    for (int32_t t = 0; t < ops; ++t) stage(t);
    return model_.text();
  }

 private:
  void declare(int32_t t) {
    std::vector<char> useful(p_.ops.size(), 0);  // may run in this stage
    const auto wanted = [&](int32_t v) {
      const auto readers = index_.readers[v];
      return std::any_of(readers.begin(), readers.end(), [&](int32_t r) { return r >= t || useful[r]; });
    };
    for (int32_t i = t; i-- > 0;) {
      const auto outputs = index_.outputs[i];
      const bool any = std::any_of(outputs.begin(), outputs.end(), wanted);
      for (int32_t v : outputs)
        if (wanted(v)) held_[t][v] = model_.variable("s" + id(t, v), true);
      if (!any || !p_.ops[i].recomputable) continue;
      useful[i] = 1;
      run_[t][i] = model_.variable("x" + id(t, i), true);
      if (p_.ops[i].seconds > 0) model_.cost(run_[t][i], p_.ops[i].seconds / index_.total_seconds);
    }
    run_[t][t] = kOne;
    model_.constant(p_.ops[t].seconds / index_.total_seconds);
  }

  void stage(int32_t t) {
    for (int32_t i = 0; i <= t; ++i) {
      if (run_[t][i] == kZero) continue;
      for (int32_t u : index_.inputs[i]) model_.at_most(run_[t][i], held_[t][u], run_[t][index_.maker[u]]);
    }
    std::vector<std::map<int, double>> alive(static_cast<size_t>(t) + 1);
    for (int32_t v = 0; v < static_cast<int32_t>(p_.values.size()); ++v) {
      const int32_t maker = index_.maker[v];
      if (p_.values[v].persistent || maker < 0 || maker > t) continue;
      if (t > 0 && maker < t) {
        if (held_[t][v] != kZero)
          model_.at_most(held_[t][v], maker < t - 1 ? held_[t - 1][v] : kZero, run_[t - 1][maker]);
      }
      const double bytes = static_cast<double>(p_.values[v].bytes / unit_);
      if (bytes == 0) continue;
      int presence = held_[t + 1][v];  // behind the last reader
      std::vector<int32_t> readers;
      for (int32_t r : index_.readers[v])
        if (r <= t && run_[t][r] != kZero) readers.push_back(r);
      for (int32_t k = t; k > maker; --k) {
        if (!readers.empty() && readers.back() == k) {
          readers.pop_back();
          presence = model_.either(presence, run_[t][k], "l" + id(t, v) + "_" + std::to_string(k));
        }
        alive[k][presence] += bytes;
      }
      alive[maker][model_.either(presence, run_[t][maker], "l" + id(t, v) + "_m")] += bytes;
      for (int32_t k = 0; k < maker; ++k) alive[k][held_[t][v]] += bytes;
    }
    for (int32_t k = 0; k <= t; ++k) {
      if (run_[t][k] == kZero) continue;
      if (p_.ops[k].workspace_bytes > 0)
        alive[k][run_[t][k]] += static_cast<double>(p_.ops[k].workspace_bytes / unit_);
      model_.at_most(std::move(alive[k]), room_);
    }
  }

  static std::string id(int32_t t, int32_t i) { return std::to_string(t) + "_" + std::to_string(i); }

  const Problem& p_;
  const Index& index_;
  Model model_;
  int64_t unit_;
  double room_;
  std::vector<std::vector<int>> run_, held_;
};

}  // namespace

Milp make_milp(const Problem& p, const Index& index, int64_t budget_bytes) {
  return Builder(p, index, budget_bytes).build();
}

bool have_cbc() { return std::system("command -v cbc >/dev/null 2>&1") == 0; }

MilpResult solve_with_cbc(const Milp& milp, double total_seconds, double limit_seconds) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "cairn-milp-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("cannot make a folder for cbc");
  std::ofstream(folder + "/m.lp") << milp.lp;
  std::ostringstream command;
  command << "cd '" << folder << "' && cbc m.lp sec " << limit_seconds
          << " ratio 0 allow 1e-9 solve solu out.txt >log.txt 2>&1";
  const int status = std::system(command.str().c_str());
  std::string first;
  std::getline(std::ifstream(folder + "/out.txt") >> std::ws, first);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  const auto says = [&](const char* words) { return first.find(words) != std::string::npos; };
  MilpResult result;
  result.seconds = std::numeric_limits<double>::infinity();
  result.infeasible = status == 0 && says("nfeasible");
  result.proven = result.infeasible || (status == 0 && says("Optimal"));
  const std::string mark = "objective value";
  if (status != 0) return result;  // cbc 2.10 crashes now and then: nothing is proven
  if (!result.proven && !says("Stopped")) throw std::runtime_error("cbc says '" + first + "'");
  if (const size_t at = first.find(mark);
      at != std::string::npos && !result.infeasible && !says("no integer"))
    result.seconds = std::stod(first.substr(at + mark.size())) * total_seconds;
  return result;
}

}  // namespace cairn::plan
