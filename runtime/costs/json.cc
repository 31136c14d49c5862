// The JSON forms "cairn.profile/1" and "cairn.device-model/1". Keys that are not known are left alone, so
// that a file may carry notes of its own.
#include <algorithm>

#include "runtime/costs/table.h"
#include "runtime/plan/json/node.h"
#include "runtime/plan/text.h"

namespace cairn::costs {
namespace {

using plan::JsonNode;

constexpr size_t kMaxBytes = size_t{64} << 20;  // of text
constexpr size_t kMaxOps = size_t{1} << 18;
constexpr size_t kMaxLinks = 16;
constexpr size_t kMaxSources = 256;
constexpr int64_t kMaxThreads = 1 << 20;
constexpr std::string_view kTiers[] = {"host", "disk"};

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
  link.both_ways_factor = positive(node.at("both_ways_factor"));
  if (link.both_ways_factor > 1) node.at("both_ways_factor").bad("must not be above 1");
  if (node.has("capacity_bytes")) link.capacity_bytes = node.at("capacity_bytes").integer();
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

Profile read_profile(const JsonNode& root) {
  Profile p;
  p.machine = read_machine(root.at("machine"));
  p.launch_seconds = root.at("launch_seconds").number();
  for (const JsonNode& node : root.at("links").list(kMaxLinks)) {
    const LinkCost link{read_link(node), node.at("stated_bytes_per_second").number()};
    if (p.find_link(link.link.tier, link.stated_bytes_per_second) != nullptr)
      node.bad("this link to '", link.link.tier, "' appears twice");
    p.links.push_back(link);
  }
  for (const JsonNode& node : root.at("ops").list(kMaxOps)) {
    const OpCost cost{.op = node.at("op").name(),
                      .dtype = node.at("dtype").name(),
                      .median_seconds = node.at("median_seconds").number(),
                      .spread_seconds = node.at("spread_seconds").number(),
                      .modelled_seconds = node.at("modelled_seconds").number(),
                      .count = node.at("count").integer()};
    const std::string signature = node.at("signature").name();
    if (!p.ops.emplace(signature, cost).second)
      node.at("signature").bad("the signature '", signature, "' appears twice");
  }
  if (!root.has("choices")) return p;  // a profile of before there were any
  for (const JsonNode& node : root.at("choices").list(kMaxOps)) {
    const KernelChoice choice{.choice = node.at("choice").name(),
                              .seconds = node.at("seconds").number(),
                              .own_seconds = node.at("own_seconds").number(),
                              .workspace_bytes = node.at("workspace_bytes").integer()};
    if (!p.choices.emplace(node.at("signature").name(), choice).second)
      node.at("signature").bad("a choice for this signature appears twice");
  }
  return p;
}

DeviceModel read_model(const JsonNode& root) {
  DeviceModel m;
  m.name = root.at("name").name();
  if (m.name.empty()) root.at("name").bad("is empty");
  for (const JsonNode& node : root.at("sources").list(kMaxSources)) m.sources.push_back(node.name());
  m.memory_bytes = root.at("memory_bytes").integer();
  if (m.memory_bytes == 0) root.at("memory_bytes").bad("must be above 0");
  m.f32_flops_per_second = positive(root.at("f32_flops_per_second"));
  m.bf16_flops_per_second = positive(root.at("bf16_flops_per_second"));
  m.f16_flops_per_second = positive(root.at("f16_flops_per_second"));
  m.memory_bytes_per_second = positive(root.at("memory_bytes_per_second"));
  m.launch_seconds = root.at("launch_seconds").number();
  m.separate_memory = root.at("separate_memory").flag();
  for (const JsonNode& node : root.at("links").list(kMaxLinks)) {
    m.links.push_back(read_link(node));
    for (size_t i = 0; i + 1 < m.links.size(); ++i)
      if (m.links[i].tier == m.links.back().tier)
        node.at("tier").bad("the tier '", m.links.back().tier, "' appears twice");
  }
  return m;
}

// {"key": value, ...} on one line.
class Row {
 public:
  Row& text(std::string_view key, std::string_view value) {
    name(key);
    plan::append_string(out_, value);
    return *this;
  }
  template <class Number>
  Row& number(std::string_view key, Number value) {
    name(key);
    plan::append_number(out_, value);
    return *this;
  }
  std::string take() { return out_ + "}"; }

 private:
  void name(std::string_view key) { out_ += cat(out_.size() > 1 ? ", \"" : "\"", key, "\": "); }
  std::string out_ = "{";
};

std::string list(std::string_view key, const std::vector<std::string>& rows) {
  std::string out = cat("\"", key, "\": [");
  for (size_t i = 0; i < rows.size(); ++i) out += cat(i > 0 ? ",\n  " : "\n  ", rows[i]);
  return out + "]";
}

}  // namespace

Table from_json(std::string_view text) {
  require(text.size() <= kMaxBytes, Code::kInvalidArgument, "profile: longer than ", kMaxBytes, " bytes");
  const plan::JsonText json("profile", text);
  const JsonNode& root = json.root();
  const std::string format = root.at("format").name();
  Table table;
  if (format == "cairn.profile/1")
    table.profile = read_profile(root);
  else if (format == "cairn.device-model/1")
    table.model = read_model(root);
  else
    fail(Code::kCorruptFile, "format: expected 'cairn.profile/1' or 'cairn.device-model/1', found '", format,
         "'");
  return table;
}

std::string to_json(const Profile& p) {
  std::vector<std::string> links, ops, choices;
  for (const LinkCost& cost : p.links)
    links.push_back(Row()
                        .text("tier", cost.link.tier)
                        .number("stated_bytes_per_second", cost.stated_bytes_per_second)
                        .number("latency_seconds", cost.link.latency_seconds)
                        .number("out_bytes_per_second", cost.link.out_bytes_per_second)
                        .number("in_bytes_per_second", cost.link.in_bytes_per_second)
                        .number("both_ways_factor", cost.link.both_ways_factor)
                        .take());
  for (const auto& [signature, cost] : p.ops)
    ops.push_back(Row()
                      .text("op", cost.op)
                      .text("dtype", cost.dtype)
                      .number("median_seconds", cost.median_seconds)
                      .number("spread_seconds", cost.spread_seconds)
                      .number("count", cost.count)
                      .number("modelled_seconds", cost.modelled_seconds)
                      .text("signature", signature)
                      .take());
  for (const auto& [signature, choice] : p.choices)
    choices.push_back(Row()
                          .text("choice", choice.choice)
                          .number("seconds", choice.seconds)
                          .number("own_seconds", choice.own_seconds)
                          .number("workspace_bytes", choice.workspace_bytes)
                          .text("signature", signature)
                          .take());
  std::string launch;
  plan::append_number(launch, p.launch_seconds);
  return cat("{\"format\": \"cairn.profile/1\",\n\"machine\": ",
             Row()
                 .text("processor", p.machine.processor)
                 .text("isa", p.machine.isa)
                 .text("device", p.machine.device)
                 .number("threads", p.machine.threads)
                 .number("memory_bytes", p.machine.memory_bytes)
                 .text("cairn", p.machine.cairn)
                 .take(),
             ",\n\"launch_seconds\": ", launch, ",\n", list("links", links), ",\n", list("ops", ops),
             choices.empty() ? "" : cat(",\n", list("choices", choices)), "}\n");
}

}  // namespace cairn::costs
