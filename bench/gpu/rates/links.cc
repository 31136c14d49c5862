#include "bench/gpu/rates/links.h"

#include <algorithm>

namespace cairn::bench {
namespace {

constexpr int64_t kRound = int64_t{1} << 30;  // bytes of a sample, over pinned memory
constexpr int kMaxCopies = 64, kMinCopies = 4, kDiskCopies = 2, kSamples = 3;

struct Way {
  Way(device::Device& device, Tier tier, bool out, int64_t most, const std::shared_ptr<device::Group>& group)
      : outwards(out),
        here(device.allocate(Tier::kDevice, most)),
        there(device.allocate(tier, most)),
        queue(device.create_queue(out ? device::Lane::kCopyOut : device::Lane::kCopyIn, group)) {}

  void copy(int64_t bytes) {
    if (offset + bytes > here->bytes()) offset = 0;
    const device::Location a{here.get(), offset}, b{there.get(), offset};
    queue->copy(outwards ? b : a, outwards ? a : b, bytes);
    offset += bytes;
  }
  double take_rate() {
    queue->synchronize();
    device::Traffic sum;
    for (const device::Traffic& t : queue->take_traffic()) sum += t;
    return sum.busy_seconds > 0 ? static_cast<double>(sum.bytes) / sum.busy_seconds : 0;
  }

  const bool outwards;
  std::unique_ptr<device::Block> here, there;
  std::unique_ptr<device::Queue> queue;  // last: ends before its blocks
  int64_t offset = 0;
};

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

}  // namespace

std::vector<LinkRate> link_rates(device::Device& device, Tier tier, const std::vector<int64_t>& sizes) {
  const int64_t most = *std::max_element(sizes.begin(), sizes.end());
  const auto group = device.create_group();
  Way out(device, tier, true, most, group), in(device, tier, false, most, group);
  for (Way* way : {&out, &in}) {  // a page's first touch is not a copy's time
    way->copy(most);
    way->take_rate();
  }
  std::vector<LinkRate> rates;
  for (const int64_t bytes : sizes) {
    const int64_t copies =
        tier == Tier::kDisk ? kDiskCopies : std::clamp<int64_t>(kRound / bytes, kMinCopies, kMaxCopies);
    for (Way* way : {&out, &in}) {
      std::vector<double> alone;
      for (int sample = 0; sample < kSamples; ++sample) {
        for (int64_t i = 0; i < copies; ++i) way->copy(bytes);
        alone.push_back(way->take_rate());
      }
      rates.push_back({tier, way->outwards, false, bytes, median(std::move(alone))});
    }
    std::vector<double> both_out, both_in;
    for (int sample = 0; sample < kSamples; ++sample) {
      for (int64_t i = 0; i < copies; ++i) {
        out.copy(bytes);
        in.copy(bytes);
      }
      both_out.push_back(out.take_rate());
      both_in.push_back(in.take_rate());
    }
    rates.push_back({tier, true, true, bytes, median(std::move(both_out))});
    rates.push_back({tier, false, true, bytes, median(std::move(both_in))});
  }
  return rates;
}

}  // namespace cairn::bench
