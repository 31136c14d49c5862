#include "runtime/costs/model.h"

#include <algorithm>
#include <cmath>

namespace cairn::costs {
namespace {

constexpr double kLaunchSeconds = 2e-6;
constexpr double kHostBytesPerSecond = 8e9;  // one thread's copy on a server processor
constexpr double kDiskBytesPerSecond = 1e9;
constexpr double kLinkLatency = 20e-6;
constexpr double kHostShare = 0.8;     // of the machine's memory may serve the host tier
constexpr double kSharedMemory = 0.7;  // both directions at once, through one memory
constexpr double kProduct =
    8;  // operations per byte: an op with more is limited by operations, not by memory
constexpr std::string_view kHostTier = "host";

constexpr std::string_view kGpuTypes[] = {"bf16", "f16"};
// How much longer products in 16 bits take in a run than in the few milliseconds in which rates are measured: under lasting
// load a GPU lowers its clock (bench/results/gpu-rates-2026-11-26.md).
constexpr double kLastingLoad = 1.18;

std::string class_of(std::string_view op, std::string_view dtype) { return cat(op, ' ', dtype); }

// Of one parameter; the optimizer's entry is for all of them.
bool is_update(std::string_view op) {
  static const std::string_view name = ops::with(ops::UPDATES).name;
  return op == name;
}

// What happens around a plan scales by nothing but itself.
bool around(std::string_view op) { return op == kOptimizerOp || op == kHostOp; }

bool is_product(const Query& query) { return query.work.flops > kProduct * query.work.bytes; }
bool lasting_load(const Query& query) {
  return is_product(query) && (query.dtype == DType::kBF16 || query.dtype == DType::kF16);
}

struct Sums {
  double measured = 0, modelled = 0;
};

std::map<std::string, double, std::less<>> class_ratios(const Profile& profile) {
  std::map<std::string, Sums> sums;
  for (const auto& [signature, cost] : profile.ops) {
    if (!(cost.median_seconds > 0) || !(cost.modelled_seconds > 0)) continue;
    const auto add = [&cost = cost](Sums& s) {
      s.measured += cost.median_seconds;
      s.modelled += cost.modelled_seconds;
    };
    add(sums[class_of(cost.op, cost.dtype)]);
    if (!around(cost.op)) add(sums[""]);
  }
  std::map<std::string, double, std::less<>> ratios;
  for (const auto& [name, s] : sums) ratios[name] = s.measured / s.modelled;
  return ratios;
}

// A link that was measured without a throttle, under one. It caps each direction, and leaves contention only where
// that is slower; and it takes from kernels less by as much as it moves less.
plan::Link throttled(plan::Link link, double stated) {
  const double together =
      link.both_ways_factor * std::min(link.out_bytes_per_second, link.in_bytes_per_second);
  const double beside = std::min(link.out_bytes_per_second, link.in_bytes_per_second) * link.busy_rate_factor;
  const double share = stated / std::max(link.out_bytes_per_second, link.in_bytes_per_second);
  link.out_bytes_per_second = std::min(stated, link.out_bytes_per_second);
  link.in_bytes_per_second = std::min(stated, link.in_bytes_per_second);
  const double slower = std::min(link.out_bytes_per_second, link.in_bytes_per_second);
  link.both_ways_factor = std::min(1.0, together / slower);
  link.busy_rate_factor = std::min(1.0, beside / slower);
  link.busy_factor = 1 - (1 - link.busy_factor) * std::min(1.0, share);
  return link;
}

}  // namespace

Machine machine_of(const device::DeviceInfo& info) {
  return {.processor = info.processor,
          .isa = info.isa,
          .device = info.name,
          .threads = info.threads,
          .memory_bytes = info.memory_bytes,
          .cairn = {}};
}

Model::Model(const device::DeviceInfo& info, std::shared_ptr<const Table> table)
    : table_(std::move(table)),
      f32_(info.f32_flops_per_second),
      bf16_(info.bf16 ? info.bf16_flops_per_second : info.f32_flops_per_second),
      // Processors widen float16 to float32; units for bfloat16 on GPUs take it as fast.
      f16_(info.host_reaches ? info.f32_flops_per_second : info.bf16_flops_per_second),
      memory_(info.memory_bytes_per_second),
      launch_seconds_(kLaunchSeconds),
      link_(info.host_reaches || info.link_bytes_per_second <= 0 ? kHostBytesPerSecond
                                                                 : info.link_bytes_per_second),
      separate_(!info.host_reaches),
      host_bytes_(static_cast<int64_t>(
          static_cast<double>(info.host_memory_bytes > 0 ? info.host_memory_bytes : info.memory_bytes) *
          kHostShare)) {
  if (separate_ && (table_ == nullptr || (!table_->profile && !table_->rates && !table_->model)))
    for (const ops::OpRow& row : ops::all())
      for (const std::string_view dtype : kGpuTypes)
        if (row.gpu != 1) ratios_[class_of(row.name, dtype)] = row.gpu;
  if (table_ == nullptr) return;
  if (table_->profile) {
    launch_seconds_ = table_->profile->launch_seconds;
    ratios_ = class_ratios(*table_->profile);
  }
  if (table_->rates) {
    launch_seconds_ = table_->rates->launch_seconds;
    for (const ClassRate& c : table_->rates->classes)
      rates_[class_of(c.op, c.dtype)].push_back({c.modelled_seconds, c.seconds / c.modelled_seconds});
    for (auto& [name, list] : rates_) sort(list);
  }
  if (table_->model) {
    const DeviceModel& m = *table_->model;
    f32_ = m.f32_flops_per_second;
    bf16_ = m.bf16_flops_per_second;
    f16_ = m.f16_flops_per_second;
    memory_ = m.memory_bytes_per_second;
    launch_seconds_ = m.launch_seconds;
  }
}

// Ascending; of the same size twice, what they take on average.
void Model::sort(std::vector<Ratio>& list) {
  std::sort(list.begin(), list.end(),
            [](const Ratio& a, const Ratio& b) { return a.modelled_seconds < b.modelled_seconds; });
  std::vector<Ratio> once;
  for (auto it = list.begin(); it != list.end();) {
    const auto same = std::find_if(it, list.end(),
                                   [&](const Ratio& r) { return r.modelled_seconds > it->modelled_seconds; });
    double sum = 0;
    for (auto r = it; r != same; ++r) sum += r->ratio;
    once.push_back({it->modelled_seconds, sum / static_cast<double>(same - it)});
    it = same;
  }
  list = std::move(once);
}

double Model::modelled(const ops::Work& work, DType dtype) const {
  const double rate = dtype == DType::kBF16 ? bf16_ : dtype == DType::kF16 ? f16_ : f32_;
  return std::max(work.flops / std::max(rate, 1.0), work.bytes / std::max(memory_, 1.0));
}

const std::vector<Model::Ratio>* Model::rates_of(const Query& query) const {
  const std::string_view own = dtype_name(query.dtype);
  const auto find = [&](std::string_view op, std::string_view dtype) {
    const auto found = rates_.find(class_of(op, dtype));
    return found == rates_.end() ? nullptr : &found->second;
  };
  const std::string_view op = is_update(query.op) ? kOptimizerOp : query.op;
  // float16, which is not measured, a processor widens; a GPU takes it as it takes bfloat16.
  std::string_view dtypes[] = {own, dtype_name(DType::kF32), dtype_name(DType::kBF16)};
  if (separate_) std::swap(dtypes[1], dtypes[2]);
  for (const std::string_view dtype : dtypes)
    if (const auto* list = find(op, dtype)) return list;
  if (around(op)) return nullptr;
  for (const std::string_view dtype : dtypes)
    if (const auto* list = find(ops::with(is_product(query) ? ops::PRODUCTS : ops::STREAMS).name, dtype))
      return list;
  return nullptr;
}

// What a GPU takes to begin an op and what grows with it: on the line through the two sizes next to the op's, or the largest two.
double Model::on_line(const std::vector<Ratio>& list, double modelled) {
  const auto seconds = [](const Ratio& r) { return r.ratio * r.modelled_seconds; };
  const auto above =
      std::find_if(list.begin(), list.end(), [&](const Ratio& r) { return r.modelled_seconds > modelled; });
  if (above == list.begin()) return seconds(list.front());
  if (list.size() == 1) return std::max(seconds(list[0]), modelled * list[0].ratio);
  const Ratio &b = above == list.end() ? list.back() : *above, &a = *(&b - 1);
  const double slope = std::max(seconds(b) - seconds(a), 0.0) / (b.modelled_seconds - a.modelled_seconds);
  return seconds(a) + slope * (modelled - a.modelled_seconds);
}

// Between two sizes by the logarithm of what the model says; beyond the sizes as at the nearest one. What happens around a
// plan takes no less time than at the smallest size: there it is waking threads, not work; to the host's part, which is
// measured there alone, larger inputs add their copies.
double Model::ratio(const Query& query, double modelled) const {
  if (const std::vector<Ratio>* list = rates_of(query); list != nullptr) {
    const auto above = std::find_if(list->begin(), list->end(),
                                    [&](const Ratio& r) { return r.modelled_seconds > modelled; });
    const Ratio& least = list->front();
    if (!(modelled > 0)) return least.ratio;
    // What updates take to begin, as measured, is the norm's and theirs together.
    if (separate_ && is_update(query.op)) return list->back().ratio;
    if (separate_ && query.op != kHostOp)
      return on_line(*list, modelled * (lasting_load(query) ? kLastingLoad : 1)) / modelled;
    const double fixed = least.ratio * least.modelled_seconds;
    if (query.op == kHostOp) return (fixed + std::max(modelled - least.modelled_seconds, 0.0)) / modelled;
    if (above == list->begin()) return around(query.op) ? fixed / modelled : least.ratio;
    if (above == list->end()) return list->back().ratio;
    const Ratio &a = above[-1], &b = *above;
    const double share =
        std::log(modelled / a.modelled_seconds) / std::log(b.modelled_seconds / a.modelled_seconds);
    return a.ratio + share * (b.ratio - a.ratio);
  }
  auto found = ratios_.find(class_of(query.op, dtype_name(query.dtype)));
  if (found == ratios_.end() && !around(query.op)) found = ratios_.find("");
  return found == ratios_.end() ? 1.0 : found->second;
}

Answer Model::seconds(const Query& query) const {
  if (table_ != nullptr && table_->profile) {
    const auto& ops = table_->profile->ops;
    if (const auto found = ops.find(query.signature); found != ops.end())
      return {found->second.median_seconds + launch_seconds_, true};
  }
  const double seconds = modelled(query.work, query.dtype);
  return {seconds * ratio(query, seconds) + launch_seconds_, false};
}

Sustained Model::sustained() const {
  constexpr double kLong = 1e15;  // longer than anything measured
  const auto rate = [&](std::string_view op, DType dtype, const ops::Work& work) {
    const double seconds = modelled(work, dtype);
    return kLong / (seconds * ratio({.op = op, .dtype = dtype, .work = work, .signature = {}}, seconds));
  };
  const std::string_view product = ops::with(ops::PRODUCTS).name;
  return {rate(product, DType::kF32, {kLong, 0}), rate(product, DType::kBF16, {kLong, 0}),
          rate(kOptimizerOp, DType::kF32, {0, kLong})};
}

// The link of the table instead of the default, with the default's capacity unless the table has one.
plan::Link Model::measured_link(plan::Link otherwise, double stated) const {
  if (table_ == nullptr) return otherwise;
  const auto take = [&](plan::Link link) {
    if (link.capacity_bytes == 0) link.capacity_bytes = otherwise.capacity_bytes;
    return link;
  };
  if (table_->model) {
    for (const plan::Link& link : table_->model->links)
      if (link.tier == otherwise.tier) return take(link);
    return otherwise;
  }
  if (table_->rates) {
    if (otherwise.tier != kHostTier || !table_->rates->host) return otherwise;
    return take(stated > 0 ? throttled(*table_->rates->host, stated) : *table_->rates->host);
  }
  if (!table_->profile) return otherwise;
  if (const LinkCost* exact = table_->profile->find_link(otherwise.tier, stated)) return take(exact->link);
  const LinkCost* free = table_->profile->find_link(otherwise.tier, 0);
  return free == nullptr ? otherwise : take(throttled(free->link, stated));
}

plan::Link Model::host_link(double stated) const {
  const double rate = stated > 0 ? stated : link_, together = stated > 0 || separate_ ? 1.0 : kSharedMemory;
  return measured_link({std::string(kHostTier), kLinkLatency, rate, rate, together, host_bytes_}, stated);
}

plan::Link Model::disk_link(int64_t disk_bytes, const plan::Link* probed) const {
  plan::Link link{"disk", kLinkLatency, kDiskBytesPerSecond, kDiskBytesPerSecond, kSharedMemory, disk_bytes};
  if (probed != nullptr) {
    link = *probed;
    link.capacity_bytes = disk_bytes;
  }
  if (separate_) {  // what is read and written there crosses the device's link
    const plan::Link host = host_link(0);
    link.in_bytes_per_second = std::min(link.in_bytes_per_second, host.in_bytes_per_second);
    link.out_bytes_per_second = std::min(link.out_bytes_per_second, host.out_bytes_per_second);
  }
  return measured_link(std::move(link), 0);
}

plan::Link Model::host_disk_link(const plan::Link& disk, const plan::Link* probed) const {
  if (table_ != nullptr && table_->model) return table_->model->host_disk.value_or(disk);
  return probed != nullptr ? *probed : disk;
}

bool Model::knows_disk() const {
  if (table_ == nullptr) return false;
  return table_->model || (table_->profile && table_->profile->find_link("disk", 0) != nullptr);
}

}  // namespace cairn::costs
