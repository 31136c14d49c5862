#include "runtime/costs/probe/host_memory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/os/clock.h"
#include "runtime/base/os/file.h"
#include "runtime/base/os/proc.h"
#include "runtime/base/parallel.h"
#include "runtime/costs/json_parts.h"
#include "runtime/costs/kept.h"

namespace cairn::costs {
namespace {

constexpr std::string_view kHostMemoryForm = "cairn.host-memory/1";
constexpr uint64_t kMostHostMemory = uint64_t{1} << 16;
constexpr int64_t kElements = int64_t{40} << 20;  // of each array: more than caches hold
constexpr int64_t kGrain = 4096;
constexpr int kPasses = 4;  // the first touches the memory; of the others the fastest counts
// Others' work that keeps a thread waiting makes memory look slow: then it is measured again, so many times, and not kept.
constexpr int kTries = 5;

struct Rate {
  double bytes_per_second = 0;  // 0: there is no memory to measure with
  double waiting = 0;           // of the time that it took, what threads waited for a processor, all together
};

Rate measure_once(int threads) {
  std::vector<float> from, over;
  try {
    from.resize(kElements);
    over.resize(kElements);
  } catch (const std::bad_alloc&) {
    return {};
  }
  ThreadTeam team(threads);
  const int before = thread_count();
  set_thread_team(&team);
  set_thread_count(threads);
  double best = 0;
  const double all_began = now(), waited = waited_seconds();
  for (int pass = 0; pass < kPasses; ++pass) {
    const double began = now();
    parallel_for(kElements, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        over[static_cast<size_t>(i)] += 0.5f * from[static_cast<size_t>(i)];
    });
    const double rate = 3.0 * sizeof(float) * static_cast<double>(kElements) / (now() - began);
    if (pass > 0) best = std::max(best, rate);
  }
  const double waiting = (waited_seconds() - waited) / (now() - all_began);
  set_thread_team(nullptr);
  set_thread_count(before);
  return {best, waiting};
}

// The quietest of several.
Rate measure(const HostMemoryRequest& request) {
  Rate quietest = measure_once(request.threads);
  for (int i = 1; i < kTries && quietest.bytes_per_second > 0 && quietest.waiting > request.most_waiting;
       ++i) {
    const Rate again = measure_once(request.threads);
    if (again.bytes_per_second > 0 && again.waiting < quietest.waiting) quietest = again;
  }
  return quietest;
}

std::string text_of(double rate) {
  return JsonRow().text("format", kHostMemoryForm).number("bytes_per_second", rate).take() + "\n";
}

// What was kept, if it is there, and sound.
std::optional<double> recalled(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const FileContent content(path, kMostHostMemory);
    const plan::JsonText json(
        "host memory", {reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size()});
    if (json.root().at("format").name() != kHostMemoryForm) return std::nullopt;
    return positive(json.root().at("bytes_per_second"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

double find_kept(const HostMemoryRequest& request) {
  const std::string directory = kept_directory(request.kept_in);
  if (directory.empty()) return measure(request).bytes_per_second;
  const std::string path =
      cat(directory, '/', kept_name("host-memory", cat(processor_name(), '|', request.threads)));
  const bool anew = request.how == kRatesMeasure;
  if (!anew)
    if (const auto kept = recalled(path)) return *kept;
  const MeasuringTurn turn(directory);
  if (!anew)
    if (const auto kept = recalled(path)) return *kept;
  const Rate rate = measure(request);
  if (rate.bytes_per_second > 0 && rate.waiting <= request.most_waiting)  // else it is good for this process
    keep(path, text_of(rate.bytes_per_second));
  return rate.bytes_per_second;
}

}  // namespace

double find_host_memory_rate(const HostMemoryRequest& request) {
  if (request.how == kRatesModel) return 0;
  static std::mutex mutex;
  static std::map<std::string, double> found;
  const std::lock_guard lock(mutex);
  const std::string asked = cat(request.threads, '|', request.kept_in, '|', request.how);
  if (const auto known = found.find(asked); known != found.end()) return known->second;
  return found[asked] = find_kept(request);
}

}  // namespace cairn::costs
