#include "runtime/costs/rates.h"

#include "runtime/costs/json_parts.h"

namespace cairn::costs {

using plan::JsonNode;

namespace {

constexpr std::string_view kForm = "cairn.rates/1";
constexpr size_t kMaxClasses = 4096;

}  // namespace

std::string to_json(const Rates& rates) {
  std::vector<std::string> classes, links;
  for (const ClassRate& c : rates.classes)
    classes.push_back(JsonRow()
                          .text("op", c.op)
                          .text("dtype", c.dtype)
                          .number("modelled_seconds", c.modelled_seconds)
                          .number("seconds", c.seconds)
                          .number("count", c.count)
                          .take());
  if (rates.host) links.push_back(JsonRow().text("tier", rates.host->tier).link(*rates.host).take());
  const auto number = [](double x) {
    std::string text;
    plan::append_number(text, x);
    return text;
  };
  return cat("{\"format\": \"", kForm, "\",\n\"machine\": ", machine_text(rates.machine),
             ",\n\"measuring_seconds\": ", number(rates.measuring_seconds),
             ",\n\"launch_seconds\": ", number(rates.launch_seconds), ",\n", list_text("links", links), ",\n",
             list_text("classes", classes), "}\n");
}

Rates rates_from_json(std::string_view text) {
  require(text.size() <= kMaxCostBytes, Code::kInvalidArgument, "rates: longer than ", kMaxCostBytes,
          " bytes");
  const plan::JsonText json("rates", text);
  const JsonNode& root = json.root();
  const std::string format = root.at("format").name();
  if (format != kForm) fail(Code::kCorruptFile, "format: expected '", kForm, "', found '", format, "'");
  Rates rates;
  rates.machine = read_machine(root.at("machine"));
  rates.measuring_seconds = root.at("measuring_seconds").number();
  rates.launch_seconds = root.at("launch_seconds").number();
  for (const JsonNode& node : root.at("links").list(1)) {
    rates.host = read_link(node);
    if (rates.host->tier != "host") node.at("tier").bad("only the link to the host is measured here");
  }
  for (const JsonNode& node : root.at("classes").list(kMaxClasses))
    rates.classes.push_back({.op = node.at("op").name(),
                             .dtype = node.at("dtype").name(),
                             .modelled_seconds = positive(node.at("modelled_seconds")),
                             .seconds = positive(node.at("seconds")),
                             .count = node.at("count").integer()});
  return rates;
}

}  // namespace cairn::costs
