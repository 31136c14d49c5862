// The least seconds of any plan of a small problem with one link, by trying every order of runs and copies: a search over
// states in steps of a second. Offsets, latency and the tier's capacity are left out, so every real plan whose ops and copies
// begin and end at whole seconds is one of its paths.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "runtime/plan/residency/residence.h"

namespace cairn::plan {

class TimedOptimum {
 public:
  // With every choice of values that stay. Values: up to 15. Seconds of ops and of copies are whole numbers; both_ways_factor
  // is 1 or 0.5. Negative: nothing fits. earliest: per op, a whole second before which it does not begin, never falling; none: any may.
  // Value::home_seconds, whole ones, pass before all else.
  static int64_t seconds(const Problem& p, int64_t budget_bytes, const std::vector<double>& earliest = {}) {
    std::vector<int32_t> may_stay;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (p.values[v].home >= 0 && p.values[v].persistent) may_stay.push_back(static_cast<int32_t>(v));
    int64_t best = -1;
    for (uint32_t stay = 0; stay < 1U << may_stay.size(); ++stay) {
      std::vector<bool> away(p.values.size(), true);
      for (size_t k = 0; k < may_stay.size(); ++k) away[static_cast<size_t>(may_stay[k])] = !(stay >> k & 1);
      const Problem resolved = resolve_homes(p, away);
      double home = 0;
      for (const Value& value : resolved.values)
        if (value.at_home()) home += value.home_seconds;
      std::vector<double> behind = earliest;
      for (double& op : behind) op = std::max(0.0, op - home);
      const auto before = static_cast<int64_t>(home);
      if (best >= 0 && before >= best) continue;
      const int64_t found =
          TimedOptimum(resolved, budget_bytes, behind).search(best < 0 ? best : best - before);
      if (found >= 0 && (best < 0 || before + found < best)) best = before + found;
    }
    return best;
  }

 private:
  using Set = uint32_t;
  struct State {
    Set here = 0, tier = 0;  // complete on the device; complete and up to date in the tier
    int8_t next = 0, op = -1, left = 0;
    int8_t way[2] = {-1, -1};  // value on its way out, in
    int8_t half[2] = {0, 0};   // seconds to go alone, twice
    uint64_t key() const {
      uint64_t k = here | uint64_t{tier} << 15;
      auto pack = [&k, at = 30](int8_t number, int bits) mutable {
        k |= static_cast<uint64_t>(number + 1) << at;
        at += bits;
      };
      pack(next, 4), pack(op, 4), pack(left, 3);
      for (int w : {0, 1}) pack(way[w], 4), pack(half[w], 5);
      return k;
    }
  };
  struct Uses {
    Set reads = 0, writes = 0;
  };

  TimedOptimum(const Problem& p, int64_t budget, const std::vector<double>& earliest)
      : p_(p), budget_(budget - p.persistent_bytes()), earliest_(earliest) {
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (p.values[v].persistent) continue;
      alive_ |= bit(v);
      if (p.values[v].at_home()) homes_ |= bit(v);
    }
    for (const Op& op : p.ops) {
      Uses& uses = uses_.emplace_back();
      for (const int32_t v : op.inputs) uses.reads |= bit(static_cast<size_t>(v)) & alive_;
      for (const int32_t v : op.outputs) uses.writes |= bit(static_cast<size_t>(v)) & alive_;
    }
  }

  static Set bit(size_t v) { return Set{1} << v; }
  int64_t bytes(Set set) const {
    int64_t sum = 0;
    for (size_t v = 0; v < p_.values.size(); ++v)
      if (set >> v & 1) sum += p_.values[v].bytes;
    return sum;
  }
  // Also what is coming, and what the op that runs makes.
  bool fits(const State& s) const {
    Set set = s.here;
    int64_t workspace = 0;
    if (s.op >= 0) {
      set |= uses_[static_cast<size_t>(s.op)].writes;
      workspace = p_.ops[static_cast<size_t>(s.op)].workspace_bytes;
    }
    if (s.way[1] >= 0) set |= bit(static_cast<size_t>(s.way[1]));
    return bytes(set) + workspace <= budget_;
  }

  int64_t search(int64_t known) {
    State begin;
    begin.tier = homes_;
    reach(begin, 0);
    while (!open_.empty()) {
      auto& [at, first] = *open_.begin();
      if (first.empty()) {
        open_.erase(open_.begin());
        continue;
      }
      const State s = first.back();
      first.pop_back();
      if (at > best_.at(s.key())) continue;
      if (known >= 0 && at >= known) return -1;
      const auto ops = static_cast<int8_t>(p_.ops.size());
      if (s.next == ops && s.op < 0 && s.way[0] < 0 && (homes_ & ~s.tier) == 0) return at;
      at_once(s, at);
      advance(s, at);
    }
    return -1;
  }

  void reach(const State& s, int64_t at) {
    const auto [known, fresh] = best_.try_emplace(s.key(), at);
    if (!fresh && known->second <= at) return;
    known->second = at;
    open_[at].push_back(s);
  }

  void at_once(const State& s, int64_t at) {
    const Uses running = s.op >= 0 ? uses_[static_cast<size_t>(s.op)] : Uses{};
    const Set leaving = s.way[0] >= 0 ? bit(static_cast<size_t>(s.way[0])) : 0;
    const Set coming = s.way[1] >= 0 ? bit(static_cast<size_t>(s.way[1])) : 0;
    for (size_t v = 0; v < p_.values.size(); ++v) {
      const Set b = bit(v);
      if (s.here & b) {
        const bool changed = (homes_ & ~s.tier & b) != 0;
        if (!changed && !((running.reads | running.writes | leaving) & b)) {
          State freed = s;
          freed.here &= ~b;
          reach(freed, at);
        }
        if (s.way[0] < 0 && !(s.tier & b) && !(running.writes & b)) start_copy(s, 0, v, at);
      } else if ((s.tier & b) && s.way[1] < 0 && !(running.writes & b)) {
        start_copy(s, 1, v, at);
      }
    }
    if (s.op >= 0) return;
    for (int8_t i = 0; i <= s.next && i < static_cast<int8_t>(p_.ops.size()); ++i) {
      const Uses& uses = uses_[static_cast<size_t>(i)];
      if (i < s.next && !p_.ops[static_cast<size_t>(i)].recomputable) continue;
      // Where nothing else goes on, the op's time is waited for; copies that could begin meanwhile may as well begin now.
      const int64_t starts =
          earliest_.empty() ? at : std::max(at, static_cast<int64_t>(earliest_[static_cast<size_t>(i)]));
      if (starts > at && (s.way[0] >= 0 || s.way[1] >= 0)) continue;
      if ((uses.reads & ~s.here) || (uses.writes & (leaving | coming))) continue;
      State run = s;
      run.op = i;
      run.left = static_cast<int8_t>(p_.ops[static_cast<size_t>(i)].seconds);
      run.next = static_cast<int8_t>(s.next + (i == s.next));
      run.tier &= ~(uses.writes & homes_);
      if (fits(run)) reach(run, starts);
    }
  }

  void start_copy(const State& s, int way, size_t v, int64_t at) {
    const Link& link = p_.links[0];
    const double rate = way ? link.in_bytes_per_second : link.out_bytes_per_second;
    State copy = s;
    copy.way[way] = static_cast<int8_t>(v);
    copy.half[way] = static_cast<int8_t>(2 * static_cast<double>(p_.values[v].bytes) / rate + 0.5);
    if (fits(copy)) reach(copy, at);
  }

  void advance(const State& s, int64_t at) {
    if (s.op < 0 && s.way[0] < 0 && s.way[1] < 0) return;
    State then = s;
    if (s.op >= 0 && --then.left == 0) {
      then.here |= uses_[static_cast<size_t>(s.op)].writes;
      then.op = -1;
    }
    const bool slow = p_.links[0].both_ways_factor < 1 && s.way[0] >= 0 && s.way[1] >= 0;
    for (int w : {0, 1}) {
      if (s.way[w] < 0) continue;
      then.half[w] = static_cast<int8_t>(std::max(0, s.half[w] - (slow ? 1 : 2)));
      if (then.half[w] > 0) continue;
      (w ? then.here : then.tier) |= bit(static_cast<size_t>(s.way[w]));
      then.way[w] = -1;
    }
    reach(then, at + 1);
  }

  const Problem& p_;
  const int64_t budget_;
  Set alive_ = 0, homes_ = 0;
  std::vector<Uses> uses_;
  const std::vector<double> earliest_;
  std::map<int64_t, std::vector<State>> open_;  // by second
  std::unordered_map<uint64_t, int64_t> best_;
};

}  // namespace cairn::plan
