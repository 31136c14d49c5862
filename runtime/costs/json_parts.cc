#include "runtime/costs/json_parts.h"

#include <algorithm>

namespace cairn::costs {

using plan::JsonNode;

namespace {

constexpr int64_t kMaxThreads = 1 << 20;
constexpr std::string_view kTiers[] = {"host", "disk"};

double factor(const JsonNode& node) {
  const double x = positive(node);
  if (x > 1) node.bad("must not be above 1");
  return x;
}

}  // namespace

double positive(const JsonNode& node) {
  const double x = node.number();
  if (!(x > 0)) node.bad("must be above 0");
  return x;
}

int64_t below(const JsonNode& node, int64_t most) {
  const int64_t x = node.integer();
  if (x > most) node.bad("must not be above ", most, ": ", x);
  return x;
}

plan::Link read_link(const JsonNode& node) {
  plan::Link link;
  link.tier = node.at("tier").name();
  if (std::find(std::begin(kTiers), std::end(kTiers), link.tier) == std::end(kTiers))
    node.at("tier").bad("unknown tier '", link.tier, "'; host and disk are");
  link.latency_seconds = node.at("latency_seconds").number();
  link.out_bytes_per_second = positive(node.at("out_bytes_per_second"));
  link.in_bytes_per_second = positive(node.at("in_bytes_per_second"));
  link.both_ways_factor = factor(node.at("both_ways_factor"));
  if (node.has("capacity_bytes")) link.capacity_bytes = node.at("capacity_bytes").integer();
  if (node.has("busy_factor")) link.busy_factor = factor(node.at("busy_factor"));
  if (node.has("busy_rate_factor")) link.busy_rate_factor = factor(node.at("busy_rate_factor"));
  return link;
}

Machine read_machine(const JsonNode& node) {
  return {.processor = node.at("processor").name(),
          .isa = node.at("isa").name(),
          .device = node.at("device").name(),
          .threads = below(node.at("threads"), kMaxThreads),
          .memory_bytes = node.at("memory_bytes").integer(),
          .cairn = node.at("cairn").name()};
}

JsonRow& JsonRow::link(const plan::Link& link) {
  number("latency_seconds", link.latency_seconds);
  number("out_bytes_per_second", link.out_bytes_per_second);
  number("in_bytes_per_second", link.in_bytes_per_second);
  number("both_ways_factor", link.both_ways_factor);
  if (link.busy_factor < 1) number("busy_factor", link.busy_factor);
  if (link.busy_rate_factor < 1) number("busy_rate_factor", link.busy_rate_factor);
  return *this;
}

std::string machine_text(const Machine& machine) {
  return JsonRow()
      .text("processor", machine.processor)
      .text("isa", machine.isa)
      .text("device", machine.device)
      .number("threads", machine.threads)
      .number("memory_bytes", machine.memory_bytes)
      .text("cairn", machine.cairn)
      .take();
}

std::string list_text(std::string_view key, const std::vector<std::string>& rows) {
  std::string out = cat("\"", key, "\": [");
  for (size_t i = 0; i < rows.size(); ++i) out += cat(i > 0 ? ",\n  " : "\n  ", rows[i]);
  return out + "]";
}

}  // namespace cairn::costs
