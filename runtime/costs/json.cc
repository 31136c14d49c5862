// The JSON forms "cairn.profile/1" and "cairn.device-model/1". Keys that are not known are left alone, so
// that a file may carry notes of its own.
#include "runtime/costs/json_parts.h"
#include "runtime/costs/table.h"

namespace cairn::costs {
namespace {

using plan::JsonNode;

constexpr size_t kMaxOps = size_t{1} << 18;
constexpr size_t kMaxLinks = 16;
constexpr size_t kMaxSources = 256;

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

// What the processors around the device read and write the disk with. All that the device copies goes through their memory, so
// they are no slower.
std::optional<plan::Link> read_host_disk(const JsonNode& node, plan::Link link) {
  constexpr std::string_view kIn = "host_in_bytes_per_second", kOut = "host_out_bytes_per_second";
  bool stated = false;
  for (const auto& [key, rate] :
       {std::pair(kIn, &link.in_bytes_per_second), std::pair(kOut, &link.out_bytes_per_second)}) {
    if (!node.has(key)) continue;
    if (link.tier != "disk") node.at(key).bad("only the disk has a rate of the host's own");
    const double own = *rate;
    *rate = positive(node.at(key));
    if (*rate < own)
      node.at(key).bad("must not be below the link's own rate, ", own,
                       ", which goes through the host: ", *rate);
    stated = true;
  }
  return stated ? std::optional(link) : std::nullopt;
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
  if (root.has("host_memory_bytes_per_second"))
    m.host_memory_bytes_per_second = positive(root.at("host_memory_bytes_per_second"));
  m.separate_memory = root.at("separate_memory").flag();
  for (const JsonNode& node : root.at("links").list(kMaxLinks)) {
    m.links.push_back(read_link(node));
    if (const auto host_disk = read_host_disk(node, m.links.back())) m.host_disk = host_disk;
    for (size_t i = 0; i + 1 < m.links.size(); ++i)
      if (m.links[i].tier == m.links.back().tier)
        node.at("tier").bad("the tier '", m.links.back().tier, "' appears twice");
  }
  return m;
}

}  // namespace

Table from_json(std::string_view text) {
  require(text.size() <= kMaxCostBytes, Code::kInvalidArgument, "profile: longer than ", kMaxCostBytes,
          " bytes");
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
    links.push_back(JsonRow()
                        .text("tier", cost.link.tier)
                        .number("stated_bytes_per_second", cost.stated_bytes_per_second)
                        .link(cost.link)
                        .take());
  for (const auto& [signature, cost] : p.ops)
    ops.push_back(JsonRow()
                      .text("op", cost.op)
                      .text("dtype", cost.dtype)
                      .number("median_seconds", cost.median_seconds)
                      .number("spread_seconds", cost.spread_seconds)
                      .number("count", cost.count)
                      .number("modelled_seconds", cost.modelled_seconds)
                      .text("signature", signature)
                      .take());
  for (const auto& [signature, choice] : p.choices)
    choices.push_back(JsonRow()
                          .text("choice", choice.choice)
                          .number("seconds", choice.seconds)
                          .number("own_seconds", choice.own_seconds)
                          .number("workspace_bytes", choice.workspace_bytes)
                          .text("signature", signature)
                          .take());
  std::string launch;
  plan::append_number(launch, p.launch_seconds);
  return cat("{\"format\": \"cairn.profile/1\",\n\"machine\": ", machine_text(p.machine),
             ",\n\"launch_seconds\": ", launch, ",\n", list_text("links", links), ",\n",
             list_text("ops", ops), choices.empty() ? "" : cat(",\n", list_text("choices", choices)), "}\n");
}

}  // namespace cairn::costs
