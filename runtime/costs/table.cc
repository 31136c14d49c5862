#include "runtime/costs/table.h"

namespace cairn::costs {

std::string difference(const Machine& measured, const Machine& here) {
  std::string text;
  const auto compare = [&](std::string_view what, const auto& then, const auto& now) {
    if (then == now) return;
    text += cat(text.empty() ? "" : ", ", what, " '", then, "' there and '", now, "' here");
  };
  compare("processor", measured.processor, here.processor);
  compare("instruction set", measured.isa, here.isa);
  compare("device", measured.device, here.device);
  compare("threads", measured.threads, here.threads);
  return text;
}

const LinkCost* Profile::find_link(std::string_view tier, double stated) const {
  for (const LinkCost& link : links)
    if (link.link.tier == tier && link.stated_bytes_per_second == stated) return &link;
  return nullptr;
}

void Profile::set_link(LinkCost link) {
  std::erase_if(links, [&](const LinkCost& old) {
    return old.link.tier == link.link.tier && old.stated_bytes_per_second == link.stated_bytes_per_second;
  });
  links.push_back(std::move(link));
}

}  // namespace cairn::costs
