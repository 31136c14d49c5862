// What the JSON forms of costs have in common.
#pragma once
#include <string>
#include <vector>

#include "runtime/costs/machine.h"
#include "runtime/plan/json/node.h"
#include "runtime/plan/problem.h"
#include "runtime/plan/text.h"

namespace cairn::costs {

inline constexpr size_t kMaxCostBytes = size_t{64} << 20;  // of text

double positive(const plan::JsonNode& node);
int64_t below(const plan::JsonNode& node, int64_t most);
// Without capacity_bytes where the form has none.
plan::Link read_link(const plan::JsonNode& node);
Machine read_machine(const plan::JsonNode& node);

// {"key": value, ...} on one line.
class JsonRow {
 public:
  JsonRow& text(std::string_view key, std::string_view value) {
    name(key);
    plan::append_string(out_, value);
    return *this;
  }
  template <class Number>
  JsonRow& number(std::string_view key, Number value) {
    name(key);
    plan::append_number(out_, value);
    return *this;
  }
  JsonRow& link(const plan::Link& link);  // but for its tier and its capacity
  std::string take() { return out_ + "}"; }

 private:
  void name(std::string_view key) { out_ += cat(out_.size() > 1 ? ", \"" : "\"", key, "\": "); }
  std::string out_ = "{";
};

std::string machine_text(const Machine& machine);
// "key": [, a row on each line, ].
std::string list_text(std::string_view key, const std::vector<std::string>& rows);

}  // namespace cairn::costs
